// A game against bots and agents: #/play/GAME?seed=1&seat=0&against=strong&set=num_players=3

import { el, replace } from "/app/dom.js";
import { drawEmblem } from "/app/play/emblems.js";
import { ParticipantsBuilder, whoCanPlay } from "/app/play/lineup.js";
import { loadGame } from "/app/play/load.js";
import { readMoves } from "/app/play/recording.js";
import { addressOf, newSeed, opponentChoice, readWish, setupPanel } from "/app/play/setup.js";
import { source } from "/app/play/source.js";
import { Table } from "/app/play/table.js";
import { takeOver, unpackReplay } from "/app/play/sharing.js";

const DEALS = 16; // to choose from

export async function playPage(host, { path: [name], query, signal }) {
  source().style("/app/play/play.css");
  if (!name) return choosePage(host);
  return tablePage(host, name, query, signal);
}

// All games as tiles.
async function choosePage(host) {
  const games = await source().games();
  const known = await Promise.all(
    games.map((game) => (game.title ? game : source().rules(game.name ?? game, {}))),
  );
  const obstacle = known.find(({ unplayable }) => unplayable)?.unplayable;
  document.title = "Play - sparring";
  host.append(
    el("h1", {}, "Play"),
    obstacle
      ? el("p", { class: "soft" }, `Grayed-out games cannot be played here: ${obstacle}.`)
      : "",
    el(
      "ul",
      { class: "tiles" },
      known.map(({ name, title, seats, unplayable }) => {
        const [short, line] = splitTitle(title);
        const closed = { role: "link", "aria-disabled": true, title: unplayable };
        return el(
          "li",
          {},
          el(
            "a",
            { class: "tile", ...(unplayable ? closed : { href: `#/play/${name}` }) },
            el("span", { class: "tile-emblem", "aria-hidden": "true" }, drawEmblem(name)),
            el("strong", {}, short),
            el("span", { class: "soft" }, line),
            el("small", { class: "soft" }, seats === 1 ? "alone" : `${seats} seats`),
          ),
        );
      }),
    ),
  );
}

// "Kuhn poker: three cards, one bet" is a name and a line.
function splitTitle(title) {
  const cut = title.indexOf(":");
  if (cut > 0) return [title.slice(0, cut), title.slice(cut + 1).trim()];
  const [first, ...rest] = title.split(" ");
  return [first, rest.join(" ")];
}

async function tablePage(host, name, query, signal) {
  const wish = readWish(query);
  host.append(el("p", { class: "soft loading" }, "Setting the table …"));
  const game = await loadGame(name, wish.flags);
  const { rules } = game;
  if (!(wish.person >= -1 && wish.person < rules.seats && Number.isInteger(wish.person))) {
    throw new Error(`seat=${query.get("seat")} is not one of 0..${rules.seats - 1} or watch`);
  }
  const casting = new ParticipantsBuilder(game.engine);
  const able = await whoCanPlay(rules);
  const begun = query.get("from") ? unpackReplay(query.get("from")) : takeOver();
  wish.seed = begun?.seed ?? wish.seed ?? firstSeed(game.engine, wish.person);
  if (signal.aborted) return;
  const [title] = splitTitle(rules.title);
  document.title = `${title} - sparring`;
  const place = el("div", { class: "play" });
  replace(host, place);
  const page = { host: place, title, game, casting, able, wish, signal };
  signal.addEventListener("abort", () => {
    page.table?.close();
    casting.close();
  });
  await sitDown(page, begun);
}

// A new deal. While networks are still to be fetched, one in which the person begins, if there is.
function firstSeed(engine, person) {
  const seeds = Array.from({ length: source().header ? DEALS : 1 }, newSeed);
  const begins = (seed) => {
    const state = engine.state(seed);
    const seat = state.seat();
    state.free();
    return seat === person;
  };
  return seeds.find(begins) ?? seeds[0];
}

// Puts a table into the page, in place of the one before.
async function sitDown(page, begun = null) {
  const { host, game, casting, able, wish, signal } = page;
  if (!begun) history.replaceState(null, "", addressOf(game.rules.name, wish));
  const players = await casting.players(wish);
  if (signal.aborted) return;
  page.table?.close();
  host.replaceChildren();
  const go = (next) => {
    location.hash = addressOf(game.rules.name, next);
  };
  const setup = setupPanel(game.rules, wish, able, go);
  page.table = new Table(host, game, {
    title: page.title,
    seed: wish.seed,
    players,
    moves: readMoves(game.rules, begun?.actions ?? []),
    setup: begun?.setup ?? null,
    index: begun?.index ?? 0,
    more: [setup],
    choice: source().server ? null : opponentChoice(game, wish, able, go),
    commentators: { names: able.agents.map((a) => a.name), network: (n) => casting.network(n) },
    again: (seed) => {
      page.wish = { ...wish, seed: seed ?? newSeed() };
      return sitDown(page).catch((wrong) => page.table.complain(wrong));
    },
  });
  window.session = page.table.session; // for tests and the curious
  await page.table.run();
}
