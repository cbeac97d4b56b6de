// Data of the game pages: from the server that sent this page, or from the file that an agent was
// exported to (see agent.js). Nothing else in play/ knows an address.

import { el } from "/app/dom.js";

const SERVED = {
  server: true,

  games: async () => (await askJson("/api/games")).games,

  rules: (game, flags) => askJson(`/api/games/${game}?${flagQuery(flags)}`),

  wasm: async (game) => (await ask(`/wasm/${game}.wasm`)).arrayBuffer(),

  // The game's page module; an error where it has none.
  page: async (game) => (await import(`/games/${game}/page.js`)).page,

  // Available agents, without the bots: [{ name, ... }].
  async players(rules) {
    const asked = new URLSearchParams([["game", rules.name], ...flagQuery(rules.flags)]);
    return (await askJson(`/api/players?${asked}`)).agents ?? [];
  },

  network: async (name) =>
    (await ask(`/api/network?player=${encodeURIComponent(name)}`)).arrayBuffer(),

  // A worker that searches, see engine/worker.js.
  worker: () => new Worker("/app/engine/worker.js", { type: "module" }),

  style(address) {
    if (document.querySelector(`link[href="${address}"]`)) return;
    document.head.append(el("link", { rel: "stylesheet", href: address }));
  },

  // Keeps a replay; returns { name }.
  keep: (replay) =>
    askJson("/api/replays", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(replay),
    }),

  replays: async () => (await askJson("/api/replays")).replays,

  replay: (name) => askJson(`/api/replays/${encodeURIComponent(name)}`),
};

let current = SERVED;

export function source() {
  return current;
}

export function useSource(other) {
  current = other;
}

// A response of the server; a refusal becomes an error with the server's message.
async function ask(address, options = {}) {
  let answer = null;
  try {
    answer = await fetch(address, options);
  } catch {
    throw new Error("the server does not answer; is sparring serve still running?");
  }
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => ({}));
  throw new Error(body.error ?? `${address}: ${answer.status} ${answer.statusText}`);
}

async function askJson(address, options) {
  return (await ask(address, options)).json();
}

// "set=a=1&set=b=2" of {a: 1, b: 2}.
function flagQuery(flags) {
  return new URLSearchParams(
    Object.entries(flags).map(([name, value]) => ["set", `${name}=${value}`]),
  );
}
