// How far the search of a player is, with a button that ends it. The line keeps its place while
// nobody searches, so that the table does not jump.

import { el, replace } from "/app/dom.js";
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

const LOOK_MS = 150;

// How far the networks of players are that are still being fetched, null if none is. `again` is
// called after one that failed was asked for once more.
export function arrivalLine(players, again) {
  const all = players.map(({ network }) => network?.network ?? network);
  const coming = [...new Set(all)].filter((network) => network?.handle === 0);
  if (coming.length === 0) return null;
  const bar = el("progress", { max: 1, "aria-label": "Progress of the download" });
  const names = coming.map(({ name }) => name).join(", ");
  const text = el("span", { role: "status" }, `${names} is being fetched; you can begin meanwhile`);
  const element = el("div", { class: "arriving" }, text, bar);
  const look = () => {
    const left = coming.filter(({ handle }) => handle === 0);
    const failed = left.filter(({ wrong }) => wrong);
    bar.value = Math.min(...coming.map(({ share }) => share));
    if (left.length === 0) element.remove();
    else if (failed.length === 0) setTimeout(look, LOOK_MS);
    else replace(element, el("span", { role: "alert" }, failed[0].wrong.message), retry(failed));
  };
  const retry = (failed) =>
    el(
      "button",
      {
        type: "button",
        onclick: () => {
          for (const network of failed) network.load();
          replace(element, text, bar);
          look();
          again();
        },
      },
      "Try again",
    );
  look();
  return element;
}
