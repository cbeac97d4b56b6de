// How a Shogi piece looks: a wedge of wood that points at the other side, with kanji or a letter.

import { svg } from "/app/dom.js";
import { KANJI } from "/games/shogi/position.js";

// The more a piece is worth, the larger it is.
const SIZES = { K: 1, R: 0.97, B: 0.97, G: 0.94, S: 0.94, N: 0.9, L: 0.88, P: 0.84 };
const WEDGE = "0,-50 30,-36 41,48 -41,48 -30,-36";
const EDGE = "-41,48 41,48 40,53 -40,53";

// `far`: it belongs to the side at the top. Letters of that side stay upright, kanji turn.
export function drawPiece(kind, { side, far, kanji }) {
  const sign = kanji ? kanjiOf(kind, side) : kind;
  const promoted = kind.startsWith("+");
  const size = SIZES[kind.at(-1)];
  const turned = far ? " rotate(180)" : "";
  const upright = far && !kanji ? "rotate(180)" : null;
  return svg(
    "svg",
    {
      class: `shogi-piece${promoted ? " promoted" : ""}`,
      viewBox: "-50 -55 100 110",
      "aria-hidden": "true",
    },
    svg(
      "g",
      { transform: `scale(${size})${turned}` },
      svg("polygon", {
        class: "shade",
        points: WEDGE,
        transform: far ? "translate(0,-5)" : "translate(0,6)",
      }),
      svg("polygon", { class: "edge", points: EDGE }),
      svg("polygon", { class: "wedge", points: WEDGE }),
      svg("polyline", { class: "gleam", points: "-38,45 -28,-34 0,-47" }),
      svg(
        "text",
        { class: kanji ? "kanji" : "letter", y: kanji ? 24 : far ? 0 : 20, transform: upright },
        sign,
      ),
    ),
  );
}

// The lower-ranked player has the king with the dot, as in a box of pieces.
function kanjiOf(kind, side) {
  return kind === "K" && side === 1 ? "王" : KANJI[kind];
}
