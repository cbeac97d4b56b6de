// A trained network in this page. It is packed by src/sparring/web/networks.py and computed by
// csrc/wasm/network.hpp, in the module of its game.

const FORMAT = "sparring-network";
const VERSION = 2;
const NEW_LINE = 10;

export class Network {
  // `about` is the line of JSON in front of the numbers, `packed` all bytes.
  constructor(engine, about, handle, packed) {
    Object.assign(this, { engine, about, handle, packed, name: about.name });
    this.width = about.box ? 2 * about.box : about.actions;
  }

  // `bytes` are a Uint8Array or an ArrayBuffer. A network of another game or of flags with other
  // sizes is refused.
  static load(engine, bytes) {
    const all = new Uint8Array(bytes);
    const about = readHeader(all);
    checkFits(about, engine.rules);
    const body = all.subarray(all.indexOf(NEW_LINE) + 1);
    const handle = engine.native.network_new(engine.put(body), body.length / 4);
    return new Network(engine, about, handle, all);
  }

  // A network that everybody can sit down with while it is fetched. `about` is its line of JSON,
  // known before; `fetched(progress)` returns a promise of the bytes. Its moves wait for them.
  static coming(engine, about, fetched) {
    checkFits(about, engine.rules);
    const network = new Network(engine, about, 0, null);
    network.share = 0; // that has arrived
    network.wrong = null; // why it has not
    network.load = () => {
      network.wrong = null;
      network.ready = fetched((share) => (network.share = share)).then((bytes) => {
        const { handle, packed } = Network.load(engine, bytes);
        Object.assign(network, { handle, packed, share: 1 });
      });
      network.ready.catch((wrong) => (network.wrong = wrong)); // who waits for it hears of it too
    };
    network.load();
    return network;
  }

  free() {
    this.engine.native.network_free(this.handle);
    this.handle = 0;
  }

  // Outputs for a decision: `logits` (values of actions where it chooses by value),
  // `probabilities` of actions, or of continuous ones `mean` and `spread` before they are squashed
  // or cut off; `value` is what the seat is expected to be paid from here on, null if it does not
  // know.
  answer(state, row = 0) {
    const { engine, about, width } = this;
    const outputs = engine.floats(this.ask(state, row), width + 1);
    const value = about.values ? outputs[width] : null;
    if (about.box) {
      const mean = Array.from(outputs.subarray(0, about.box));
      const spread = Array.from(outputs.subarray(about.box, width), (s) =>
        Math.exp(Math.min(Math.max(s, -5), 1)),
      );
      return { logits: [], probabilities: [], value, mean, spread };
    }
    const shares = engine.native.network_probabilities(this.handle, engine.mask);
    return {
      logits: engine.floats(outputs.byteOffset, width).slice(),
      probabilities: engine.floats(shares, about.actions).slice(),
      value,
    };
  }

  // What it plays: a number, or an array of them. `temperature` 0: its best action, 1: drawn from
  // its probabilities, above 1: more freely. The same seed and step draw what `Policy.action` draws
  // in Python. A promise while the network is still being fetched.
  action(state, row = 0, { temperature = 0, seed = 0, step = 0 } = {}) {
    if (!this.handle) {
      return this.ready.then(() => this.action(state, row, { temperature, seed, step }));
    }
    const { engine, about } = this;
    this.ask(state, row);
    const bits = BigInt.asUintN(64, BigInt(seed));
    const [low, high] = [Number(bits & 0xffffffffn), Number(bits >> 32n)];
    const where = engine.native.network_draw(
      this.handle,
      engine.mask,
      temperature,
      low,
      high,
      0, // the number of a row that is alone, and its episode: as in Python
      0,
      step,
    );
    const chosen = engine.floats(where, about.box || 1);
    return about.box ? Array.from(chosen) : chosen[0];
  }

  // Answers in the module; returns where the numbers lie.
  ask(state, row) {
    const { engine } = this;
    const seat = state.seat(row);
    if (seat < 0) throw new Error("no seat is to act");
    const { native } = engine;
    native.state_observe(state.handle, seat, engine.row);
    engine.bytes(engine.mask, engine.rules.actions).fill(0);
    if (!this.about.box) native.state_legal(state.handle, row, engine.mask);
    return native.network_answer(this.handle, engine.row, engine.mask);
  }
}

// The header of a packed network, read without loading it.
export function readHeader(bytes) {
  let about = null;
  try {
    about = JSON.parse(new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(NEW_LINE))));
  } catch {
    throw new Error("this is no network of sparring");
  }
  if (about.format !== FORMAT) throw new Error("this is no network of sparring");
  if (about.version !== VERSION) {
    throw new Error(`a network of version ${about.version}; this page reads ${VERSION}: reload it`);
  }
  return about;
}

function checkFits(about, rules) {
  if (about.game !== rules.name) {
    throw new Error(`${about.name} plays ${about.game}, not ${rules.name}`);
  }
  if (about.rules_version !== rules.rules_version) {
    throw new Error(`${about.name} was trained under other rules of ${rules.name}`);
  }
  for (const size of ["obs_bytes", "actions", "box"]) {
    if (about[size] !== rules[size]) {
      const flags = Object.entries(about.flags).map(([key, value]) => `${key}=${value}`);
      throw new Error(`${about.name} was trained with ${flags.join(" ") || "the usual flags"}`);
    }
  }
}
