// The curves of a run as they come in: numbers by name, placed by minutes, decisions or updates.

import { isNumber } from "/app/words.js";

const CLOCK = "charts/decisions";
export const PLACES = ["minutes", "decisions", "updates"];

export class Store {
  constructor() {
    this.curves = new Map(); // name -> { updates, minutes, values, version }
    this.version = 0;
    this.kept = new Map(); // what was put together from several curves, until they change
  }

  // Takes what the server sends, { name: { update, seconds, value } }, and returns the names of
  // the curves that changed.
  add(curves) {
    const changed = new Set();
    for (const [name, { update, seconds, value }] of Object.entries(curves)) {
      if (!update.length) continue;
      const mine = this.curveOf(name);
      for (let row = 0; row < update.length; row += 1) {
        put(mine, update[row], seconds[row] / 60, value[row]);
      }
      mine.version = this.version + 1;
      changed.add(name);
    }
    this.version += changed.size ? 1 : 0;
    return changed;
  }

  clear() {
    this.curves.clear();
    this.kept.clear();
    this.version += 1;
  }

  curveOf(name) {
    let curve = this.curves.get(name);
    if (!curve) {
      curve = { updates: [], minutes: [], values: [], version: 0 };
      this.curves.set(name, curve);
    }
    return curve;
  }

  // Where the points of a curve lie on an axis. Decisions have a separate curve, with fewer
  // points where a run is long; between those they grow evenly.
  placed(curve, by) {
    if (by !== "decisions") return curve[by];
    const clock = this.curves.get(CLOCK);
    if (!clock) return curve.updates.map(() => NaN);
    if (curve === clock) return clock.values;
    if (curve.clocked !== clock.version || curve.decisions.length !== curve.updates.length) {
      curve.clocked = clock.version;
      curve.decisions = curve.updates.map((update) => between(clock, update));
    }
    return curve.decisions;
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
    if (!low) return { x: this.placed(curve, by), y: curve.values };
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
    return { x: this.placed(curve, by), y: curve.values, low: ends.low, high: ends.high };
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
    return { x: this.placed(first, by), ...stack.layers[at] };
  }

  // Where an update lies, for marks.
  place({ update, seconds, decisions }, by) {
    if (by === "updates") return update;
    if (by === "minutes" && isNumber(seconds)) return seconds / 60;
    if (by === "decisions" && isNumber(decisions)) return decisions;
    const clock = this.curves.get(CLOCK);
    if (!clock?.updates.length) return null;
    if (by === "decisions") return between(clock, update);
    return clock.minutes[Math.min(indexOf(clock.updates, update), clock.updates.length - 1)];
  }
}

// Points come in order, except for a few that two messages repeat.
function put(curve, update, minutes, value) {
  const at =
    update > (curve.updates.at(-1) ?? -1) ? curve.updates.length : indexOf(curve.updates, update);
  const known = curve.updates[at] === update ? 1 : 0;
  if (at === curve.updates.length) {
    curve.updates.push(update);
    curve.minutes.push(minutes);
    curve.values.push(value);
    return;
  }
  curve.updates.splice(at, known, update);
  curve.minutes.splice(at, known, minutes);
  curve.values.splice(at, known, value);
}

// A counter's value at an update.
function between({ updates, values }, update) {
  const right = indexOf(updates, update);
  if (updates[right] === update || right === 0) return values[right] ?? NaN;
  if (right >= updates.length) return values.at(-1);
  const share = (update - updates[right - 1]) / (updates[right] - updates[right - 1]);
  return values[right - 1] + share * (values[right] - values[right - 1]);
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
