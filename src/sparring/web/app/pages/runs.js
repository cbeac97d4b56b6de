// To come.

import { el } from "/app/dom.js";

export async function runsPage(host) {
  host.append(el("h1", {}, "runs"));
}
