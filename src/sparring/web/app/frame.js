// The frame: which page is shown (the part of the address behind #), and what all pages share.
//
// A page is a function `xPage(host, { path, query, signal })`:
//   host    an empty element, removed when another page is shown
//   path    the parts behind the page's name, decoded: #/play/leduc_poker -> ["leduc_poker"]
//   query   URLSearchParams of what follows a "?": #/play/leduc_poker?seed=3&set=a=1
//   signal  AbortSignal, aborted when the page is left; give it to fetch, addEventListener, live
// It may return a promise; if that fails, the error's message is shown in the page's place.

import { el, replace } from "/app/dom.js";

const frame = document.getElementById("page");
let pages = {};
let first = "";
let leave = new AbortController();
let shown = null;

// Shows the page of the address and follows its changes. `known` has pages by name, { show, nav };
// `start` is the default address behind #.
export function startFrame(known, start) {
  pages = known;
  first = start;
  document.getElementById("theme").addEventListener("click", toggleTheme);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the part behind # is the page's
    frame.focus();
  });
  addEventListener("hashchange", show);
  show();
}

async function show() {
  const { name, path, query } = readAddress(location.hash);
  leave.abort();
  const mine = new AbortController();
  leave = mine;
  const page = pages[name];
  const host = el("div", { class: `page page-${page ? name : "missing"}` });
  replace(frame, host);
  for (const link of document.querySelectorAll("nav [data-page]")) {
    if (link.dataset.page === page?.nav) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (shown !== null && shown !== name + path.join("/")) arrive();
  shown = name + path.join("/");
  document.title = "sparring";
  try {
    if (!page) throw new Error(`There is no page "${name}" here. Choose one above.`);
    await page.show(host, { path, query, signal: mine.signal });
  } catch (wrong) {
    if (!mine.signal.aborted) complain(host, wrong);
  }
}

// Splits "#/play/leduc_poker?seed=3" into its parts.
function readAddress(hash) {
  const text = hash.replace(/^#\/?/, "") || first;
  const cut = text.indexOf("?");
  const [name, ...path] = (cut < 0 ? text : text.slice(0, cut)).split("/").filter(Boolean);
  return {
    name: name ?? first,
    path: path.map(decoded),
    query: new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1)),
  };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// Announces the new page to screen readers.
function arrive() {
  scrollTo(0, 0);
  frame.focus({ preventScroll: true });
}

function complain(host, wrong) {
  replace(
    host,
    el(
      "section",
      { class: "notice bad", role: "alert" },
      el("p", {}, wrong.message || String(wrong)),
      el("p", {}, el("button", { onclick: show }, "Try again")),
    ),
  );
}

function toggleTheme() {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
  const system = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ? dark : system;
  const next = now ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("theme", next);
  } catch {
    // Without storage it holds until the page is left.
  }
}
