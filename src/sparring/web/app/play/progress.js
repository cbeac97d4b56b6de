// How far the search of a player is, with a button that ends it. The line keeps its place while
// nobody searches, so that the table does not jump.

import { el } from "/app/dom.js";
import { simulationsWord } from "/app/play/lineup.js";

export function progressLine(rules, players, stop) {
  const bar = el("progress", { "aria-label": "Progress of the search" });
  const text = el("span", { class: "number" });
  const button = el(
    "button",
    { type: "button", class: "quiet", onclick: stop, "aria-keyshortcuts": "." },
    "Move now",
    el("kbd", { "aria-hidden": "true" }, "."),
  );
  const hidden = !players.some(({ network }) => network?.wish);
  const element = el("div", { class: "thinking idle", hidden }, text, bar, button);
  return {
    element,
    get active() {
      return !element.classList.contains("idle");
    },
    // `player` null: nobody searches.
    show(player, found) {
      element.classList.toggle("idle", !player);
      if (!player) return;
      const { simulations, seconds } = player.network.wish.budget;
      bar.max = seconds ? 1000 * seconds : simulations;
      bar.value = seconds ? found.ms : found.simulations;
      text.textContent = `${found.simulations} ${simulationsWord(rules)}`;
    },
  };
}
