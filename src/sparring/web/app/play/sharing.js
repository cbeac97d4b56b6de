// Saves and shares a recorded game.

import { el, toast } from "/app/dom.js";
import { panel } from "/app/play/panels.js";
import { source } from "/app/play/source.js";

const LONGEST_LINK = 8000; // characters that messengers and browsers do not cut off

// The file name of a replay.
export function fileName(replay) {
  return `${replay.game}-${replay.seed}.replay.json`;
}

export function download(replay) {
  const blob = new Blob([JSON.stringify(replay)], { type: "application/json" });
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: fileName(replay) });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// A replay as a part of an address, and back.
export function packReplay(replay) {
  const bytes = new TextEncoder().encode(JSON.stringify(replay));
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export function unpackReplay(word) {
  try {
    const text = atob(word.replaceAll("-", "+").replaceAll("_", "/"));
    return JSON.parse(
      new TextDecoder().decode(Uint8Array.from(text, (letter) => letter.charCodeAt(0))),
    );
  } catch {
    throw new Error("this link holds no whole replay; ask for the file instead");
  }
}

export function linkOf(replay) {
  const packed = packReplay(replay);
  return packed.length > LONGEST_LINK ? null : `#/replay?data=${packed}`;
}

export async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} copied`);
  } catch {
    toast(`This browser does not let the page copy; ${what.toLowerCase()}: ${text}`);
  }
}

export async function keep(replay) {
  try {
    const { name } = await source().keep(replay);
    toast(`Kept as ${name}`);
    return name;
  } catch (wrong) {
    toast(`Not saved: ${wrong.message}`);
    return null;
  }
}

export function copyLink(replay) {
  const link = linkOf(replay);
  if (!link) return toast("This game is too long for a link; download it instead.");
  return copyText(new URL(link, location.href).href, "Link");
}

// Opens a game of any length in the page of replays.
export function openReplay(replay) {
  const link = linkOf(replay);
  if (link) location.hash = link;
  else {
    handOver(replay);
    location.hash = "#/replay";
  }
}

let handedOver = null;

export function handOver(replay) {
  handedOver = replay;
}

// A replay that another page has handed over, once.
export function takeOver() {
  const replay = handedOver;
  handedOver = null;
  return replay;
}

// Links need a page that others can open: the address of a file is valid on one machine only.
export function sharePanel(read) {
  const { server, links = server } = source();
  const button = (name, go) => el("button", { type: "button", onclick: go }, name);
  return panel(
    "Replay",
    "share",
    el(
      "div",
      { class: "share-buttons" },
      button("Look at it", () => openReplay(read())),
      button("Download", () => download(read())),
      server ? button("Keep on the server", () => keep(read())) : null,
      links ? button("Copy link", () => copyLink(read())) : null,
    ),
  );
}
