// Kanji or letters: what the person chose last, else kanji where this machine can draw them.

const KEPT = "sparring-shogi-signs";
let chosen = null;

export function usesKanji() {
  chosen ??= kept() ?? (drawsKanji() ? "kanji" : "letters");
  return chosen === "kanji";
}

export function useKanji(yes) {
  chosen = yes ? "kanji" : "letters";
  try {
    localStorage.setItem(KEPT, chosen);
  } catch {
    // It holds until the page is left, then.
  }
}

function kept() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null; // a page from a file may not remember anything
  }
}

// Two signs that no font has look alike.
function drawsKanji() {
  const pixels = (sign) => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 24;
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    pen.font = "20px serif";
    pen.fillText(sign, 2, 20);
    return pen.getImageData(0, 0, 24, 24).data.join();
  };
  return pixels("龍") !== pixels("桂");
}
