// A tree search in this module: csrc/search looks ahead, and the network of the same module answers
// for every position that it meets.

const RULES = ["gumbel", "puct"]; // in the order of csrc/search
const FORM = /^(?:(\d+)|(\d+(?:\.\d+)?)(s|ms))(?:\/(gumbel|puct))?$/;
const MAX_SIMULATIONS = 50_000;
const MAX_SECONDS = 60;
const MAX_LINE = 32; // actions

// "64", "2s", "500ms" and "800/puct" as {simulations, seconds, rule}; with seconds, `simulations`
// is the most that memory is set aside for.
export function readBudget(text) {
  const [found, count, time, unit, rule] = FORM.exec(text) ?? [];
  const seconds = time ? Number(time) / (unit === "ms" ? 1000 : 1) : 0;
  const simulations = time ? MAX_SIMULATIONS : Number(count);
  const fits = time ? seconds > 0 && seconds <= MAX_SECONDS : simulations <= MAX_SIMULATIONS;
  if (!found || !(simulations > 0) || !fits) {
    throw new Error(
      `search ${text}: write simulations up to ${MAX_SIMULATIONS}, or a time up to ` +
        `${MAX_SECONDS}s, such as 64, 2s, 500ms or 800/puct`,
    );
  }
  // Sequential halving has to know the number of simulations beforehand.
  return { simulations, seconds, rule: rule ?? (time ? "puct" : "gumbel") };
}

// Whether an agent can search a game: a tree needs open cards, a policy and values. `about` has the
// facts of a network.
export function canSearch(rules, about) {
  return Boolean(rules.search) && Boolean(about.values) && !about.by_value;
}

// One decision that is being searched.
export class Search {
  // The state is copied. `wish` has {simulations, rule, seed, noise}; the other settings are those
  // of the rules, and the discount that of the training.
  constructor(network, state, row, wish) {
    const { engine, about } = network;
    if (!canSearch(engine.rules, about)) {
      throw new Error(`${network.name} cannot search ${engine.rules.name}`);
    }
    if (state.seat(row) < 0) throw new Error("no seat is to act");
    Object.assign(this, { engine, native: engine.native, rules: engine.rules });
    const room = engine.put(packWish({ ...engine.rules.search, gamma: about.gamma, ...wish, row }));
    this.handle = this.native.search_new(state.handle, network.handle, room);
    this.native.release(room);
  }

  free() {
    this.native.search_free(this.handle);
    this.handle = 0;
  }

  // Makes `count` simulations, or those that are left; returns how many are left then.
  run(count) {
    return this.native.search_run(this.handle, count);
  }

  // What is known so far: `value` of the seat to move, `action` to play, and by action `visits`, `q`
  // (0 where nothing was tried) and the improved `policy`; `line` has the actions that follow.
  found() {
    const { native, handle, rules, engine } = this;
    const value = native.search_value(handle);
    const width = native.search_choices(handle);
    const floats = (address, count = width) => Array.from(engine.floats(address, count));
    const action = floats(native.search_action(handle), rules.box || 1);
    const whole = new Int32Array(native.memory.buffer, native.search_visits(handle), width);
    return {
      action: rules.box ? action : action[0],
      value,
      visits: Array.from(whole),
      q: floats(native.search_q(handle)),
      policy: floats(native.search_policy(handle)),
      line: this.line(),
      simulations: native.search_simulations(handle),
      nodes: native.search_nodes(handle),
    };
  }

  line() {
    const { native, numbers } = this.engine;
    const count = native.search_line(this.handle, numbers, MAX_LINE);
    return Array.from(new Int32Array(native.memory.buffer, numbers, count));
  }
}

// As SearchWish of csrc/wasm/search.hpp lies in memory.
function packWish(wish) {
  const { row, simulations, rule, noise = false, rescale, seed = 0 } = wish;
  const view = new DataView(new ArrayBuffer(56));
  const whole = [row, simulations, RULES.indexOf(rule), Number(noise), Number(rescale)];
  const more = [wish.considered, wish.width, wish.samples];
  [...whole, ...more].forEach((number, at) => view.setInt32(4 * at, number, true));
  const numbers = [wish.c_visit, wish.c_scale, wish.c_puct, wish.gamma];
  numbers.forEach((number, at) => view.setFloat32(32 + 4 * at, number, true));
  view.setBigUint64(48, BigInt.asUintN(64, BigInt(seed)), true);
  return new Uint8Array(view.buffer);
}
