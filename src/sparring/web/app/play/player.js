// Shows a recorded game step by step, as any seat sees it.

import { el, replace, svg } from "/app/dom.js";
import { joinWords, plainName } from "/app/play/lineup.js";
import { Mind } from "/app/play/mind.js";
import { keyList, panel, plates } from "/app/play/panels.js";
import { addressOf } from "/app/play/setup.js";
import { copyText, fileName, handOver, packReplay, sharePanel } from "/app/play/sharing.js";
import { lines, result } from "/app/play/views.js";

const STEP_MS = 900;
const SPEEDS = [0.25, 0.5, 1, 2, 4, 16];
const LONGEST_START = 6000; // letters of an address
const ICONS = {
  first: "M4 4h2.5v12H4zM16 4v12L7.5 10z",
  back: "M12.5 4 6 10l6.5 6 1.6-1.7L9.5 10l4.6-4.3z",
  play: "M6 3.5v13L16.5 10z",
  pause: "M5 4h3.5v12H5zM11.5 4H15v12h-3.5z",
  on: "M7.5 4 14 10l-6.5 6-1.6-1.7L10.5 10 5.9 5.7z",
  last: "M13.5 4H16v12h-2.5zM4 4v12l8.5-6z",
};
const KEYS = [
  ["← →", "a step back, a step on"],
  ["Home End", "the first position, the last one"],
  ["space", "play or pause"],
  ["c", "continue from here yourself"],
  ["m", "an agent's mind, open or closed"],
  ["?", "these keys"],
];

export class Player {
  // `able` has the bots and agents that can continue the game, `source` is the file's name.
  constructor(game, recording, { commentators, able, source }) {
    Object.assign(this, { game, recording, able, source });
    this.playing = null;
    this.animating = null; // the position whose next step is being animated
    this.stepLines = this.describeSteps();
    this.build(commentators);
    this.view = game.page.make(this.board, recording);
    recording.view = this.view;
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
  }

  // Log lines of every step, as the viewing seat sees it.
  describeSteps() {
    const { recording, game } = this;
    const before = recording.positionAt(0);
    const described = recording.moves.map((actions) => {
      const after = before.clone();
      after.apply(...actions);
      const seats = actions.map((_, row) => before.seat(row));
      const added = lines(game.page, before, { seats, actions }, after, recording);
      before.apply(...actions);
      after.free();
      return added;
    });
    before.free();
    return described;
  }

  build(commentators) {
    const { game, recording } = this;
    const { rules, page } = game;
    this.board = el("div", { class: `table ${rules.name.replaceAll("_", "-")}-table` });
    this.plates = plates(recording, page);
    this.status = el("p", { class: "status-line", role: "status", "aria-live": "polite" });
    this.log = el("ol", { class: "log steps", tabindex: "0", "aria-label": "What happened" });
    this.mind = new Mind(game, recording, { commentators, find: decisionHere, peeks: false });
    this.keys = panel("Keys", "keys", keyList(KEYS));
    const main = el(
      "div",
      { class: "play-main" },
      this.plates.element,
      this.board,
      this.status,
      this.controls(),
    );
    const side = el(
      "aside",
      { class: "play-side", "aria-label": "Beside the table" },
      panel("What happened", "happened", this.log, true),
      this.mind.element,
      this.goOnPanel(),
      sharePanel(() => recording.replay),
      this.filmPanel(),
      panel(
        "Rules",
        "rules",
        page.rules.map((text) => el("p", {}, text)),
      ),
      this.keys,
    );
    const short = rules.title.split(":")[0];
    const facts = `${short}, ${recording.moves.length} steps, seed ${recording.seed}`;
    this.element = el(
      "div",
      {},
      el("p", { class: "soft replay-facts" }, this.source ? `${this.source}: ${facts}` : facts),
      el("div", { class: "play-body" }, main, side),
    );
    this.fillLog();
  }

  controls() {
    const last = this.recording.moves.length;
    const button = (label, shape, go) =>
      el(
        "button",
        { type: "button", class: "icon", "aria-label": label, title: label, onclick: go },
        drawIcon(shape),
      );
    this.slider = el("input", {
      type: "range",
      min: 0,
      max: last,
      value: 0,
      "aria-label": "Step",
      oninput: () => this.go(Number(this.slider.value)),
    });
    this.where = el("output", { class: "number" });
    this.playButton = button("Play", "play", () => this.toggle());
    this.speed = el(
      "select",
      { "aria-label": "Speed" },
      SPEEDS.map((s) => el("option", { value: s, selected: s === 1 }, `${s}×`)),
    );
    this.eyes = el(
      "select",
      { "aria-label": "Through whose eyes", onchange: () => this.look() },
      el("option", { value: -1 }, "all-seeing"),
      this.recording.players.map(({ name }, seat) =>
        el("option", { value: seat }, `eyes of seat ${seat}, ${name}`),
      ),
    );
    return el(
      "div",
      { class: "player-controls" },
      el("div", { class: "player-slider" }, this.slider, this.where),
      el(
        "div",
        { class: "play-buttons" },
        button("First position", "first", () => this.go(0)),
        button("Step back", "back", () => this.go(this.recording.step - 1)),
        this.playButton,
        button("Step on", "on", () => this.stepOn()),
        button("Last position", "last", () => this.go(last)),
        this.speed,
        this.eyes,
      ),
    );
  }

  goOnPanel() {
    const { rules } = this.game;
    const seats = Array.from({ length: rules.seats }, (_, seat) => seat);
    this.goOnSeat = el(
      "select",
      { "aria-label": "Your seat" },
      seats.map((seat) => el("option", { value: seat }, `seat ${seat}`)),
    );
    const go = el("button", { type: "button", onclick: () => this.goOn() }, "Continue from here");
    return panel(
      "Go on yourself",
      "go-on",
      el("div", { class: "share-buttons" }, this.goOnSeat, go),
    );
  }

  filmPanel() {
    const name = this.source || fileName(this.recording.replay);
    const quoted = /^[\w./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
    const command = `sparring replay ${quoted} --out film.mp4`;
    return panel("As a film", "film", [
      el("p", {}, "With the file, in a terminal:"),
      el("pre", { class: "command" }, command),
      el("button", { type: "button", onclick: () => copyText(command, "Command") }, "Copy"),
    ]);
  }

  fillLog() {
    replace(
      this.log,
      this.stepLines.map((all, at) =>
        el(
          "li",
          {},
          el(
            "button",
            { type: "button", class: "quiet", "data-step": at + 1, onclick: () => this.go(at + 1) },
            el("span", { class: "step-number" }, String(at + 1)),
            all.join(". "),
          ),
        ),
      ),
    );
  }

  show() {
    const { recording } = this;
    const { step, state } = recording;
    this.view.show(state, null);
    this.plates.show(state);
    this.slider.value = step;
    this.where.textContent = `${step} / ${recording.moves.length}`;
    const ended = state.over ? result(this.game.page, state, recording) : "";
    const text = step > 0 ? this.stepLines[step - 1].join(". ") : "The beginning.";
    this.status.textContent = ended ? `${text} — ${ended}` : text;
    for (const now of this.log.querySelectorAll("[aria-current]"))
      now.removeAttribute("aria-current");
    const line = this.log.querySelector(`[data-step="${step}"]`);
    line?.setAttribute("aria-current", "step");
    if (line) keepInSight(this.log, line.parentElement);
    this.mind.show();
  }

  // Jumps to a position without animation.
  go(step) {
    const left = this.recording.go(step);
    if (left !== this.animating) left.free();
    this.show();
  }

  // Advances one step with its animation.
  async stepOn() {
    const { recording } = this;
    if (this.animating || recording.step >= recording.moves.length) return;
    const actions = recording.moves[recording.step];
    const before = recording.state;
    const seats = actions.map((_, row) => before.seat(row));
    const after = recording.positionAt(recording.step + 1);
    this.animating = before;
    const began = recording.step;
    try {
      await this.view.animate?.(before, { seats, actions }, after);
    } finally {
      this.animating = null;
      after.free();
    }
    if (recording.closed) return;
    if (recording.state === before && recording.step === began) this.go(began + 1);
    else before.free(); // another position was chosen in the meantime
  }

  toggle() {
    if (this.playing) return this.pause();
    const mine = {};
    this.playing = mine;
    if (this.recording.step >= this.recording.moves.length) this.go(0);
    this.namePlay("Pause", "pause");
    return this.playOn(mine);
  }

  pause() {
    this.playing = null;
    this.namePlay("Play", "play");
  }

  namePlay(name, shape) {
    replace(this.playButton, drawIcon(shape));
    this.playButton.setAttribute("aria-label", name);
    this.playButton.title = name;
  }

  async playOn(mine) {
    const { recording, game } = this;
    const usual = game.page.realtime ? 1000 / game.page.realtime : STEP_MS;
    while (this.playing === mine && recording.step < recording.moves.length) {
      const speed = Number(this.speed.value);
      if (game.page.realtime || speed > 2) this.go(recording.step + 1);
      else await this.stepOn();
      await new Promise((done) => setTimeout(done, usual / speed));
      if (recording.closed) return;
    }
    if (this.playing === mine) this.pause();
  }

  look() {
    this.recording.person = Number(this.eyes.value);
    this.stepLines = this.describeSteps();
    this.fillLog();
    this.show();
  }

  // Continues the game from here, with the person in a seat.
  goOn() {
    const begun = this.recording.upToHere();
    const person = Number(this.goOnSeat.value);
    const known = [...this.able.bots, ...this.able.agents.map(({ name }) => name)];
    const best = this.able.bots.at(-1);
    const others = this.recording.players
      .filter((_, seat) => seat !== person)
      .map(({ name }) => (known.includes(plainName(name)) ? name : best));
    const wish = { seed: begun.seed, person, against: joinWords(others), flags: begun.flags ?? {} };
    const packed = packReplay(begun);
    const address = addressOf(begun.game, wish);
    if (packed.length > LONGEST_START) handOver(begun);
    location.hash = packed.length > LONGEST_START ? address : `${address}&from=${packed}`;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, select, textarea")) return;
    if (event.key === " " && event.target.closest?.("button, summary, a")) return;
    const todo = {
      ArrowLeft: () => this.go(this.recording.step - 1),
      ArrowRight: () => this.stepOn(),
      Home: () => this.go(0),
      End: () => this.go(this.recording.moves.length),
      " ": () => this.toggle(),
      c: () => this.goOn(),
      m: () => this.mind.toggle(),
      "?": () => (this.keys.open = !this.keys.open),
    }[event.key];
    if (!todo) return;
    event.preventDefault();
    todo();
  }

  close() {
    this.pause();
    document.removeEventListener("keydown", this.onKey);
    this.view.close?.();
    this.mind.close();
    this.recording.close();
  }
}

function drawIcon(shape) {
  return svg(
    "svg",
    { viewBox: "0 0 20 20", width: 18, height: 18, "aria-hidden": "true" },
    svg("path", { d: ICONS[shape], fill: "currentColor" }),
  );
}

// The decision that was made in the position that is shown.
function decisionHere(recording, seat) {
  for (let row = 0; row < recording.rules.rows; ++row) {
    const at = recording.state.seat(row);
    if (at >= 0 && (seat === null || at === seat)) {
      const played = recording.moves[recording.step]?.[row] ?? null;
      return { state: recording.state.clone(), row, played };
    }
  }
  return null;
}

function keepInSight(list, item) {
  const top = item.offsetTop - list.offsetTop;
  if (top < list.scrollTop || top + item.offsetHeight > list.scrollTop + list.clientHeight) {
    list.scrollTop = top - list.clientHeight / 2;
  }
}
