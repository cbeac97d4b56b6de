// What has to be there before anybody can sit down: rules, engine, looks, players, networks.

import { el } from "/app/dom.js";
import { Engine } from "/app/engine/engine.js";
import { plainPage } from "/app/play/views.js";

// An answer of the server; what it refuses becomes an error with its own words.
export async function ask(address, options = {}) {
  let answer = null;
  try {
    answer = await fetch(address, options);
  } catch {
    throw new Error("the server does not answer; is sparring serve still running?");
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new Error(said.error ?? `${address}: ${answer.status} ${answer.statusText}`);
}

export async function askJson(address, options) {
  return (await ask(address, options)).json();
}

// "set=a=1&set=b=2" of {a: 1, b: 2}.
export function flagQuery(flags) {
  return new URLSearchParams(
    Object.entries(flags).map(([name, value]) => ["set", `${name}=${value}`]),
  );
}

// A game with flags: { rules, engine, page }.
export async function loadGame(name, flags = {}) {
  if (!/^[a-z0-9_]+$/.test(name)) throw new Error(`there is no game ${name}`);
  const [rules, wasm, page] = await Promise.all([
    askJson(`/api/games/${name}?${flagQuery(flags)}`),
    ask(`/wasm/${name}.wasm`).then((answer) => answer.arrayBuffer()),
    loadPage(name),
  ]);
  return { rules, page, engine: await Engine.load(wasm, rules) };
}

async function loadPage(name) {
  try {
    const { page } = await import(`/games/${name}/page.js`);
    useStyle(`/games/${name}/page.css`);
    return page;
  } catch {
    return plainPage; // a game of somebody's own
  }
}

export function useStyle(address) {
  if (document.querySelector(`link[href="${address}"]`)) return;
  document.head.append(el("link", { rel: "stylesheet", href: address }));
}

// Asks the server to do something with a value.
export async function order(address, value) {
  return askJson(address, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(value),
  });
}
