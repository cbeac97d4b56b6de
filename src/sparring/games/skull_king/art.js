// The drawings on Skull King's cards, each in a square of 100 by 100, as [element, attributes].

import { block, dot, moved, path, stroke } from "/app/play/drawing.js";

const BONE = "#f4efe0";
const NIGHT = "#1b2129";
const GOLD = "#f0b429";
const WOOD = "#8a5a2b";

function skull(bone, hollow) {
  return [
    path(
      "M50 14c-20 0-31 12-31 28 0 10 5 16 11 20v12h40V62c6-4 11-10 11-20 0-16-11-28-31-28z",
      bone,
    ),
    dot(38, 43, 8, hollow),
    dot(62, 43, 8, hollow),
    path("M50 51l-5 10h10z", hollow),
    stroke("M42 66v8M50 66v8M58 66v8", hollow, 3),
  ];
}

const crossbones = [
  stroke("M16 66L84 94M84 66L16 94", BONE, 8),
  ...[
    [14, 63],
    [12, 71],
    [86, 63],
    [88, 71],
    [14, 97],
    [12, 89],
    [86, 97],
    [88, 89],
  ].map(([x, y]) => dot(x, y, 5, BONE)),
];

const roger = [...crossbones, ...skull(BONE, NIGHT)];

const parrot = [
  stroke("M10 92h80", WOOD, 6),
  path("M52 58c6 14 16 28 30 38-16 2-32-6-40-20z", "#d9402a"),
  path("M28 44c-2-20 12-34 28-30 14 4 20 16 18 32-2 22-14 38-30 44-10-14-15-30-16-46z", "#e9f7dd"),
  path("M54 42c14 2 20 14 16 28-3 9-9 15-15 18-8-14-10-30-1-46z", "#f0b429"),
  dot(45, 31, 5.5, "#17351f"),
  dot(46.5, 29.5, 1.8, "#ffffff"),
  path("M29 33c-11 0-17 6-16 17 5-4 10-5 16-4z", "#f6c243"),
  stroke("M42 88v6M52 86v8", "#f6c243", 4),
];

const map = [
  path("M12 24l25-8 26 8 25-8v62l-25 8-26-8-25 8z", "#f6e7c1"),
  path("M37 16l26 8v62l-26-8z", "#e6d09b"),
  stroke("M22 38c10-6 18 4 14 14s8 16 18 10 10-14 16-18", "#8b3f2b", 3),
  stroke("M66 40l12 12M78 40L66 52", "#c4281c", 5),
  dot(22, 38, 4, "#2b6a8c"),
  stroke("M20 62c4-3 7 3 11 0M44 30c4-3 7 3 11 0", "#2b6a8c", 2.5),
];

const chest = [
  path("M16 46c0-18 12-26 34-26s34 8 34 26z", "#8c5527"),
  block(16, 46, 68, 36, "#75431b", 4),
  stroke("M16 46h68", "#ffe08a", 6),
  path("M30 22c-4 6-5 14-5 24v36h9V46c0-10 1-18 4-25z", "#c99a2e"),
  path("M70 22c4 6 5 14 5 24v36h-9V46c0-10-1-18-4-25z", "#c99a2e"),
  block(42, 44, 16, 18, GOLD, 3),
  dot(50, 51, 3, NIGHT),
  path("M48.6 52h2.800l1.2 7h-5.200z", NIGHT),
];

const king = [
  stroke("M14 62L86 96M86 62L14 96", "#e9d9a6", 6),
  ...moved(skull("#fff6dc", "#4d0b08"), "translate(0 10)"),
  path("M20 28L16 2l18 12L50-2l16 16L84 2l-4 26c-18-6-42-6-60 0z", GOLD),
  dot(50, 17, 4.5, "#c4281c"),
  dot(31, 20, 3, "#2b6a8c"),
  dot(69, 20, 3, "#2b6a8c"),
];

// A pirate's hat, hair and extras differ; the face is the same.
function pirate(coat, hat, extras, skin = "#e9b78d") {
  return [
    path("M14 100c2-20 16-28 36-28s34 8 36 28z", coat),
    path("M42 62h16v16c-5 6-11 6-16 0z", skin),
    path("M29 40c0 22 9 34 21 34s21-12 21-34c0-12-42-12-42 0z", skin),
    dot(42, 48, 3, NIGHT),
    dot(58, 48, 3, NIGHT),
    stroke("M43 63c4 3 10 3 14 0", "#7b2f22", 3),
    path("M8 38C10 16 28 6 50 6s40 10 42 32c-12-8-26-11-42-11S20 30 8 38z", hat),
    ...extras,
  ];
}

const badge = moved(skull(BONE, NIGHT), "translate(41 9) scale(.18)");

const pirates = [
  // Rosie: red hair and a rose.
  [
    path(
      "M26 38c-10 20-8 40-2 52 10-6 8-30 10-50zM74 38c10 20 8 40 2 52-10-6-8-30-10-50z",
      "#b4441f",
    ),
    ...pirate("#7d1f3d", "#31111c", [dot(74, 22, 8, "#e0466b"), dot(74, 22, 3.5, "#8e1a38")]),
    stroke("M45 62c3 3 7 3 10 0", "#c4281c", 4),
  ],
  // Bendt: a braided beard.
  pirate("#27445c", NIGHT, [
    path("M31 54c2 16 8 26 19 38 11-12 17-22 19-38-8 6-30 6-38 0z", "#c98a3a"),
    stroke("M44 60c4 3 8 3 12 0", "#7b2f22", 3),
    ...badge,
  ]),
  // Rascal: an eye patch.
  pirate("#3c5a2c", "#2a2140", [
    stroke("M28 40l42 14", NIGHT, 3),
    path("M34 42h15v7c-3 6-11 6-14 0z", NIGHT),
    stroke("M36 58c8-5 20-5 28 0", "#5b351a", 4),
    ...badge,
  ]),
  // Juanita Jade: green scarf, dark hair, spyglass.
  [
    path("M24 36c-8 18-6 36 2 46h48c8-10 10-28 2-46z", "#241611"),
    ...pirate(
      "#0f6b56",
      "#128a6a",
      [stroke("M62 62l26-14", GOLD, 8), dot(88, 47, 5, "#cfeff4"), dot(29, 60, 3, GOLD)],
      "#c98d62",
    ),
  ],
  // Harry: a giant with a black beard.
  pirate("#5a2d12", "#8a1c14", [
    path("M29 50c-1 24 8 40 21 40s22-16 21-40c-6 10-36 10-42 0z", "#2b1b14"),
    stroke("M43 65c4 2 10 2 14 0", "#e9b78d", 3),
    dot(71, 56, 4, "none", { stroke: GOLD, "stroke-width": 2 }),
    ...badge,
  ]),
];

const mermaid = [
  path("M0 78c10-8 20 6 30-2s20 6 30-2 20 6 40-4v30H0z", "#2c88a8"),
  path("M44 56c16 0 30 6 32 20 1 8-4 14-12 14-14 0-26-10-32-22z", "#1fa88d"),
  path("M74 82c4-14 12-22 24-24-2 8-2 12 0 18-8 0-12 4-16 12z", "#17806c"),
  path("M28 66c0-16 6-24 16-24s16 8 16 20c-8 8-24 10-32 4z", "#f1c39d"),
  path(
    "M26 30c0-16 12-24 24-22 14 2 18 14 14 26-2 10 4 16 8 20-12 2-18-4-20-12-8-4-18-2-20 6-4 10-2 18-6 24-8-12-2-26 0-42z",
    "#d2562a",
  ),
  path("M34 28c2-6 20-8 24 0 0 12-6 18-12 18s-12-6-12-18z", "#f1c39d"),
  dot(41, 31, 2, NIGHT),
  dot(51, 31, 2, NIGHT),
  stroke("M43 39c2 2 4 2 6 0", "#b03a2e", 2),
  path("M32 58c4-4 10-2 12 2-2 6-10 6-12-2zM46 59c4-3 10-2 12 3-4 5-10 3-12-3z", "#7a3f9d"),
  stroke("M2 88c10-8 20 6 30-2s20 6 30-2 20 6 36-4", "#8fd3e6", 3),
];

const kraken = [
  path("M50 8c-20 0-30 14-30 32 0 10 4 18 8 24h44c4-6 8-14 8-24C80 22 70 8 50 8z", "#d65a4a"),
  stroke("M30 60c-4 14-18 14-22 4s6-18 12-10M40 64c-2 18-14 30-26 26s-4-18 4-12", "#d65a4a", 9),
  stroke("M70 60c4 14 18 14 22 4s-6-18-12-10M60 64c2 18 14 30 26 26s4-18-4-12", "#d65a4a", 9),
  stroke("M50 64c0 14-8 20-4 30", "#d65a4a", 9),
  dot(39, 42, 9, "#fff4cf"),
  dot(61, 42, 9, "#fff4cf"),
  dot(40, 44, 4, NIGHT),
  dot(60, 44, 4, NIGHT),
  stroke("M28 30l16 6M72 30l-16 6", "#7d2319", 4),
  ...[38, 46, 54, 62].map((x) => dot(x, 20 + Math.abs(x - 50) / 3, 2.5, "#f0917f")),
];

const whale = [
  path("M0 74c12-6 22 4 34 0s22 4 34 0 20 4 32-2v28H0z", "#2f78b5"),
  path(
    "M8 62c0-22 18-34 42-34 16 0 26 8 32 18 4-2 6-8 4-18 8 2 12 6 14 14-2 22-18 38-48 38-26 0-44-4-44-18z",
    "#f7fbff",
  ),
  path("M8 62c12 8 40 10 62 2-8 10-24 16-40 16C16 78 8 72 8 62z", "#cfdcea"),
  dot(26, 52, 3.5, NIGHT),
  stroke("M10 62c8 4 14 4 20 2", "#7c93ab", 3),
  stroke("M44 24c0-8-6-12-12-12M44 24c0-8 6-12 12-12M44 24V8", "#dff1ff", 4),
  stroke("M2 84c12-6 22 4 34 0s22 4 34 0 18 4 28-2", "#9fd0f2", 3),
];

const tigress = [
  path("M14 100c2-20 16-28 36-28s34 8 36 28z", "#2a1b12"),
  path("M50 72c-20 0-34 8-36 28h36z", "#b3261e"),
  path(
    "M22 36c-10 20-8 42 0 56 10-4 8-32 10-52zM78 36c10 20 8 42 0 56-10-4-8-32-10-52z",
    "#1d1310",
  ),
  path("M29 38c0 24 9 36 21 36s21-12 21-36c0-12-42-12-42 0z", "#f2a65a"),
  path("M50 30c14 0 21 2 21 8 0 24-9 36-21 36z", "#fbe3c2"),
  path("M26 30L22 8l20 14zM74 30L78 8 58 22z", "#f2a65a"),
  stroke(
    "M50 22v12M41 24l3 9M59 24l-3 9M30 52l9 2M70 52l-9 2M32 62l8-1M68 62l-8-1",
    "#3a2314",
    3.5,
  ),
  path("M36 44c5-5 10-4 12 2-4 4-9 3-12-2zM64 44c-5-5-10-4-12 2 4 4 9 3 12-2z", "#3f8f3f"),
  dot(43, 45, 2, NIGHT),
  dot(57, 45, 2, NIGHT),
  path("M45 57h10l-5 6z", "#8e3a2b"),
  stroke("M50 63c-2 4-6 4-8 2M50 63c2 4 6 4 8 2", "#5a2d12", 2.5),
];

const flag = [
  path("M0 80c12-6 22 4 34 0s22 4 34 0 20 4 32-2v22H0z", "#7fb7d6"),
  path("M24 76h52c-4 12-12 16-26 16s-22-4-26-16z", "#7b4b22"),
  stroke("M44 78V12", "#7b4b22", 4),
  path("M46 12c12-6 20 6 36 0v32c-16 6-24-6-36 0z", "#ffffff", {
    stroke: "#b9c4cf",
    "stroke-width": 2,
  }),
  stroke("M52 22c8-2 14 4 24 1M52 32c8-2 14 4 24 1", "#d5dde5", 2),
];

const loot = [
  path("M30 34c-16 12-22 28-20 44 2 12 14 16 40 16s38-4 40-16c2-16-4-32-20-44z", "#b98b4e"),
  path("M32 34c-6-10-8-16-4-22 8 6 12-2 22-2s14 8 22 2c4 6 2 12-4 22z", "#a1733a"),
  stroke("M30 34h40", "#6d4a1f", 5),
  ...[
    [36, 70],
    [62, 74],
    [49, 60],
  ].map(([x, y]) => dot(x, y, 9, GOLD, { stroke: "#a8741a", "stroke-width": 2.5 })),
  stroke("M36 66v8M62 70v8M49 56v8", "#a8741a", 2.5),
  path("M82 24l3 7 7 3-7 3-3 7-3-7-7-3 7-3z", "#fff3c4"),
];

export const SUIT_ART = [roger, parrot, map, chest];
export const SUIT_FIELD = ["#262d38", "#1f8a4c", "#6f3fae", "#efb21c"];
export const SPECIAL_ART = {
  king: { art: king, field: "#6b120c", title: "Skull King", ink: "#ffe9b8" },
  whale: { art: whale, field: "#8dc3e8", title: "White Whale", ink: "#12324d" },
  kraken: { art: kraken, field: "#123a5c", title: "Kraken", ink: "#ffe2da" },
  mermaid: { art: mermaid, field: "#bfe6ee", title: "Mermaid", ink: "#0f4453" },
  escape: { art: flag, field: "#dcecf5", title: "Escape", ink: "#2c4a5e" },
  tigress: { art: tigress, field: "#f7d9a8", title: "Tigress", ink: "#4a240c" },
  loot: { art: loot, field: "#efdfbd", title: "Loot", ink: "#5b3c10" },
};
export const PIRATE_ART = pirates;
export const PIRATE_FIELD = "#b5342a";
