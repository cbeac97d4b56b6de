// Replays: one that is opened (#/replay?name=... of the server, #/replay?data=... in the address, or
// a file), and those that the server keeps (#/replays).

import { el, replace } from "/app/dom.js";
import { ParticipantsBuilder, plainName, whoCanPlay } from "/app/play/lineup.js";
import { loadGame } from "/app/play/load.js";
import { Player } from "/app/play/player.js";
import { Recording, checkReplay } from "/app/play/recording.js";
import { linkOf, takeOver, unpackReplay } from "/app/play/sharing.js";
import { source } from "/app/play/source.js";

const MAX_BYTES = 16 * 2 ** 20;

export async function replayPage(host, { path, query, signal }) {
  source().style("/app/play/play.css");
  document.title = "Replay - sparring";
  const place = el("div", { class: "replay" });
  const page = { place, signal, player: null, casting: null };
  signal.addEventListener("abort", () => closePlayer(page));
  host.append(el("h1", {}, "Replay"), place);
  acceptDrops(page);
  const name = path[0] ?? query.get("name");
  const found = name
    ? null
    : (takeOver() ?? (query.get("data") && unpackReplay(query.get("data"))));
  if (name) await open(page, await source().replay(name), name);
  else if (found) await open(page, found, "");
  else replace(place, picker(page));
}

// Where a file is chosen or dropped.
function picker(page) {
  const input = el("input", {
    type: "file",
    accept: ".json,application/json",
    onchange: (event) => readFile(page, event.target.files[0]),
  });
  return el(
    "div",
    { class: "drop" },
    el("p", {}, "Drop the file of a replay here, or choose one."),
    el("label", {}, el("span", { class: "out-of-sight" }, "File of a replay"), input),
    source().server
      ? el(
          "p",
          { class: "soft" },
          "Or look through ",
          el("a", { href: "#/replays" }, "those that the server keeps"),
          ".",
        )
      : null,
  );
}

function acceptDrops(page) {
  const { signal } = page;
  const files = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const over = (event) => {
    if (!files(event)) return;
    event.preventDefault();
    page.place.classList.add("dropping");
  };
  const leave = () => page.place.classList.remove("dropping");
  const drop = (event) => {
    leave();
    if (!files(event)) return;
    event.preventDefault();
    readFile(page, event.dataTransfer.files[0]);
  };
  document.addEventListener("dragover", over, { signal });
  document.addEventListener("dragleave", leave, { signal });
  document.addEventListener("drop", drop, { signal });
}

async function readFile(page, file) {
  if (!file) return;
  try {
    if (file.size > MAX_BYTES) throw new Error("more than 16 MiB: this is no replay");
    let replay = null;
    try {
      replay = JSON.parse(await file.text());
    } catch {
      throw new Error("this is not JSON, so no replay");
    }
    await open(page, replay, file.name);
  } catch (wrong) {
    refuse(page, `${file.name}: ${wrong.message}`);
  }
}

function refuse(page, why) {
  closePlayer(page);
  replace(page.place, el("p", { class: "notice bad", role: "alert" }, why), picker(page));
}

function closePlayer(page) {
  page.player?.close();
  page.casting?.close();
  page.player = null;
}

// Shows a replay, or the reason why it is rejected.
async function open(page, replay, from) {
  try {
    checkReplay(replay);
    const game = await loadGame(replay.game, replay.flags ?? {});
    const recording = new Recording(game, replay);
    const able = await whoCanPlay(game.rules);
    if (page.signal.aborted) return;
    closePlayer(page);
    const casting = new ParticipantsBuilder(game.engine);
    page.casting = casting;
    const commentators = {
      names: namesFor(replay, able),
      network: (name) => casting.network(name),
    };
    page.player = new Player(game, recording, { commentators, able, source: from });
    replace(page.place, page.player.element);
    page.player.show();
    const link = linkOf(replay);
    const kept =
      location.hash.startsWith("#/replay?name=") || location.hash.startsWith("#/replay/");
    if (link && !kept) history.replaceState(null, "", link);
  } catch (wrong) {
    refuse(page, from ? `${from}: ${wrong.message}` : wrong.message);
  }
}

// Agents that played come first.
function namesFor(replay, { agents }) {
  const played = replay.players.map((name) => plainName(String(name)));
  const names = agents.map(({ name }) => name);
  return [...names.filter((n) => played.includes(n)), ...names.filter((n) => !played.includes(n))];
}

export async function replaysPage(host) {
  source().style("/app/play/play.css");
  document.title = "Replays - sparring";
  const replays = await source().replays();
  const another = el("a", { class: "button", href: "#/replay" }, "Open a file");
  host.append(el("div", { class: "replays-head" }, el("h1", {}, "Replays"), another));
  if (replays.length === 0) {
    host.append(
      el(
        "p",
        { class: "notice" },
        "No replays saved yet. Next to every game, under Replay, is a button that saves it here.",
      ),
    );
    return;
  }
  host.append(
    el(
      "div",
      { class: "scroll sheet" },
      el(
        "table",
        { class: "replays" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["Replay", "Game", "Players", "Scores", "Steps", "Date"].map((name) =>
              el("th", { scope: "col" }, name),
            ),
          ),
        ),
        el(
          "tbody",
          {},
          replays.map((kept) => replayRow(kept)),
        ),
      ),
    ),
  );
}

function replayRow({ name, game, players = [], scores = [], end, steps, date, error }) {
  const link = el("a", { href: `#/replay?name=${encodeURIComponent(name)}` }, name);
  const cells = error
    ? [el("td", { colspan: 5, class: "soft" }, error)]
    : [
        el("td", {}, game),
        el("td", {}, players.join(", ")),
        el("td", {}, scores.join(" : "), end ? "" : el("span", { class: "soft" }, " (not over)")),
        el("td", { class: "number" }, steps === undefined ? "" : String(steps)),
        el("td", { class: "soft" }, dateOf(date)),
      ];
  return el("tr", {}, el("td", {}, link), cells);
}

// Seconds since 1970 as a date of here.
function dateOf(seconds) {
  if (typeof seconds !== "number") return "";
  return new Date(1000 * seconds).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}
