// Loads what a table needs: rules, engine and page.

import { Engine } from "/app/engine/engine.js";
import { source } from "/app/play/source.js";
import { plainPage } from "/app/play/views.js";

// A game with flags: { rules, engine, page }.
export async function loadGame(name, flags = {}) {
  if (!/^[a-z0-9_]+$/.test(name)) throw new Error(`there is no game ${name}`);
  const [rules, wasm, page] = await Promise.all([
    source().rules(name, flags),
    source().wasm(name),
    loadPage(name),
  ]);
  return { rules, page, engine: await Engine.load(wasm, rules) };
}

async function loadPage(name) {
  try {
    const page = await source().page(name);
    source().style(`/games/${name}/page.css`);
    return page;
  } catch {
    return plainPage; // a custom game
  }
}
