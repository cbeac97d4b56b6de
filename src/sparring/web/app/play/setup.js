// Settings of a table: seat, opponents, seed, flags. Reads and writes them as an address.

import { el, replace } from "/app/dom.js";
import {
  A_PERSON,
  joinWords,
  levelsOf,
  readSeat,
  spreadWords,
  wayOptions,
  writeSeat,
} from "/app/play/lineup.js";
import { panel } from "/app/play/panels.js";
import { source } from "/app/play/source.js";

export const MAX_SEED = 2 ** 31 - 1;

export function newSeed() {
  return crypto.getRandomValues(new Uint32Array(1))[0] % 1_000_000;
}

// Settings in an address: {seed, person, against, flags}.
export function readWish(query) {
  const seed = query.get("seed");
  if (seed !== null && !(/^\d+$/.test(seed) && Number(seed) <= MAX_SEED)) {
    throw new Error(`seed=${seed} is not a whole number from 0 to ${MAX_SEED}`);
  }
  const seat = query.get("seat") ?? "0";
  const flags = {};
  for (const pair of query.getAll("set")) {
    const cut = pair.indexOf("=");
    if (cut < 1) throw new Error(`set=${pair} is not set=flag=value`);
    flags[pair.slice(0, cut)] = pair.slice(cut + 1);
  }
  return {
    seed: seed === null ? null : Number(seed),
    person: seat === "watch" ? -1 : Number(seat),
    against: query.get("against") ?? "",
    flags,
  };
}

export function writeWish({ seed, person, against, flags }) {
  const query = new URLSearchParams({ seed, seat: person < 0 ? "watch" : person });
  if (against) query.set("against", against);
  for (const [name, value] of Object.entries(flags)) query.append("set", `${name}=${value}`);
  return query;
}

// The address of a table.
export function addressOf(game, wish) {
  // Commas, slashes and the like are readable in an address as they are.
  const query = writeWish(wish)
    .toString()
    .replace(/%(2C|2F|3D|40|3A)/g, (code) => decodeURIComponent(code));
  return `#/play/${game}?${query}`;
}

// The settings panel of a table; `go(wish)` opens a new table.
export function setupPanel(rules, wish, able, go) {
  const form = new Setup(rules, wish, able, go);
  return panel("The table", "setup", form.element);
}

// Who plays all other seats, as one select: a bot, or the agent at a level. `go(wish)` deals anew.
export function opponentChoice({ rules, page }, wish, able, go) {
  if (rules.seats === 1 && wish.person === 0) return null;
  const option = (value, text) => el("option", { value, selected: value === wish.against }, text);
  const groups = able.agents.map((agent) => {
    const levels = levelsOf(rules, agent.searchable).filter(
      ([, { simulations }]) => !(page.realtime && simulations),
    );
    const own = ordinaryWord(agent);
    return el(
      "optgroup",
      { label: agent.name },
      option(own, agent.name),
      levels.length > 1
        ? levels.map(([level]) => option(`${agent.name}@level${level}`, levelName(level, levels)))
        : null,
    );
  });
  const select = el(
    "select",
    { name: "against", onchange: () => go({ ...wish, seed: newSeed(), against: select.value }) },
    groups,
    el(
      "optgroup",
      { label: "bots" },
      rules.bots.map((name) => option(name, name)),
    ),
  );
  if (select.value !== wish.against) select.append(option(wish.against, "as set below"));
  return el("label", { class: "play-against" }, el("span", {}, "Against"), select);
}

// The word of an agent that plays as it was measured.
export function ordinaryWord({ name, plays }) {
  return plays && plays !== "greedy" ? `${name}@${plays}` : name;
}

function levelName(level, levels) {
  const ends = { [levels[0][0]]: ", weakest", [levels.at(-1)[0]]: ", strongest" };
  return `level ${level}${ends[level] ?? ""}`;
}

class Setup {
  constructor(rules, wish, able, go) {
    Object.assign(this, { rules, able, go });
    this.words = spreadWords(wish.against, rules, wish.person);
    this.person = wish.person;
    this.flags = wish.flags;
    this.seats = el("div", { class: "setup-seats" });
    this.seed = el("input", {
      type: "number",
      min: 0,
      max: MAX_SEED,
      value: wish.seed,
      name: "seed",
      required: true,
    });
    const random = el(
      "button",
      { type: "button", onclick: () => (this.seed.value = newSeed()) },
      "new",
    );
    this.seat = el("select", { name: "seat", onchange: () => this.move() }, this.seatOptions());
    // Other flags change the rules, which only a server can describe.
    this.fields = source().server ? rules.flag_fields.map((field) => flagField(field)) : [];
    this.element = el(
      "form",
      { class: "setup", onsubmit: (event) => this.submit(event) },
      el("label", {}, el("span", {}, "You sit at"), this.seat),
      this.seats,
      el(
        "label",
        {},
        el("span", {}, "Seed"),
        el("span", { class: "setup-seed" }, this.seed, random),
      ),
      this.flagsFold(),
      el("button", { type: "submit", class: "primary" }, "Deal"),
    );
    this.showSeats();
  }

  seatOptions() {
    const seats = Array.from({ length: this.rules.seats }, (_, seat) => seat);
    return [
      ...seats.map((seat) =>
        el("option", { value: seat, selected: seat === this.person }, `seat ${seat}`),
      ),
      el("option", { value: -1, selected: this.person < 0 }, "nowhere: watch"),
    ];
  }

  // The person swaps seats with the player there.
  move() {
    const to = Number(this.seat.value);
    const word = this.words.get(to) ?? this.rules.bots.at(-1);
    if (this.person >= 0) this.words.set(this.person, word);
    this.words.delete(to);
    this.person = to;
    this.showSeats();
  }

  showSeats() {
    const seats = [...this.words.keys()].toSorted((a, b) => a - b);
    replace(
      this.seats,
      seats.map((seat) => this.seatRow(seat)),
    );
  }

  // One seat: a line for every member of its mixture.
  seatRow(seat) {
    const members = readSeat(this.words.get(seat));
    const put = () => this.words.set(seat, writeSeat(members));
    const again = () => {
      put();
      this.showSeats();
    };
    const rows = members.map((member, at) =>
      el(
        "div",
        { class: "setup-member" },
        this.playerChoice(member, seat, again),
        this.isAgent(member.name) ? this.wayChoice(member, seat, put) : null,
        members.length > 1 ? weightField(member, put) : null,
        members.length > 1
          ? iconButton("Leave out", "×", () => {
              members.splice(at, 1);
              again();
            })
          : null,
      ),
    );
    const add = iconButton("Add to a mixture: who plays is drawn by the seed", "+ mix", () => {
      members.push({ name: this.rules.bots[0], way: "", weight: 1 });
      again();
    });
    return el("fieldset", { "data-seat": seat }, el("legend", {}, `Seat ${seat}`), rows, add);
  }

  isAgent(name) {
    return name !== A_PERSON && !this.rules.bots.includes(name);
  }

  // An agent that the server does not list says itself what it cannot do, once it is loaded.
  canSearch(name) {
    const run = (one) => one.name === name || name.startsWith(`${one.name}/`);
    return Boolean(this.rules.search) && (this.able.agents.find(run)?.searchable ?? true);
  }

  wayChoice(member, seat, put) {
    const change = (event) => {
      member.way = event.target.value;
      put();
    };
    return el(
      "select",
      { "aria-label": `How seat ${seat} plays`, onchange: change },
      wayOptions(this.rules, this.canSearch(member.name), member.way),
    );
  }

  playerChoice(member, seat, again) {
    const { bots, agents } = this.able;
    const option = (name, text = name) =>
      el("option", { value: name, selected: name === member.name }, text);
    const known = [...bots, ...agents.map(({ name }) => name), A_PERSON].includes(member.name);
    return el(
      "select",
      {
        "aria-label": `Who plays at seat ${seat}`,
        onchange: (event) => {
          member.name = event.target.value;
          if (!this.isAgent(member.name)) member.way = "";
          again();
        },
      },
      el(
        "optgroup",
        { label: "bots" },
        bots.map((name) => option(name)),
      ),
      optionGroup(
        "agents",
        agents.filter(({ run }) => !run),
        option,
      ),
      optionGroup(
        "their checkpoints",
        agents.filter(({ run }) => run),
        option,
      ),
      this.rules.hides ? null : option(A_PERSON, "a person, here too"),
      known ? null : option(member.name),
    );
  }

  flagsFold() {
    if (this.fields.length === 0) return null;
    const changed = Object.keys(this.flags).length > 0;
    return el(
      "details",
      { class: "setup-flags", open: changed },
      el("summary", {}, "Flags of the game"),
      this.fields.map(({ element }) => element),
    );
  }

  submit(event) {
    event.preventDefault();
    const flags = { ...this.flags };
    for (const { name, before, read } of this.fields) {
      const value = read();
      if (value !== before) flags[name] = value;
    }
    const seats = [...this.words.keys()].toSorted((a, b) => a - b);
    const against = joinWords(seats.map((seat) => this.words.get(seat)));
    this.go({ seed: Number(this.seed.value), person: this.person, against, flags });
  }
}

function optionGroup(label, agents, option) {
  if (agents.length === 0) return null;
  return el(
    "optgroup",
    { label },
    agents.map((one) => option(one.name, agentLabel(one))),
  );
}

function agentLabel({ name, strength }) {
  return typeof strength === "number" ? `${name} · ${strength.toFixed(2)}` : name;
}

function weightField(member, put) {
  return el("input", {
    type: "number",
    min: 0,
    step: "any",
    value: member.weight,
    "aria-label": "Weight",
    class: "setup-weight",
    oninput: (event) => {
      member.weight = Number(event.target.value) || 0;
      put();
    },
  });
}

function iconButton(label, text, go) {
  return el(
    "button",
    { type: "button", class: "quiet", title: label, "aria-label": label, onclick: go },
    text,
  );
}

// A flag as a field: a choice of words, a switch, a number, or a list of numbers as text.
function flagField({ name, help, low, high, count, words, value }) {
  const before = String(value);
  let input;
  let read = () => input.value;
  if (words.length > 0 && count === 1) {
    input = el(
      "select",
      { name },
      words.map((word) => el("option", { selected: word === before }, word)),
    );
  } else if (count === 1 && low === 0 && high === 1 && ["0", "1"].includes(before)) {
    input = el("input", { type: "checkbox", name, checked: before === "1" });
    read = () => (input.checked ? "1" : "0");
  } else if (count === 1) {
    input = el("input", { type: "number", name, min: low, max: high, step: "any", value: before });
  } else {
    input = el("input", { type: "text", name, value: before });
  }
  const range = words.length || count > 1 ? "" : ` (${low} to ${high})`;
  const element = el(
    "label",
    { class: "setup-flag" },
    el("span", { class: "setup-flag-name" }, name),
    input,
    help ? el("small", { class: "soft" }, help + range) : null,
  );
  return { name, before, read, element };
}
