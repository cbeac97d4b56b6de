// A search in this module: csrc/search looks ahead, by a tree or, where cards are hidden, in worlds
// that the seat thinks possible; the network of the same module answers for every position that it
// meets.

const RULES = ["gumbel", "puct"]; // in the order of csrc/search
const FORM = /^(?:(\d+)|(\d+(?:\.\d+)?)(s|ms))(?:\/(gumbel|puct))?$/;
const MAX_SIMULATIONS = 50_000;
const MAX_SECONDS = 60;
const MAX_LINE = 32; // actions
const MAX_ROLES = 8; // of csrc/search

// "64", "2s", "500ms" and "800/puct" as {simulations, seconds, rule}; with seconds, `simulations`
// is the most that memory is set aside for. Where worlds are played, simulations are playouts.
export function readBudget(text, rules) {
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
  const usual = time ? "puct" : "gumbel";
  if (rules.search?.worlds && rule && rule !== usual) {
    throw new Error(`search ${text}: ${rules.name} hides cards, so no tree is grown by ${rule}`);
  }
  return { simulations, seconds, rule: rule ?? usual };
}

// Why an agent cannot search a game, "" if it can. `about` has the facts of a network.
export function whyNoSearch(rules, about) {
  if (!rules.search) return `${rules.name} has no search`;
  if (about.by_value) {
    return `${about.name} learned values of actions: there is no policy to search with`;
  }
  if (!about.values) return `${about.name} has no values to search with`;
  if (rules.search.worlds && about.kind === "hierarchy") {
    return `${about.name} has a network for every role, whose values are of different rewards`;
  }
  return "";
}

// One decision that is being searched.
export class Search {
  // The state is copied. `wish` has {simulations, rule, seed, noise}; other settings, named as in
  // Python, are those of the rules unless it has them, and discounts those of the training.
  constructor(network, state, row, wish) {
    const { engine, about } = network;
    const why = whyNoSearch(engine.rules, about);
    if (why) throw new Error(why);
    if (state.seat(row) < 0) throw new Error("no seat is to act");
    Object.assign(this, { engine, native: engine.native, rules: engine.rules });
    const usual = engine.rules.search;
    const believes = about.belief && (wish.belief ?? usual.belief);
    const eta = believes ? usual.eta : usual.uniform_eta;
    const settings = { ...usual, eta, gamma: about.gamma, ...wish, row };
    const room = engine.put(packWish(inRewards(settings, about)));
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

  // What is known so far: `value` of the seat to move, `action` to play, and by action `visits` (in
  // worlds: playouts), `q` (0 where nothing was tried) and the improved `policy`; `line` has the
  // actions that follow.
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

// Settings over worlds are per unit of return, which is that of the network's values.
function inRewards(settings, { value_unit, gamma_into }) {
  const { gamma, worlds, eta, alpha } = settings;
  if (!worlds) return settings;
  const unit = value_unit > 0 ? value_unit : settings.unit;
  const into = Array.from({ length: MAX_ROLES }, (_, role) => gamma_into[role] ?? gamma);
  return { ...settings, eta: eta / unit, alpha: alpha * unit, into };
}

// As SearchWish of csrc/wasm/search.hpp lies in memory; settings of the other search are 0.
const WHOLE =
  "row simulations noise considered rule rescale width samples least horizon belief".split(" ");
const NUMBERS = "gamma c_visit c_scale c_puct eta alpha caution".split(" ");

function packWish(wish) {
  const rule = RULES.indexOf(wish.rule);
  const whole = WHOLE.map((name) => Number({ ...wish, rule }[name] ?? 0));
  const numbers = [...NUMBERS.map((name) => wish[name] ?? 0), ...(wish.into ?? [])];
  const view = new DataView(new ArrayBuffer(8 + 4 * (WHOLE.length + NUMBERS.length + MAX_ROLES)));
  view.setBigUint64(0, BigInt.asUintN(64, BigInt(wish.seed ?? 0)), true);
  whole.forEach((number, at) => view.setInt32(8 + 4 * at, number, true));
  const first = 8 + 4 * WHOLE.length;
  numbers.forEach((number, at) => view.setFloat32(first + 4 * at, number, true));
  return new Uint8Array(view.buffer);
}
