// A game against bots and agents: #/play/GAME?seed=1&seat=0&against=strong&set=num_players=3

import { el } from "/app/dom.js";
import { Engine } from "/app/engine/engine.js";
import { PERSON, Session, bot } from "/app/play/session.js";
import { plainPage } from "/app/play/views.js";

export async function playPage(host, [game = "tic_tac_toe"]) {
  const [name, query = ""] = game.split("?");
  const wished = new URLSearchParams(query);
  const flags = new URLSearchParams(wished.getAll("set").map((pair) => ["set", pair]));
  const rules = await (await fetch(`/api/games/${name}?${flags}`)).json();
  const wasm = await (await fetch(`/wasm/${name}.wasm`)).arrayBuffer();
  const page = await pageOf(name);
  const engine = await Engine.load(wasm, rules);
  const person = Number(wished.get("seat") ?? 0);
  const other = bot(rules, wished.get("against") ?? rules.bots.at(-1));
  const players = Array.from({ length: rules.seats }, (_, seat) =>
    seat === person ? PERSON : other,
  );
  const session = new (page.session ?? Session)(engine, {
    seed: Number(wished.get("seed") ?? 0),
    players,
  });
  const table = el("div", { class: `table ${name.replaceAll("_", "-")}-table` });
  const said = el("p", { class: "said", role: "status" });
  host.append(el("h1", {}, rules.title), table, said);
  const view = page.make(table, session);
  session.view = view;
  session.show = () => {
    view.show(session.state, session.answer);
    said.textContent = session.state.over ? `${session.state.end}: ${session.state.scores}` : "";
  };
  session.tell = (before, move, after) => view.tell?.(before, move, after);
  window.session = session; // for tests and the curious
  await session.run();
}

async function pageOf(name) {
  try {
    const { page } = await import(`/games/${name}/page.js`);
    document.head.append(el("link", { rel: "stylesheet", href: `/games/${name}/page.css` }));
    return page;
  } catch {
    return plainPage;
  }
}
