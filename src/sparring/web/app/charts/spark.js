// A line as small as a word.

import { svg } from "/app/dom.js";
import { linePath } from "/app/charts/paths.js";
import { scale } from "/app/charts/scale.js";

const WIDTH = 96;
const HEIGHT = 22;

export function spark(values, label) {
  const there = values.filter((value) => value !== null && Number.isFinite(value));
  const root = svg("svg", {
    class: "spark",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    width: WIDTH,
    height: HEIGHT,
    role: "img",
    "aria-label": label,
  });
  if (there.length < 2) return root;
  const x = values.map((_, at) => at);
  const low = Math.min(...there);
  const high = Math.max(...there);
  const toX = scale([0, values.length - 1], [2, WIDTH - 4]);
  const toY = scale([low, high === low ? low + 1 : high], [HEIGHT - 3, 3]);
  root.append(
    svg("path", { class: "line c0", d: linePath(x, values, toX, toY, [0, values.length]) }),
    svg("circle", { class: "c0", cx: toX(values.length - 1), cy: toY(there.at(-1)), r: 2.2 }),
  );
  return root;
}
