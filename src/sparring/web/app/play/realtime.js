// Real-time games. Steps have a fixed length, independent of the frame rate: a frame plays the steps
// of the time that has passed and interpolates between the last two. A match is a sequence of games,
// called points; each has its replay.
//
// The view of such a game has, in addition to the members in views.js:
//
//   rate                          steps per second
//   over                          the element over which the countdown lies
//   read(state)                   the drawn part of a position
//   frame(before, after, share)   draws an interpolation of two of them
//   control(seat, state)          the person's action in this step
//   wins(wins)                    optional: points by seat

import { calm, el } from "/app/dom.js";
import { Session } from "/app/play/session.js";

const LONGEST_FRAME_MS = 100; // after a longer one the game goes on where it was instead of jumping
const THINKING_MS = 40; // of one frame; a slow network slows the game down, not the page
const KEEP_EVERY = 10; // steps between two states that one can go back to
const BACK_S = 2;
const SPEEDS = [0.25, 0.5, 1];

// A page with `session: RealtimeSession` is played by the clock.
export class RealtimeSession extends Session {
  constructor(engine, options) {
    super(engine, options);
    this.speed = options.speed ?? 1;
    this.goals = options.goals ?? 5; // that win a match
    this.points = []; // replays of those that are over
    this.wins = this.players.map(() => 0);
    this.timing = { frames: [], steps: 0, thinking_ms: 0 };
    this.match = null;
  }

  takeTurns() {
    return runRealtime(this, this.view);
  }

  // The log has points: 50 steps per second would be unreadable.
  get logged() {
    return this.points.length;
  }

  get canUndo() {
    return !this.closed && this.moves.length > 0 && Boolean(this.match);
  }

  undo() {
    return this.canUndo && this.match.rewind();
  }

  pause(yes) {
    this.match?.pause(yes);
  }
}

// Plays until a player has the points that win a match, or the session is closed.
export async function runRealtime(session, view, { signal = null } = {}) {
  const match = new Match(session, view, signal);
  session.match = match;
  try {
    await match.run();
  } finally {
    session.match = null;
    match.close();
  }
}

class Match {
  constructor(session, view, signal) {
    Object.assign(this, { session, view, signal });
    this.step_ms = 1000 / view.rate;
    this.paused = false;
    this.desk = makeDesk(this);
    this.listeners = [
      [document, "visibilitychange", () => document.hidden && this.pause(true)],
      [window, "keydown", (event) => this.key(event)],
    ];
    for (const [where, name, heard] of this.listeners) where.addEventListener(name, heard);
    if (innerHeight < 520) view.over.parentElement.scrollIntoView({ block: "start" });
    this.begin(1800);
  }

  get closed() {
    return this.session.closed || this.signal?.aborted;
  }

  get decided() {
    return this.session.wins.some((won) => won >= this.session.goals);
  }

  // One frame after the other.
  async run() {
    let last = null;
    while (!this.closed && this.phase !== "done") {
      const now = await nextFrame();
      if (last !== null) this.note(now - last);
      const passed = last === null ? 0 : Math.min(now - last, LONGEST_FRAME_MS);
      last = now;
      if (this.closed) return;
      if (!this.paused) await this.pass(passed * this.session.speed);
      this.draw();
    }
    this.session.show(this.session);
  }

  // A point from its start, after a countdown.
  begin(countdown_ms) {
    const { session } = this;
    this.phase = "count";
    this.left_ms = countdown_ms;
    this.count_ms = countdown_ms / 3;
    this.waiting_ms = 0;
    forget(session);
    this.after = this.view.read(session.state);
    this.before = this.after;
    session.show(session);
    this.view.wins?.(session.wins);
  }

  async pass(time_ms) {
    if (this.phase === "play") return this.play(time_ms);
    this.left_ms -= time_ms;
    if (this.left_ms > 0) return;
    if (this.phase === "count") this.phase = "play";
    else if (this.decided) this.phase = "done";
    else this.next();
  }

  async play(time_ms) {
    const began = performance.now();
    this.waiting_ms += time_ms;
    while (this.waiting_ms >= this.step_ms && this.phase === "play") {
      await this.step();
      this.waiting_ms -= this.step_ms;
      if (performance.now() - began > THINKING_MS) this.waiting_ms = 0;
      if (this.closed) return;
    }
    this.session.timing.thinking_ms += performance.now() - began;
  }

  // All players decide at once, then the game advances.
  async step() {
    const { session, view } = this;
    const { state } = session;
    if (session.moves.length % KEEP_EVERY === 0)
      session.past.push({ state: state.clone(), moves: session.moves.length });
    const actions = await Promise.all(
      Array.from({ length: session.rules.rows }, (_, row) => this.decide(state, row)),
    );
    if (session.state !== state || this.closed) return; // taken back while a player was deciding
    if (!state.apply(...actions)) throw new Error(`${session.rules.name}: ${actions} cannot be`);
    session.moves.push(actions);
    if (session.moves.length === 1) session.show(session); // now there is something to take back
    this.session.timing.steps += 1;
    this.before = this.after;
    this.after = view.read(state);
    if (state.over) this.finish();
  }

  decide(state, row) {
    const seat = state.seat(row);
    if (seat < 0) return this.session.idle();
    const player = this.session.players[seat];
    if (player.kind === "person") return this.view.control(seat, state);
    return this.session.moveOf(player, state, row);
  }

  finish() {
    const { session } = this;
    const { scores } = session.state;
    const best = Math.max(...scores);
    const first = scores.indexOf(best);
    this.winner = scores.lastIndexOf(best) === first ? first : -1;
    if (this.winner >= 0) session.wins[this.winner] += 1;
    session.points.push(session.replay());
    this.phase = "over";
    this.left_ms = this.decided ? 0 : 2000;
    this.before = this.after;
    this.view.wins?.(session.wins);
    session.show(session);
  }

  // The next point: a new game with a new seed.
  next() {
    const { session } = this;
    session.state.free();
    session.seed = Number(session.seed) + 1;
    session.state = session.engine.state(session.seed, { skipForced: false });
    session.moves = [];
    this.begin(900);
  }

  // Back by two seconds; a point that is over goes on again.
  rewind() {
    const { session } = this;
    if (this.phase === "done" || session.moves.length === 0) return false;
    const to = Math.max(0, session.moves.length - BACK_S * this.view.rate);
    if (this.phase === "over") {
      if (this.winner >= 0) session.wins[this.winner] -= 1;
      session.points.pop();
    }
    while (session.past.length > 1 && session.past.at(-1).moves > to)
      session.past.pop().state.free();
    const back = session.past.pop();
    session.state.free();
    session.state = back.state;
    const moves = session.moves.slice(0, back.moves);
    const kept = session.past.splice(0);
    this.begin(900);
    session.moves = moves;
    session.past = kept;
    return true;
  }

  pause(yes) {
    if (this.phase === "done") return;
    this.paused = yes;
    this.session.show(this.session);
  }

  key(event) {
    if (!["Escape", "KeyP"].includes(event.code) || event.ctrlKey || event.metaKey) return;
    if (event.repeat || event.target?.closest?.("input, textarea, dialog")) return;
    this.pause(!this.paused);
  }

  draw() {
    const playing = this.phase === "play";
    this.view.frame(this.before, this.after, playing ? this.waiting_ms / this.step_ms : 1);
    this.desk.show();
  }

  note(frame_ms) {
    this.session.timing.frames.push(frame_ms);
    if (this.session.timing.frames.length > 600) this.session.timing.frames.shift();
  }

  close() {
    for (const [where, name, heard] of this.listeners) where.removeEventListener(name, heard);
    this.draw();
  }
}

function forget(session) {
  for (const { state } of session.past) state.free();
  session.past = [];
}

function nextFrame() {
  return new Promise((drawn) => requestAnimationFrame(drawn));
}

// The banner over the table (countdown, pause, result) and the buttons below it.
function makeDesk(match) {
  const { view, session } = match;
  const banner = el("div", { class: "banner", role: "status", hidden: true });
  const pause = el("button", { class: "pause", onclick: () => match.pause(!match.paused) });
  const back = el("button", { class: "rewind", onclick: () => match.rewind() }, `Back ${BACK_S} s`);
  const speed = el(
    "select",
    {
      "aria-label": "speed",
      onchange: (event) => {
        session.speed = Number(event.target.value);
        event.target.blur(); // the keys steer again
      },
    },
    [...new Set([...SPEEDS, session.speed])].map((times) =>
      el("option", { value: times, selected: times === session.speed }, `${times}×`),
    ),
  );
  const buttons = el("div", { class: "realtime-buttons" }, pause, back, speed);
  view.over.append(banner);
  view.over.after(buttons);
  let shown = null;
  return {
    show() {
      const words = wordsOf(match);
      const idle = match.phase === "done";
      const fresh = session.moves.length === 0;
      const all = JSON.stringify([words, match.paused, idle, fresh]);
      if (all === shown) return; // nothing is touched 60 times a second
      shown = all;
      banner.hidden = words.length === 0;
      banner.replaceChildren(...words.map((line, at) => el(at ? "small" : "strong", {}, line)));
      banner.dataset.phase = match.paused ? "paused" : match.phase;
      banner.classList.toggle("calm", calm());
      pause.textContent = match.paused ? "Go on" : "Pause";
      pause.disabled = idle;
      back.disabled = idle || fresh;
    },
  };
}

function wordsOf(match) {
  const { phase, winner, left_ms, count_ms, session } = match;
  const score = session.wins.join(" : ");
  if (match.paused) return ["Paused", "Escape or P continues"];
  if (phase === "count") return [String(Math.max(1, Math.ceil(left_ms / count_ms)))];
  if (phase === "play") return [];
  if (winner < 0) return ["No goal", `time is up, ${score}`];
  const name = whoIs(session, winner);
  if (match.decided) return [name === "you" ? "You win!" : `${name} wins`, score];
  return [name === "you" ? "Your point!" : `Point for ${name}`, score];
}

function whoIs(session, seat) {
  const { name } = session.players[seat];
  const same = session.players.filter((player) => player.name === name).length > 1;
  return same ? ["left", "right"][seat] : name;
}
