// The numbers of a chart as a table.

import { AXES } from "/app/charts/board.js";
import { el } from "/app/dom.js";
import { MISSING, shown } from "/app/words.js";

const MAX_ROWS = 200;

// Rows are the places of all lines, the last first; of many, every so manieth.
export function numbersTable(spec, lines, by) {
  const found = new Map();
  for (const [at, { x, y, rows }] of lines.entries()) {
    for (let row = rows[0]; row < rows[1]; row += 1) {
      if (!found.has(x[row])) found.set(x[row], Array(lines.length).fill(null));
      found.get(x[row])[at] = y[row];
    }
  }
  const places = [...found.keys()].sort((a, b) => b - a);
  const step = Math.ceil(places.length / MAX_ROWS) || 1;
  const heads = [AXES[by].name, ...spec.series.map(({ name }) => name)];
  return el(
    "table",
    {},
    el("caption", { class: "out-of-sight" }, spec.title),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((name) => el("th", { scope: "col", class: "number" }, name)),
      ),
    ),
    el(
      "tbody",
      {},
      places
        .filter((_, at) => at % step === 0)
        .map((place) =>
          el(
            "tr",
            {},
            el(
              "th",
              { scope: "row", class: "number" },
              shown(place, by === "minutes" ? "" : "rate"),
            ),
            found
              .get(place)
              .map((value) =>
                el("td", { class: "number" }, value === null ? MISSING : shown(value, spec.form)),
              ),
          ),
        ),
    ),
  );
}
