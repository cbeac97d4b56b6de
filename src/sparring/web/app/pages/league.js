// To come.

import { el } from "/app/dom.js";

export async function leaguePage(host) {
  host.append(el("h1", {}, "league"));
}
