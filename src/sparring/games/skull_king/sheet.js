// The score sheet of a game of Skull King: what every round brought to whom.

import { el } from "/app/dom.js";
import { nameOf, read } from "/games/skull_king/reading.js";

export class Sheet {
  constructor(session) {
    this.session = session;
    this.rounds = new Map(); // by number: { bid, won, bonus, loot, points, total }
  }

  // Keeps the round that ended last before a position, and forgets those that lie ahead of it.
  note(at) {
    const finished = at.phase === "over" ? at.round : at.round - 1;
    for (const round of this.rounds.keys()) if (round > finished) this.rounds.delete(round);
    if (
      finished < 1 ||
      at.last_bid.every(
        (bid, seat) => bid === 0 && at.last_won[seat] === 0 && at.last_points[seat] === 0,
      )
    )
      return;
    this.rounds.set(finished, {
      bid: at.last_bid.slice(0, at.players),
      won: at.last_won.slice(0, at.players),
      bonus: at.last_bonus.slice(0, at.players),
      loot: at.last_loot_exact.slice(0, at.players).map((count) => 20 * count),
      points: at.last_points.slice(0, at.players),
      total: at.total.slice(0, at.players),
    });
    if (this.rounds.size < finished) this.lookBack(finished);
  }

  // A replay may begin anywhere: the rounds before are played through once more.
  lookBack(finished) {
    const { engine, seed, setup, moves } = this.session;
    if (!moves?.length) return;
    const state = engine.state(seed, { skipForced: false, setup });
    let round = read(state).round;
    for (const actions of moves) {
      if (!state.apply(...actions)) break;
      const at = read(state);
      if (at.round === round && at.phase !== "over") continue;
      if (round > finished) break;
      round = at.round;
      const ended = at.phase === "over" ? at.round : at.round - 1;
      if (!this.rounds.has(ended)) this.note({ ...at, round: ended, phase: "over" });
    }
    state.free();
  }

  // What the last round brought.
  lastRound(at) {
    const number = at.phase === "over" ? at.round : at.round - 1;
    const round = this.rounds.get(number);
    if (!round) return null;
    const seats = places(round.total);
    return el(
      "table",
      { class: "sk-round" },
      el("caption", {}, at.phase === "over" ? "The last round" : `Round ${number}`),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["", "won / bid", "bonus", "points", "total"].map((word) => el("th", {}, word)),
        ),
      ),
      el(
        "tbody",
        {},
        seats.map((seat) =>
          el(
            "tr",
            { class: seat === this.session.person ? "me" : null },
            el("th", {}, nameOf(this.session, seat)),
            el("td", {}, `${round.won[seat]} / ${round.bid[seat]}`),
            el("td", {}, earned(round, seat)),
            el("td", { class: tone(round.points[seat]) }, signed(round.points[seat])),
            el("td", { class: "total" }, String(round.total[seat])),
          ),
        ),
      ),
    );
  }

  // All rounds, a column for every seat.
  whole(at) {
    const seats = Array.from({ length: at.players }, (_, seat) => seat);
    const numbers = [...this.rounds.keys()].sort((a, b) => a - b);
    return el(
      "table",
      { class: "sk-sheet" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", {}, "round"),
          seats.map((seat) => el("th", {}, nameOf(this.session, seat))),
        ),
      ),
      el(
        "tbody",
        {},
        numbers.map((number) => {
          const round = this.rounds.get(number);
          return el(
            "tr",
            {},
            el("th", {}, String(number)),
            seats.map((seat) =>
              el(
                "td",
                { class: tone(round.points[seat]) },
                signed(round.points[seat]),
                el("small", {}, `${round.won[seat]}/${round.bid[seat]}`),
              ),
            ),
          );
        }),
      ),
      el(
        "tfoot",
        {},
        el(
          "tr",
          {},
          el("th", {}, "total"),
          seats.map((seat) => el("td", {}, String(at.total[seat]))),
        ),
      ),
    );
  }
}

// Bonuses count only for an exact bid.
function earned(round, seat) {
  if (round.won[seat] !== round.bid[seat]) return "–";
  const sum = round.bonus[seat] + round.loot[seat];
  return sum ? `+${sum}` : "–";
}

// Seats from first to last.
export function places(totals) {
  return totals.map((_, seat) => seat).sort((a, b) => totals[b] - totals[a]);
}

export function signed(points) {
  return points > 0 ? `+${points}` : String(points);
}

function tone(points) {
  return points > 0 ? "gain" : points < 0 ? "loss" : "";
}
