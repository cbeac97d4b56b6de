// A game in this page: the rules that were compiled from csrc, one module per game.

const READERS = {
  uint8: Uint8Array,
  int8: Int8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  uint32: Uint32Array,
  int32: Int32Array,
  uint64: BigUint64Array,
  float32: Float32Array,
};

export class Engine {
  // `rules` is the description of the game and its flags by src/sparring/web/description.py; `wasm`
  // are the module's bytes, for a worker that plays the same game.
  constructor(instance, rules, wasm = null) {
    this.native = instance.exports;
    Object.assign(this, { rules, wasm });
    this.about = JSON.parse(this.text(this.native.describe()));
    const config = fromBase64(rules.config);
    if (config.length !== this.about.config_bytes) {
      throw new Error(`${rules.name}: the module and the rules are of different versions`);
    }
    this.config = this.put(config);
    this.weights = this.put(new Uint8Array(Float32Array.from(rules.weights).buffer));
    // Buffers for arguments and results of calls.
    this.row = this.native.alloc(rules.obs_bytes);
    this.mask = this.native.alloc(rules.actions);
    this.numbers = this.native.alloc(4 * Math.max(64, rules.seats * rules.roles.length));
  }

  static async load(wasm, rules) {
    let engine = null;
    const nothing = () => 0;
    const { instance } = await WebAssembly.instantiate(wasm, {
      sparring: {
        fail: (why) => {
          throw new Error(engine.text(why));
        },
      },
      // Imports that the C library needs; they do nothing.
      wasi_snapshot_preview1: new Proxy({}, { get: () => nothing }),
    });
    instance.exports._initialize();
    engine = new Engine(instance, rules, wasm);
    return engine;
  }

  bytes(address, count) {
    return new Uint8Array(this.native.memory.buffer, address, count);
  }

  floats(address, count) {
    return new Float32Array(this.native.memory.buffer, address, count);
  }

  put(bytes) {
    const address = this.native.alloc(bytes.length);
    this.bytes(address, bytes.length).set(bytes);
    return address;
  }

  text(address) {
    const all = new Uint8Array(this.native.memory.buffer);
    return new TextDecoder().decode(all.slice(address, all.indexOf(0, address)));
  }

  actionName(action) {
    return this.text(this.native.action_name(this.config, action));
  }

  // A new game. The same seed deals what `sparring.new_state` deals. `skipForced` left out: as the
  // rules have it.
  state(seed, { game = 0, skipForced = this.rules.skip_forced, setup = null } = {}) {
    const bits = BigInt.asUintN(64, BigInt(seed));
    const handle = this.native.state_new(
      this.config,
      Number(bits & 0xffffffffn),
      Number(bits >> 32n),
      game,
      skipForced ? 1 : 0,
      this.weights,
      this.rules.weights.length,
    );
    const state = new State(this, handle);
    if (setup) state.setUp(setup);
    return state;
  }
}

export class State {
  constructor(engine, handle) {
    this.engine = engine;
    this.rules = engine.rules;
    this.handle = handle;
  }

  clone() {
    return new State(this.engine, this.engine.native.state_clone(this.handle));
  }

  free() {
    this.engine.native.state_free(this.handle);
    this.handle = 0;
  }

  // The seat that decides in a row, -1 for none.
  seat(row = 0) {
    return this.engine.native.state_seat(this.handle, row);
  }

  role(row = 0) {
    return this.engine.native.state_role(this.handle, row);
  }

  get over() {
    return (this.engine.native.state_end(this.handle) & 3) !== 0;
  }

  // Why the game is over, null while it goes on.
  get end() {
    return this.over ? this.rules.ends[this.engine.native.state_end(this.handle) >> 8] : null;
  }

  get scores() {
    const seats = Array.from({ length: this.rules.seats }, (_, seat) => seat);
    return seats.map((seat) => this.engine.native.state_score(this.handle, seat));
  }

  // [seats][roles] of the last move.
  get rewards() {
    const { native, numbers } = this.engine;
    native.state_rewards(this.handle, numbers);
    return this.engine.floats(numbers, this.rules.seats * this.rules.roles.length).slice();
  }

  // One byte per action.
  mask(row = 0) {
    const { native, mask } = this.engine;
    this.engine.bytes(mask, this.rules.actions).fill(0);
    native.state_legal(this.handle, row, mask);
    return this.engine.bytes(mask, this.rules.actions).slice();
  }

  legal(row = 0) {
    const legal = [];
    this.mask(row).forEach((yes, action) => yes && legal.push(action));
    return legal;
  }

  // One action per row: a number, or an array of numbers where actions are continuous. False: it
  // cannot be played, and nothing has changed.
  apply(...actions) {
    const { native, numbers } = this.engine;
    const memory = native.memory.buffer;
    if (this.rules.box) {
      new Float32Array(memory, numbers, this.rules.rows * this.rules.box).set(actions.flat());
    } else {
      new Int32Array(memory, numbers, this.rules.rows).set(actions);
    }
    return native.state_apply(this.handle, numbers) === 0;
  }

  observe(seat) {
    this.engine.native.state_observe(this.handle, seat, this.engine.row);
    return this.engine.bytes(this.engine.row, this.rules.obs_bytes).slice();
  }

  // A bot's action. It draws from this state's random numbers: use a clone for advice.
  ask(bot, row = 0) {
    const { native, numbers } = this.engine;
    native.state_ask(this.handle, bot, row, numbers);
    const answer = this.engine.floats(numbers, this.rules.box || 1);
    return this.rules.box ? Array.from(answer) : answer[0];
  }

  text(viewer = -1) {
    return this.engine.text(this.engine.native.state_text(this.handle, viewer));
  }

  // The true state by name, hidden parts too: pages choose what they show.
  fields() {
    const start = this.engine.native.state_game(this.handle);
    const shown = {};
    for (const { name, type, offset, count } of this.engine.about.fields) {
      const Reader = READERS[type];
      const size = count * Reader.BYTES_PER_ELEMENT;
      shown[name] = new Reader(this.engine.bytes(start + offset, size).slice().buffer);
    }
    return shown;
  }

  save() {
    const { native } = this.engine;
    const size = native.state_size(this.handle);
    const room = native.alloc(size);
    native.state_save(this.handle, room);
    const saved = this.engine.bytes(room, size).slice();
    native.release(room);
    return saved;
  }

  // Replaces the position by one that `save` returned.
  load(saved) {
    const { native } = this.engine;
    const room = this.engine.put(saved);
    const wrong = this.engine.text(native.state_load(this.handle, room, saved.length));
    native.release(room);
    if (wrong) throw new Error(`${this.rules.name}: ${wrong}`);
  }

  setUp(numbers) {
    const { native } = this.engine;
    const room = this.engine.put(new Uint8Array(BigInt64Array.from(numbers, BigInt).buffer));
    const wrong = this.engine.text(native.state_setup(this.handle, room, numbers.length));
    native.release(room);
    if (wrong) throw new Error(`${this.rules.name}: ${wrong}`);
  }
}

export function fromBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

// An observation as numbers, one per feature.
export function widen(row, rules) {
  const view = new DataView(row.buffer, row.byteOffset);
  const read = {
    0: (at) => view.getUint8(at),
    1: (at) => view.getInt8(at),
    3: (at) => view.getInt16(at, true),
    7: (at) => view.getFloat32(at, true),
  };
  const sizes = { 0: 1, 1: 1, 3: 2, 7: 4 };
  const seen = [];
  for (const [first, count, offset, type, divisor] of rules.runs) {
    for (let i = 0; i < count; ++i)
      seen[first + i] = read[type](offset + sizes[type] * i) / divisor;
  }
  return seen;
}
