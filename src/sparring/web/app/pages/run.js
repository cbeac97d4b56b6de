// To come.

import { el } from "/app/dom.js";

export async function runPage(host) {
  host.append(el("h1", {}, "run"));
}
