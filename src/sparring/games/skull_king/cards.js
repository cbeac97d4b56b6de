// Skull King's cards as drawings of 100 by 140.

import { svg } from "/app/dom.js";
import { drawn } from "/app/play/drawing.js";
import {
  PIRATE_ART,
  PIRATE_FIELD,
  SPECIAL_ART,
  SUIT_ART,
  SUIT_FIELD,
} from "/games/skull_king/art.js";
import {
  PIRATES,
  TIGRESS_AS_ESCAPE,
  TIGRESS_AS_PIRATE,
  cardOf,
  kindOf,
  numberOf,
  suitOf,
} from "/games/skull_king/reading.js";

const PAPER = "#fdf8ea";
const RIM = "#5b5245";

// A card's face, by its token; in a hand the Tigress is neither pirate nor escape yet.
export function face(token, { inHand = false } = {}) {
  const card = cardOf(token);
  const drawn = suitOf(card) >= 0 ? numberFace(card) : specialFace(card);
  const played = inHand ? null : { [TIGRESS_AS_PIRATE]: "pirate", [TIGRESS_AS_ESCAPE]: "escape" };
  return frame([...drawn, ...(played?.[token] ? ribbon(played[token]) : [])]);
}

export function back() {
  return frame(
    [
      svg("rect", { x: 7, y: 7, width: 86, height: 126, rx: 6, fill: "#17324d" }),
      svg("rect", {
        x: 12,
        y: 12,
        width: 76,
        height: 116,
        rx: 4,
        fill: "none",
        stroke: "#c9a24a",
        "stroke-width": 2,
      }),
      svg("g", { transform: "translate(22 42) scale(.56)", opacity: 0.9 }, drawn(SUIT_ART[0])),
    ],
    "card-back",
  );
}

// Hidden cards, as many as there are, overlapping.
export function backs(count) {
  const width = 26 + 9 * Math.max(0, count - 1);
  return svg(
    "svg",
    { class: "sk-backs", viewBox: `0 0 ${width} 36`, width, height: 36, "aria-hidden": "true" },
    Array.from({ length: count }, (_, i) =>
      svg("rect", {
        x: 1 + 9 * i,
        y: 1,
        width: 24,
        height: 34,
        rx: 3,
        fill: "#17324d",
        stroke: "#c9a24a",
        "stroke-width": 1.5,
      }),
    ),
  );
}

function frame(inside, kind = "card-face") {
  return svg(
    "svg",
    { class: `sk-card ${kind}`, viewBox: "0 0 100 140", "aria-hidden": "true" },
    svg("rect", {
      x: 1,
      y: 1,
      width: 98,
      height: 138,
      rx: 9,
      fill: PAPER,
      stroke: RIM,
      "stroke-width": 1.5,
    }),
    inside,
  );
}

function words(x, y, text, size, fill, more = {}) {
  return svg(
    "text",
    { x, y, "font-size": size, fill, "text-anchor": "middle", class: "sk-letters", ...more },
    text,
  );
}

function numberFace(card) {
  const suit = suitOf(card);
  const number = String(numberOf(card));
  const x = number.length > 1 ? 29 : 23;
  const light = suit === 3 ? "#3d2704" : "#ffffff";
  return [
    svg("rect", { x: 6, y: 6, width: 88, height: 128, rx: 6, fill: SUIT_FIELD[suit] }),
    svg("g", { transform: "translate(15 41) scale(.7)" }, drawn(SUIT_ART[suit])),
    words(x, 34, number, 30, light),
    words(x, 34, number, 30, light, { transform: "rotate(180 50 70)" }),
    number === "14"
      ? svg("rect", {
          x: 7.5,
          y: 7.5,
          width: 85,
          height: 125,
          rx: 5,
          fill: "none",
          stroke: "#ffd76a",
          "stroke-width": 3,
        })
      : null,
  ];
}

function specialFace(card) {
  const kind = kindOf(card);
  const special =
    kind === "pirate"
      ? { art: PIRATE_ART[card - 5], field: PIRATE_FIELD, title: PIRATES[card - 5], ink: "#fff1dc" }
      : SPECIAL_ART[kind];
  const size = special.title.length > 9 ? 13 : 16;
  return [
    svg("rect", { x: 6, y: 6, width: 88, height: 128, rx: 6, fill: special.field }),
    svg("g", { transform: "translate(12 20) scale(.76)" }, drawn(special.art)),
    kind === "pirate" ? words(50, 18, "PIRATE", 9, special.ink, { "letter-spacing": 2 }) : null,
    words(50, 120, special.title, size, special.ink),
  ];
}

// What the Tigress was played as.
function ribbon(text) {
  const pirate = text === "pirate";
  const fill = pirate ? "#b3261e" : "#f4f9fc";
  return [
    svg("rect", { x: 0, y: 80, width: 100, height: 20, fill, stroke: RIM, "stroke-width": 1 }),
    words(50, 95, `as ${text}`, 14, pirate ? "#ffffff" : "#20394a"),
  ];
}
