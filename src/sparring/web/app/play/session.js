// One game between people, bots and networks: whose turn it is, what was played, undo and hints.
// It knows nothing of how a game looks; a view shows it, see views.js.

export const PERSON = { kind: "person", name: "you" };

export function bot(rules, name) {
  return { kind: "bot", name, index: rules.bots.indexOf(name) };
}

// `network` has `action(state, row, { greedy, seed, step })`, see engine/network.js.
export function agent(name, network, { greedy = true } = {}) {
  return { kind: "agent", name, network, greedy };
}

export class Session {
  // `players` has one entry per seat. `show(session)` is called whenever somebody may look;
  // `tell(before, move, after)` may return a promise, for which the game waits.
  constructor(engine, { seed, players, adviser = null, setup = null, skipForced = false }) {
    Object.assign(this, { engine, rules: engine.rules, seed, players, setup });
    this.adviser = adviser ?? bot(this.rules, this.rules.bots.at(-1));
    this.skipForced = skipForced;
    // A person sees every move: forced ones are played here, where they can be told.
    this.state = engine.state(seed, { skipForced: false, setup });
    this.moves = []; // of every step, one action per row
    this.past = []; // [{state, moves}] before each decision of a person
    this.show = () => {};
    this.tell = () => {};
    this.closed = false;
    this.answer = null;
  }

  get person() {
    return this.players.findIndex((player) => player.kind === "person");
  }

  run() {
    return this.takeTurns();
  }

  // Plays until the game is over or `close` is called.
  async takeTurns() {
    while (!this.closed && !this.state.over) {
      const actions = [];
      for (let row = 0; row < this.rules.rows; ++row) {
        const seat = this.state.seat(row);
        actions.push(seat < 0 ? this.idle() : await this.decide(seat, row));
        if (this.closed) return;
        if (actions.at(-1) === null) break; // taken back
      }
      if (actions.at(-1) !== null) await this.play(actions);
    }
    this.show(this);
  }

  idle() {
    return this.rules.box ? Array.from({ length: this.rules.box }, () => 0) : 0;
  }

  async decide(seat, row) {
    const player = this.players[seat];
    if (player.kind !== "person") {
      this.show(this);
      await new Promise((painted) => setTimeout(painted)); // a long thought must not hide the move before
      return this.moveOf(player, this.state, row);
    }
    const legal = this.state.legal(row);
    if (this.skipForced && legal.length === 1) return legal[0];
    this.past.push({ state: this.state.clone(), moves: this.moves.length });
    const chosen = new Promise((resolve) => {
      this.answer = { row, legal, resolve };
    });
    this.show(this);
    const action = await chosen;
    this.answer = null;
    return action;
  }

  // What a player does in a state, which bots draw from.
  moveOf(player, state, row = 0) {
    if (player.kind === "bot") return state.ask(player.index, row);
    const step = this.moves.length;
    return player.network.action(state, row, { greedy: player.greedy, seed: this.seed, step });
  }

  async play(actions) {
    const before = this.state.clone();
    const seats = actions.map((_, row) => before.seat(row));
    if (!this.state.apply(...actions)) {
      before.free();
      throw new Error(`${this.rules.name}: ${actions} cannot be played here`);
    }
    this.moves.push(actions);
    await this.tell(before, { seats, actions }, this.state);
    before.free();
  }

  // A person decides. False if this cannot be played now.
  choose(action) {
    if (!this.answer?.legal.includes(action)) return false;
    this.answer.resolve(action);
    return true;
  }

  // Back to the person's decision before this one. False if there is none.
  undo() {
    if (this.answer) this.past.pop()?.state.free(); // the one that waits
    const back = this.past.pop();
    if (!back) {
      if (this.answer) this.past.push({ state: this.state.clone(), moves: this.moves.length });
      return false;
    }
    this.state.free();
    this.state = back.state;
    this.moves.length = back.moves;
    if (this.answer) this.answer.resolve(null);
    else this.again?.();
    return true;
  }

  // What the adviser would do for the person.
  hint() {
    if (!this.answer) return null;
    const copy = this.state.clone();
    const action = this.moveOf(this.adviser, copy, this.answer.row);
    copy.free();
    return { by: this.adviser.name, action, name: this.engine.actionName(action) };
  }

  // The game so far as `sparring replay` reads it.
  replay() {
    return {
      format: "sparring-replay",
      version: 1,
      game: this.rules.name,
      rules_version: this.rules.rules_version,
      flags: this.rules.flags,
      seed: Number(this.seed),
      players: this.players.map((player) => player.name),
      ...(this.setup ? { setup: this.setup } : {}),
      actions: this.moves.map((move) => (move.length === 1 ? move[0] : move)),
      scores: this.state.scores,
      end: this.state.end,
    };
  }

  close() {
    this.closed = true;
    this.answer?.resolve(null);
  }
}
