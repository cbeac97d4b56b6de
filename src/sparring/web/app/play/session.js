// One game between people, bots and networks: turns, moves, undo and hints. A view displays it,
// see views.js.

export const PERSON = { kind: "person", name: "you" };

export function bot(rules, name) {
  return { kind: "bot", name, index: rules.bots.indexOf(name) };
}

// `network` has `action(state, row, { temperature, seed, step, progress })`: that of
// engine/network.js, or one that searches, see thinker.js. `temperature` 0: its best action.
export function agent(name, network, { temperature = 0 } = {}) {
  return { kind: "agent", name, network, temperature };
}

// A player of a replay whose moves are recorded and who makes no new ones.
export function other(name) {
  return { kind: "other", name };
}

export class Session {
  // `players` has one entry per seat; `moves` are those of a game to continue, `index` and `setup`
  // its start. `show(session)` is called when the position or the question changes;
  // `progress(player, found)` while a player searches, with null when it does not any more;
  // `animate(before, move, after)` may return a promise, for which the game waits; `trouble(error)`
  // receives the error of a player that cannot move.
  constructor(engine, options) {
    const { seed, players, adviser = null, skipForced = false, moves = [] } = options;
    const { setup = null, index = 0 } = options;
    Object.assign(this, { engine, rules: engine.rules, seed, index, setup, players, skipForced });
    this.adviser = adviser ?? adviserOf(this.rules, players);
    this.moves = []; // of every step, one action per row
    this.past = []; // [{state, moves}] before each decision of a person
    this.rest = []; // actions that are still to be made of the person's last decision
    this.retired = []; // states that were taken back and that a view may still be drawing
    this.epoch = 0; // grows when decisions under way become obsolete
    this.running = null;
    this.closed = false;
    this.answer = null;
    this.show = () => {};
    this.animate = () => {};
    this.progress = () => {};
    this.trouble = (wrong) => {
      throw wrong;
    };
    // A person sees every move: forced ones are played here, where they are logged.
    this.state = this.start;
    for (const actions of moves) this.apply(actions, this.asksPerson());
  }

  get start() {
    const { seed, index, setup } = this;
    return this.engine.state(seed, { game: index, skipForced: false, setup });
  }

  // Number of steps in the log.
  get logged() {
    return this.moves.length;
  }

  // The seat that views the table; -1: a viewer who sees everything.
  get person() {
    return this.players.findIndex((player) => player.kind === "person");
  }

  // Whether what a seat hides may be shown.
  sees(seat) {
    return this.person < 0 || seat === this.person || this.state.over;
  }

  nameOf(seat) {
    return this.players[seat].name;
  }

  // Plays until the game is over or `close` is called; goes on by itself after an undo.
  run() {
    this.running ??= this.takeTurns()
      .finally(() => {
        this.running = null;
        if (this.closed) this.release();
      })
      .catch((wrong) => this.trouble(wrong));
    return this.running;
  }

  async takeTurns() {
    while (!this.closed && !this.state.over) {
      const epoch = this.epoch;
      const asked = this.asksPerson() && !this.goesOn();
      const before = asked ? this.state.clone() : null; // bots draw from the state when asked
      if (asked) this.past.push({ state: before, moves: this.moves.length });
      const actions = await this.decisions(epoch);
      if (epoch === this.epoch) await this.play(actions);
      this.retired.splice(0).forEach((state) => state.free());
    }
    if (!this.closed) this.show(this);
  }

  // Whether a person has a choice in this step.
  asksPerson() {
    for (let row = 0; row < this.rules.rows; ++row) {
      const seat = this.state.seat(row);
      if (seat < 0 || this.players[seat].kind !== "person") continue;
      if (!this.skipForced || this.rules.box || this.state.legal(row).length > 1) return true;
    }
    return false;
  }

  // Whether the person's last decision has an action for this step; one that does not fit ends it.
  goesOn() {
    const fits = this.rest.length > 0 && this.state.legal().includes(this.rest[0]);
    if (!fits) this.rest = [];
    return fits;
  }

  // One action per row. It ends early when the step is taken back.
  async decisions(epoch) {
    const actions = [];
    for (let row = 0; row < this.rules.rows && epoch === this.epoch; ++row) {
      const seat = this.state.seat(row);
      if (seat < 0) actions.push(this.idle());
      else if (this.players[seat].kind === "person") actions.push(await this.askPerson(row));
      else actions.push(await this.think(this.players[seat], row, epoch));
    }
    return actions;
  }

  idle() {
    return this.rules.box ? Array.from({ length: this.rules.box }, () => 0) : 0;
  }

  async think(player, row, epoch) {
    this.show(this);
    await new Promise((painted) => setTimeout(painted)); // a long thought must not hide the move before
    if (epoch !== this.epoch) return null;
    try {
      return await this.moveOf(player, this.state, row);
    } finally {
      this.progress(null);
    }
  }

  async askPerson(row) {
    if (this.goesOn()) return this.rest.shift();
    const legal = this.state.legal(row);
    if (this.skipForced && legal.length === 1) return legal[0];
    const chosen = new Promise((resolve) => {
      this.answer = { row, legal, resolve };
    });
    this.show(this);
    return chosen;
  }

  // What a player does in a state, which bots draw from; an agent's answer may be a promise.
  moveOf(player, state, row = 0) {
    if (player.kind === "bot") return state.ask(player.index, row);
    const { temperature } = player;
    const progress = (found) => this.progress(player, found);
    const step = this.moves.length;
    return player.network.action(state, row, { temperature, seed: this.seed, step, progress });
  }

  // Players that search decide now, with what they have found.
  hurry() {
    for (const { network } of this.players) network?.stop?.();
  }

  async play(actions) {
    const before = this.state.clone();
    const seats = actions.map((_, row) => before.seat(row));
    const after = this.state;
    this.apply(actions);
    try {
      await this.animate(before, { seats, actions }, after);
    } finally {
      before.free();
    }
  }

  // Makes a step without animation; an undo can return to it if a person decided in it.
  apply(actions, decided = false) {
    const before = decided ? this.state.clone() : null;
    if (!this.state.apply(...actions)) {
      before?.free();
      const named = this.rules.box ? actions : actions.map((a) => this.engine.actionName(a));
      throw new Error(
        `${this.rules.name}: ${named} cannot be played in step ${this.moves.length + 1}`,
      );
    }
    if (decided) this.past.push({ state: before, moves: this.moves.length });
    this.moves.push(actions);
  }

  // A person decides. False if this cannot be played now. `rest` are the actions that follow at once
  // where a decision takes several; an undo takes all of them back.
  choose(action, rest = []) {
    if (!this.answer?.legal.includes(action)) return false;
    this.rest = [...rest];
    this.settle(action);
    return true;
  }

  // Answers the person's question; searches for another position end.
  settle(action) {
    for (const { network } of this.players) network?.cancel?.();
    const { resolve } = this.answer ?? {};
    this.answer = null;
    resolve?.(action);
  }

  get canUndo() {
    return !this.closed && this.past.some((decision) => decision.moves < this.moves.length);
  }

  // Back to the person's last decision, from wherever the game is now: while the person is asked,
  // a bot thinks or a move is shown, and after the end. False if there is nothing to take back.
  undo() {
    if (!this.canUndo) return false;
    this.epoch += 1;
    while (this.past.at(-1).moves >= this.moves.length) this.retired.push(this.past.pop().state);
    const back = this.past.pop();
    this.retired.push(this.state);
    this.state = back.state;
    this.moves.length = back.moves;
    this.rest = [];
    this.settle(null);
    this.run();
    return true;
  }

  // The adviser's action for the person, null if no decision is pending.
  async hint() {
    if (!this.answer) return null;
    const { epoch } = this;
    const asked = this.answer;
    const copy = this.state.clone();
    try {
      const action = await this.moveOf(this.adviser, copy, asked.row);
      this.progress(null);
      if (epoch !== this.epoch || this.answer !== asked) return null;
      return { by: this.adviser.name, action, name: this.engine.actionName(action) };
    } finally {
      copy.free();
    }
  }

  // The position before a step; the caller frees it.
  positionAt(step) {
    const state = this.start;
    for (const actions of this.moves.slice(0, step)) state.apply(...actions);
    return state;
  }

  // The game so far as `sparring replay` reads it.
  replay() {
    return {
      format: "sparring-replay",
      version: 1,
      game: this.rules.name,
      rules_version: this.rules.rules_version,
      flags: withoutSkips(this.rules.flags),
      seed: exact(this.seed),
      ...(this.index ? { index: this.index } : {}),
      players: this.players.map(({ kind, name }) => (kind === "person" ? "person" : name)),
      ...(this.setup ? { setup: this.setup } : {}),
      actions: this.moves.map((move) => (move.length === 1 ? move[0] : move)),
      scores: this.state.scores,
      end: this.state.end,
    };
  }

  close() {
    if (this.closed) return;
    this.closed = true;
    this.epoch += 1;
    this.settle(null);
    if (!this.running) this.release();
  }

  release() {
    for (const { state } of this.past.splice(0)) state.free();
    for (const state of this.retired.splice(0)) state.free();
    if (this.state.handle) this.state.free();
  }
}

// A replay has every move, forced ones included.
function withoutSkips(flags) {
  return Object.fromEntries(Object.entries(flags).filter(([name]) => name !== "skip_forced"));
}

// A number as every reader of JSON keeps it: beyond 2^53 it is text.
function exact(seed) {
  return Number.isSafeInteger(Number(seed)) ? Number(seed) : String(seed);
}

// The agent at the table, by its best action even if it draws its moves; else the best bot.
export function adviserOf(rules, players) {
  const found = players.find(({ kind }) => kind === "agent");
  if (!found) return bot(rules, rules.bots.at(-1));
  return { ...found, name: found.name.replace("@sampled", ""), temperature: 0 };
}
