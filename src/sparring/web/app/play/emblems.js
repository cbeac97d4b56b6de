// A small drawing for every game, in the color of the text around it.

import { svg } from "/app/dom.js";

const LINE = { fill: "none", stroke: "currentColor", "stroke-width": 3, "stroke-linecap": "round" };
const FULL = { fill: "currentColor" };
// Paths in a box of 96 by 48: [d, how it is drawn].
const EMBLEMS = {
  tic_tac_toe: [
    ["M16 12 40 36M40 12 16 36", LINE],
    ["M68 11a13 13 0 1 1-.1 0", LINE],
  ],
  connect_four: [
    ["M22 7h52v34H22z", LINE],
    ["M34 17a5 5 0 1 0 .1 0M48 17a5 5 0 1 0 .1 0M62 17a5 5 0 1 0 .1 0", LINE],
    ["M34 29a5 5 0 1 0 .1 0M48 29a5 5 0 1 0 .1 0M62 29a5 5 0 1 0 .1 0", FULL],
  ],
  kuhn_poker: [
    ["M17 7h16v34H17zM40 7h16v34H40zM63 7h16v34H63z", LINE],
    [
      "M27 18v9c0 4-5 4-5 0M48 18a4 6 0 1 1-.1 0m2 9 3 4M68 18v13m0-6 6-7m-5 6 6 7",
      { ...LINE, "stroke-width": 2 },
    ],
  ],
  leduc_poker: [
    ["M22 7h22v34H22zM52 7h22v34H52z", LINE],
    ["M33 16c-3 5-7 6-7 10a4 4 0 0 0 6 3l-2 5h6l-2-5a4 4 0 0 0 6-3c0-4-4-5-7-10Z", FULL],
    ["M63 33c-5-4-8-7-8-10a4 4 0 0 1 8-2 4 4 0 0 1 8 2c0 3-3 6-8 10Z", FULL],
  ],
  skull_king: [
    ["M48 6c-10 0-16 7-16 15 0 6 3 9 6 11v7h20v-7c3-2 6-5 6-11 0-8-6-15-16-15Z", LINE],
    ["M41 19a4 4 0 1 0 .1 0M55 19a4 4 0 1 0 .1 0M48 27l-2.5 5h5z", FULL],
  ],
  kuhhandel: [
    ["M34 10c-7-3-9 4-2 7m30-7c7-3 9 4 2 7", LINE],
    ["M34 12h28c2 10-2 14-4 20-1 6-5 9-10 9s-9-3-10-9c-2-6-6-10-4-20Z", LINE],
    [
      "M42 20a2.5 2.5 0 1 0 .1 0M54 20a2.5 2.5 0 1 0 .1 0M44 33a2 2 0 1 0 .1 0M52 33a2 2 0 1 0 .1 0",
      FULL,
    ],
  ],
  shogi: [
    ["M48 5 62 11 66 42H30l4-31z", LINE],
    ["M40 18h16M48 18v16M41 26h14M38 34h20", LINE],
  ],
  laser_hockey: [
    ["M26 12c8 7 8 17 0 24M70 12c-8 7-8 17 0 24", { ...LINE, "stroke-width": 5 }],
    ["M48 20a4.5 4.5 0 1 0 .1 0", FULL],
    ["M48 5v8M48 36v7", LINE],
  ],
  cage2: [
    ["M48 5 66 11v12c0 10-8 16-18 20-10-4-18-10-18-20V11z", LINE],
    ["M40 24l6 6 11-12", LINE],
  ],
};
EMBLEMS.laser_hockey_discrete = [
  ...EMBLEMS.laser_hockey.slice(0, 2),
  ["M48 3v7M48 39v6M38 24h-4M62 24h-4", LINE],
];

export function drawEmblem(game) {
  const shapes = EMBLEMS[game] ?? [["M30 8h36v32H30z", LINE]];
  return svg(
    "svg",
    { viewBox: "0 0 96 48", "aria-hidden": "true" },
    shapes.map(([d, look]) => svg("path", { d, ...look, "stroke-linejoin": "round" })),
  );
}
