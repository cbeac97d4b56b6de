// Animal cards and money of Kuhhandel as drawings.

import { el, svg } from "/app/dom.js";
import { drawn } from "/app/play/drawing.js";
import { ANIMALS, BILLS, FIELDS } from "/games/kuhhandel/art.js";
import { KINDS, NOTES, VALUES } from "/games/kuhhandel/reading.js";

// An animal in a round meadow.
export function animal(kind, { title = true } = {}) {
  return svg(
    "svg",
    { class: "kh-animal", viewBox: "0 0 100 100", role: "img", "aria-label": KINDS[kind] },
    title ? svg("title", {}, `${KINDS[kind]}, four are worth ${VALUES[kind]}`) : null,
    svg("circle", { cx: 50, cy: 50, r: 50, fill: FIELDS[kind] }),
    svg("g", { transform: "translate(10 11) scale(.8)" }, drawn(ANIMALS[kind])),
  );
}

// A whole card with what four of its kind are worth.
export function animalCard(kind) {
  const letters = { "text-anchor": "middle", class: "kh-letters", fill: "#3b2c12" };
  return svg(
    "svg",
    { class: "kh-card", viewBox: "0 0 100 140", role: "img", "aria-label": `a ${KINDS[kind]}` },
    paper("#fffaf0"),
    svg("rect", { x: 6, y: 6, width: 88, height: 128, rx: 6, fill: FIELDS[kind] }),
    svg("g", { transform: "translate(9 24) scale(.82)" }, drawn(ANIMALS[kind])),
    svg("text", { x: 50, y: 22, "font-size": 13, ...letters }, KINDS[kind]),
    svg("text", { x: 50, y: 129, "font-size": 20, ...letters }, String(VALUES[kind])),
  );
}

export function cardBack() {
  return svg(
    "svg",
    { class: "kh-card", viewBox: "0 0 100 140", "aria-hidden": "true" },
    paper("#fffaf0"),
    svg("rect", { x: 6, y: 6, width: 88, height: 128, rx: 6, fill: "#7a9a3c" }),
    svg("circle", { cx: 50, cy: 70, r: 30, fill: "#6b8a31" }),
    svg("g", { transform: "translate(26 46) scale(.48)", opacity: 0.75 }, drawn(ANIMALS[8])),
  );
}

function paper(fill) {
  const rim = { stroke: "#8a7a55", "stroke-width": 1.5 };
  return svg("rect", { x: 1, y: 1, width: 98, height: 138, rx: 9, fill, ...rim });
}

// A note that may be seen.
export function note(index) {
  const value = String(NOTES[index]);
  const letters = { "text-anchor": "middle", class: "kh-letters", fill: "#26303a" };
  return bill(BILLS[index], value, [
    svg("circle", { cx: 44, cy: 24, r: 16, fill: "rgb(255 255 255 / 55%)" }),
    svg("text", { x: 44, y: 30, "font-size": 17, ...letters }, value),
    svg("text", { x: 11, y: 14, "font-size": 9, ...letters }, value),
    svg("text", { x: 77, y: 42, "font-size": 9, ...letters }, value),
  ]);
}

// One that may not.
export function hiddenNote() {
  return bill("#55704c", "a note", [
    svg("circle", { cx: 44, cy: 24, r: 13, fill: "none", stroke: "#9bb58f", "stroke-width": 2 }),
    svg("circle", { cx: 44, cy: 24, r: 7, fill: "#9bb58f" }),
  ]);
}

function bill(fill, label, inside) {
  return svg(
    "svg",
    {
      class: "kh-note",
      viewBox: "0 0 88 48",
      width: 52,
      height: 28,
      role: "img",
      "aria-label": label,
    },
    svg("rect", {
      x: 1,
      y: 1,
      width: 86,
      height: 46,
      rx: 5,
      fill,
      stroke: "#3c4a3a",
      "stroke-width": 1.5,
    }),
    svg("rect", {
      x: 5,
      y: 5,
      width: 78,
      height: 38,
      rx: 3,
      fill: "none",
      stroke: "rgb(255 255 255 / 65%)",
      "stroke-width": 1.5,
    }),
    inside,
  );
}

// A pile on the table: its notes where they may be seen, as many backs where not.
export function pile(counts, open) {
  const notes = counts.flatMap((count, index) =>
    Array.from({ length: count }, () => (open ? note(index) : hiddenNote())),
  );
  return el("div", { class: "kh-pile" }, open ? notes.reverse() : notes);
}
