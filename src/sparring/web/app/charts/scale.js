// From values to pixels, and where the lines of a grid are.

import { MISSING, isNumber, short } from "/app/words.js";

export const LEFT = 46; // pixels around a plot
export const RIGHT = 14;
export const TOP = 8;
export const BOTTOM = 24;

// Returns a function from values to pixels.
export function scale([low, high], [from, to], log = false) {
  const f = log ? Math.log10 : (value) => value;
  const start = f(low);
  const span = f(high) - start || 1;
  return (value) => from + ((f(value) - start) / span) * (to - from);
}

// Round values between two ends, `most` at most.
export function ticks(low, high, most) {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [low];
  const raw = span / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) {
    found.push(at * step);
  }
  return found;
}

// Powers of ten, with 2 and 5 between them where there is room.
export function logTicks(low, high, most) {
  const found = [];
  const wide = Math.log10(high / low) > most / 3;
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const digit of wide ? [1] : [1, 2, 5]) {
      const value = digit * 10 ** power;
      if (value >= low && value <= high) found.push(value);
    }
  }
  return found.length > 1 ? found : ticks(low, high, most);
}

export function tickText(value, form, step) {
  if (!isNumber(value)) return MISSING;
  if (value === 0) return form === "percent" ? "0 %" : "0";
  if (form === "percent") return `${Number((100 * value).toFixed(step < 0.01 ? 1 : 0))} %`;
  if (Math.abs(value) >= 10000 || form === "rate") return short(value);
  if (step < 1e-4) return value.toExponential(0);
  const digits = step >= 1 ? 0 : Math.min(6, Math.ceil(-Math.log10(step) + (isHalf(step) ? 1 : 0)));
  return value.toFixed(Math.max(0, digits));
}

function isHalf(step) {
  const first = step / 10 ** Math.floor(Math.log10(step));
  return Math.abs(first - 2.5) < 1e-6;
}
