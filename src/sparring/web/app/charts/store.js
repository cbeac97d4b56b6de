// The curves of a run as they come in: numbers by name, placed by minutes, decisions or updates.

export const PLACES = ["minutes", "decisions", "updates"];

export class Store {
  constructor() {
    this.curves = new Map(); // name -> { updates, minutes, decisions, values }
    this.last = 0;
    this.version = 0;
    this.kept = new Map(); // what was put together from several curves, until they change
  }

  // Takes what the server sends and returns the names of the curves that changed.
  add({ last, x, curves }) {
    const changed = new Set();
    for (const [name, { x: at, values }] of Object.entries(curves)) {
      const column = x[at];
      if (!values.length) continue;
      const mine = this.curveOf(name);
      forgetFrom(mine, column.updates[0]);
      append(mine.updates, column.updates);
      append(
        mine.minutes,
        column.seconds.map((s) => s / 60),
      );
      append(mine.decisions, column.decisions ?? column.updates.map(() => NaN));
      append(mine.values, values);
      mine.version = this.version + 1;
      changed.add(name);
    }
    this.version += changed.size ? 1 : 0;
    this.last = last ?? this.last;
    return changed;
  }

  curveOf(name) {
    let curve = this.curves.get(name);
    if (!curve) {
      curve = { updates: [], minutes: [], decisions: [], values: [], version: 0 };
      this.curves.set(name, curve);
    }
    return curve;
  }

  get names() {
    return [...this.curves.keys()];
  }

  has(name) {
    return this.curves.has(name);
  }

  lastOf(name) {
    return this.curves.get(name)?.values.findLast((value) => value !== null);
  }

  // A line with its band: { x, y, low, high }.
  line(name, by, low = null, high = null) {
    const curve = this.curves.get(name);
    if (!curve) return { x: [], y: [] };
    if (!low) return { x: curve[by], y: curve.values };
    const key = `${name} ${low} ${high}`;
    let ends = this.kept.get(key);
    if (!ends || ends.version !== curve.version) {
      ends = {
        version: curve.version,
        low: matched(curve.updates, this.curves.get(low)),
        high: matched(curve.updates, this.curves.get(high)),
      };
      this.kept.set(key, ends);
    }
    return { x: curve[by], y: curve.values, low: ends.low, high: ends.high };
  }

  // Shares on top of one another: layer `at` of several curves that add up to one.
  layer(names, at, by) {
    const first = this.curves.get(names[0]);
    if (!first) return { x: [], y: [] };
    const key = names.join(" ");
    let stack = this.kept.get(key);
    if (!stack || stack.version !== this.version) {
      stack = { version: this.version, layers: stacked(names, first, this.curves) };
      this.kept.set(key, stack);
    }
    return { x: first[by], ...stack.layers[at] };
  }

  // Where an update lies, for marks.
  place(update, seconds, by) {
    if (by === "updates") return update;
    if (by === "minutes" && seconds !== undefined && seconds !== null) return seconds / 60;
    const clock = this.curves.get("charts/decisions") ?? this.curves.values().next().value;
    if (!clock?.updates.length) return null;
    return clock[by][Math.min(indexOf(clock.updates, update), clock.updates.length - 1)];
  }
}

// A resumed run begins again where its checkpoint was: what came after that is forgotten.
function forgetFrom(curve, update) {
  const cut = indexOf(curve.updates, update);
  if (cut >= curve.updates.length) return;
  for (const column of [curve.updates, curve.minutes, curve.decisions, curve.values]) {
    column.length = cut;
  }
}

function append(column, more) {
  for (const value of more) column.push(value);
}

// The first index whose value is not below the one that is looked for.
export function indexOf(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Another curve's values at the same updates, null where it has none.
function matched(updates, other) {
  if (!other) return updates.map(() => null);
  let at = 0;
  return updates.map((update) => {
    while (at < other.updates.length && other.updates[at] < update) at += 1;
    return other.updates[at] === update ? other.values[at] : null;
  });
}

function stacked(names, first, curves) {
  const columns = names.map((name) => matched(first.updates, curves.get(name)));
  const layers = names.map(() => ({ y: [], low: [], high: [] }));
  for (let row = 0; row < first.updates.length; row += 1) {
    const total = columns.reduce((sum, column) => sum + (column[row] ?? 0), 0) || 1;
    let below = 0;
    for (const [at, column] of columns.entries()) {
      const share = (column[row] ?? 0) / total;
      layers[at].y.push(share);
      layers[at].low.push(below);
      layers[at].high.push(below + share);
      below += share;
    }
  }
  return layers;
}

// A debiased moving average that forgets by `weight` per point; what is missing stays missing.
export function smoothed(values, weight) {
  let mean = 0;
  let mass = 0;
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return null;
    mean = weight * mean + (1 - weight) * value;
    mass = weight * mass + (1 - weight);
    return mean / mass;
  });
}
