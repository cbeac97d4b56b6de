// Numbers, times and states as people read them.

const NUMBER = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const UNITS = [
  [1e12, "T"],
  [1e9, "B"],
  [1e6, "M"],
  [1e3, "k"],
];
export const MISSING = "–";

export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

// 1234567 -> 1.23M
export function short(value) {
  if (!isNumber(value)) return MISSING;
  const size = Math.abs(value);
  const [unit, letter] = UNITS.find(([least]) => size >= least * 0.9995) ?? [1, ""];
  if (unit === 1) return size >= 100 ? WHOLE.format(value) : NUMBER.format(value);
  return `${Number((value / unit).toPrecision(3))}${letter}`;
}

export function whole(value) {
  return isNumber(value) ? WHOLE.format(value) : MISSING;
}

export function percent(value, digits = 1) {
  return isNumber(value) ? `${(100 * value).toFixed(digits)} %` : MISSING;
}

// A value as its chart or column shows it: "percent", "rate" (short), "number".
export function shown(value, form = "number") {
  if (!isNumber(value)) return MISSING;
  if (form === "percent") return percent(value);
  if (form === "rate" || Math.abs(value) >= 10000) return short(value);
  if (value !== 0 && Math.abs(value) < 0.001) return value.toExponential(1);
  return NUMBER.format(value);
}

export function minutes(value) {
  if (!isNumber(value)) return MISSING;
  if (value < 1) return `${Math.round(60 * value)} s`;
  if (value < 10) return `${value.toFixed(1)} min`;
  if (value < 120) return `${Math.round(value)} min`;
  if (value < 48 * 60) return `${(value / 60).toFixed(1)} h`;
  return `${(value / 1440).toFixed(1)} days`;
}

export function bytes(value) {
  if (!isNumber(value)) return MISSING;
  if (value < 1e6) return `${Math.max(1, Math.round(value / 1e3))} KB`;
  return value < 1e9 ? `${(value / 1e6).toFixed(1)} MB` : `${(value / 1e9).toFixed(2)} GB`;
}

// How long ago something was, by an ISO date.
export function ago(date, now = Date.now()) {
  const seconds = (now - Date.parse(date)) / 1000;
  if (!Number.isFinite(seconds)) return MISSING;
  if (seconds < 90) return "just now";
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return new Date(date).toISOString().slice(0, 10);
}

// tricks_under -> Tricks under
export function titled(name) {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

// A setting's value as it is typed.
export function typed(value) {
  if (Array.isArray(value)) return value.map(typed).join(" ") || "none";
  if (value === "" || value === null || value === undefined) return "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function runAddress(name) {
  return `#/runs/${encodeURIComponent(name)}`;
}
