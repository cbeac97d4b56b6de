// Replays: one that is opened, and those that were kept.

import { el } from "/app/dom.js";

export async function replayPage(host) {
  host.append(el("h1", {}, "Replay"));
}

export async function replaysPage(host) {
  host.append(el("h1", {}, "Replays"));
}
