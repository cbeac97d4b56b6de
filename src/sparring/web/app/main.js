// Which page is shown: the part of the address behind #.

import { playPage } from "/app/pages/play.js";

const PAGES = { play: playPage };

async function show() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const host = document.getElementById("page");
  host.replaceChildren();
  await (PAGES[name] ?? playPage)(host, rest.map(decodeURIComponent));
}

addEventListener("hashchange", show);
show();
