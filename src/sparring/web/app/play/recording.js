// A recorded game and all of its positions.

import { other } from "/app/play/session.js";

const FORMAT = "sparring-replay";
const VERSION = 1;
const KEEP_EVERY = 16; // steps between two states that are kept; those between are played again

// Rejects data that is no replay; this needs no rules of the game.
export function checkReplay(replay) {
  if (replay === null || typeof replay !== "object" || replay.format !== FORMAT) {
    throw new Error(`this is no replay: "format" has to be "${FORMAT}"`);
  }
  if (replay.version !== VERSION) {
    throw new Error(`a replay of version ${replay.version}; this page reads version ${VERSION}`);
  }
  for (const name of ["actions", "players"]) {
    if (!Array.isArray(replay[name])) throw new Error(`"${name}" is missing or is no list`);
  }
  if (!/^-?\d{1,20}$/.test(String(replay.seed))) {
    throw new Error(`seed: ${short(replay.seed)} is no whole number`);
  }
  if (typeof replay.game !== "string") throw new Error('"game" is missing');
}

// One list per step with an action for every row, as `State.apply` takes it.
export function readMoves(rules, actions) {
  return actions.map((given, at) => {
    const rows = rules.rows === 1 ? [given] : given;
    const fits = rules.box
      ? (action) => Array.isArray(action) && action.length === rules.box && action.every(isNumber)
      : (action) => Number.isInteger(action) && action >= 0 && action < rules.actions;
    if (!Array.isArray(rows) || rows.length !== rules.rows || !rows.every(fits)) {
      throw new Error(`step ${at + 1}: ${short(given)} is no action of ${rules.name}`);
    }
    return rows;
  });
}

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function short(value) {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

// A session for a view, without players that move.
export class Recording {
  // `game` is { rules, engine } with the flags of the replay.
  constructor({ rules, engine }, replay) {
    checkFits(rules, replay);
    Object.assign(this, { rules, engine, seed: replay.seed, replay, answer: null, closed: false });
    this.players = replay.players.map((name) => other(String(name)));
    this.person = -1;
    this.view = null;
    this.kept = [];
    this.moves = [];
    this.play(readMoves(rules, replay.actions));
    this.step = 0;
    this.state = this.positionAt(0);
  }

  get start() {
    const { setup = null, index = 0 } = this.replay;
    return this.engine.state(this.seed, { game: index, skipForced: false, setup });
  }

  // Plays the whole game once and inserts the moves that `skip_forced` skipped.
  play(given) {
    const state = this.start;
    const skip = this.rules.skip_forced && this.rules.rows === 1 && !this.rules.box;
    const forced = () => {
      for (let legal = state.legal(); skip && !state.over && legal.length === 1;) {
        this.take(state, legal);
        legal = state.legal();
      }
    };
    given.forEach((actions, at) => {
      forced();
      if (state.over) throw new Error(`step ${at + 1}: the game was over by then`);
      if (!this.take(state, actions)) {
        const named = this.rules.box
          ? short(actions)
          : actions.map((a) => this.engine.actionName(a));
        throw new Error(`step ${at + 1}: ${named} cannot be played there`);
      }
    });
    if (this.replay.end) forced();
    state.free();
  }

  take(state, actions) {
    if (this.moves.length % KEEP_EVERY === 0) this.kept.push(state.clone());
    if (!state.apply(...actions)) return false;
    this.moves.push(actions);
    return true;
  }

  // The position before a step; the caller frees it.
  positionAt(step) {
    const at = Math.min(Math.floor(step / KEEP_EVERY), this.kept.length - 1);
    const state = at < 0 ? this.start : this.kept[at].clone();
    for (const actions of this.moves.slice(Math.max(at, 0) * KEEP_EVERY, step))
      state.apply(...actions);
    return state;
  }

  // Moves to the position before a step. Returns the previous position, which the caller frees.
  go(step) {
    const left = this.state;
    this.step = Math.max(0, Math.min(step, this.moves.length));
    this.state = this.positionAt(this.step);
    return left;
  }

  sees(seat) {
    return this.person < 0 || seat === this.person || this.state.over;
  }

  nameOf(seat) {
    return this.players[seat].name;
  }

  choose() {
    return false;
  }

  // The game up to the current step, to continue from.
  upToHere() {
    const { game, flags, index = 0, setup = null } = this.replay;
    const actions = this.moves.slice(0, this.step).map((m) => (m.length === 1 ? m[0] : m));
    return { game, flags, seed: this.seed, index, setup, actions };
  }

  close() {
    this.closed = true;
    for (const state of this.kept.splice(0)) state.free();
    this.state.free();
  }
}

function checkFits(rules, replay) {
  if (replay.rules_version !== rules.rules_version) {
    throw new Error(
      `played by version ${replay.rules_version} of the rules of ${rules.name}, and this sparring has ` +
        `version ${rules.rules_version}; show it with the sparring that wrote it`,
    );
  }
  if (replay.players.length !== rules.seats) {
    throw new Error(`players: ${rules.name} needs ${rules.seats} names`);
  }
}
