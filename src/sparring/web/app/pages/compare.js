// To come.

import { el } from "/app/dom.js";

export async function comparePage(host) {
  host.append(el("h1", {}, "compare"));
}
