// Small drawings as data: [element, attributes], from which any number of pictures is made.

import { svg } from "/app/dom.js";

export function path(d, fill, more = {}) {
  return ["path", { d, fill, ...more }];
}

export function stroke(d, color, width = 4) {
  const round = { "stroke-linecap": "round", "stroke-linejoin": "round" };
  return ["path", { d, fill: "none", stroke: color, "stroke-width": width, ...round }];
}

export function dot(cx, cy, r, fill, more = {}) {
  return ["circle", { cx, cy, r, fill, ...more }];
}

export function oval(cx, cy, rx, ry, fill, more = {}) {
  return ["ellipse", { cx, cy, rx, ry, fill, ...more }];
}

export function block(x, y, width, height, fill, rx = 3) {
  return ["rect", { x, y, width, height, fill, rx }];
}

// The same drawing elsewhere.
export function moved(art, transform) {
  return art.map(([name, look]) => [name, { ...look, transform }]);
}

export function drawn(art) {
  return art.map(([name, look]) => svg(name, look));
}
