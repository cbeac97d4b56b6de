// The cursor that all charts of a board share, and the zoom: by pointer and by keys.

import { AXES } from "/app/charts/board.js";
import { BOTTOM, LEFT, RIGHT, TOP } from "/app/charts/scale.js";
import { setAll } from "/app/dom.js";
import { short } from "/app/words.js";

export function listen(chart) {
  const { over, board, band } = chart;
  let from = null;
  const placeOf = (event) => {
    const { toX, from: low, to, width } = chart.drawn;
    const x = event.clientX - over.getBoundingClientRect().left;
    const share = (x - toX(low)) / (width - LEFT - RIGHT);
    return Math.min(to, Math.max(low, low + share * (to - low)));
  };
  over.addEventListener("pointermove", (event) => {
    if (!chart.drawn) return;
    const place = placeOf(event);
    board.point(place);
    if (from === null) return;
    const ends = [chart.drawn.toX(Math.min(from, place)), chart.drawn.toX(Math.max(from, place))];
    const height = chart.drawn.height - BOTTOM - TOP;
    setAll(band, { x: ends[0], y: TOP, width: ends[1] - ends[0], height, visibility: "visible" });
  });
  over.addEventListener("pointerleave", () => from === null && board.point(null));
  over.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0 || !chart.drawn) return;
    from = placeOf(event);
    over.setPointerCapture(event.pointerId);
  });
  const done = (event) => {
    if (from === null || !chart.drawn) return;
    const ends = [from, placeOf(event)].sort((a, b) => a - b);
    from = null;
    band.setAttribute("visibility", "hidden");
    const { toX } = chart.drawn;
    if (event.type === "pointerup" && toX(ends[1]) - toX(ends[0]) > 8) board.zoom(ends);
  };
  over.addEventListener("pointerup", done);
  over.addEventListener("pointercancel", done);
  over.addEventListener("dblclick", () => board.zoom(null));
  over.addEventListener("keydown", (event) => byKey(chart, event));
  over.addEventListener("blur", () => board.point(null));
}

function byKey(chart, event) {
  if (!chart.drawn || event.ctrlKey || event.metaKey || event.altKey) return;
  const { board, over } = chart;
  const { from, to } = chart.drawn;
  const at = board.cursor ?? to;
  const step = (to - from) / 50;
  const moves = { ArrowLeft: at - step, ArrowRight: at + step, Home: from, End: to };
  if (event.key in moves) {
    const place = Math.min(to, Math.max(from, moves[event.key]));
    board.point(place);
    chart.point(place);
    const values = chart.spec.series.map(({ name }, i) => `${name} ${chart.values[i].textContent}`);
    over.setAttribute("aria-valuenow", String(place));
    over.setAttribute("aria-valuemax", String(to));
    over.setAttribute(
      "aria-valuetext",
      `${short(place)} ${AXES[board.by].name}: ${values.join(", ")}`,
    );
  } else if (event.key === "+") {
    const half = (to - from) / 4;
    board.zoom([Math.max(0, at - half), Math.max(0, at - half) + 2 * half]);
  } else if (event.key === "-" || event.key === "Escape") board.zoom(null);
  else return;
  event.preventDefault();
}
