// Entry point of the pages of a static site: a game and its agent, from files beside the page. The
// files are written by src/sparring/web/site.py.

import { aboutPage, inflated, ownSource, tablePage } from "/app/agent.js";
import { readHeader } from "/app/engine/network.js";
import { startFrame } from "/app/frame.js";
import { replayPage } from "/app/pages/replay.js";
import { useSource } from "/app/play/source.js";

const LEAD = "It plays in this page: nothing that you do here is sent anywhere.";
const MEGABYTE = 1e6;

// `page` is how the game looks, null for the plain view.
export function startSite(page) {
  const about = JSON.parse(document.getElementById("about").textContent);
  useSource(siteSource(about, page));
  startFrame(
    {
      play: { show: (host, at) => ownTable(host, at, about), nav: "play" },
      replay: { show: replayPage, nav: "replay" },
      about: { show: (host) => aboutPage(host, about, LEAD), nav: "about" },
    },
    "play",
  );
}

function ownTable(host, at, about) {
  const [game] = at.path;
  const { name } = about.rules;
  if (game && game !== name) throw new Error(`this page plays ${name}, not ${game}`);
  return tablePage(host, at, about);
}

// Data of the play pages, from files of the site.
function siteSource(about, page) {
  const { agent, files, header, rules } = about;
  return {
    ...ownSource(about, "page"),
    links: true,
    wasm: () => fetched(files.wasm),
    async page() {
      if (!page) throw new Error(`${rules.name} has no page`);
      return page;
    },
    header: (name) => (name === agent.name ? header : null),
    async network(name, progress) {
      if (name !== agent.name) throw new Error(`this page holds ${agent.name}, not ${name}`);
      return fromPlanes(new Uint8Array(await fetched(files.network, progress)));
    },
    worker: () => new Worker(files.worker.address),
  };
}

// The content of a file. `progress(share)` hears how much of it has arrived.
async function fetched({ address, bytes }, progress = () => {}) {
  const size = `${(bytes / MEGABYTE).toFixed(1)} MB`;
  try {
    const response = await fetch(address);
    if (!response.ok) throw new Error(`the answer is ${response.status}`);
    const parts = [];
    let arrived = 0;
    for (const reader = response.body.getReader(); ;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      arrived += value.length;
      progress(Math.min(arrived / bytes, 1));
    }
    return await unpacked(new Blob(parts));
  } catch (wrong) {
    const file = address.replace(/\?.*/, "");
    const disk = location.protocol === "file:" ? "; pages on a disk need a web server" : "";
    throw new Error(`${file} (${size}) could not be loaded: ${wrong.message}${disk}`);
  }
}

// Some servers take files out of gzip on the way.
async function unpacked(blob) {
  const [first, second] = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  return first === 0x1f && second === 0x8b ? inflated(blob) : blob.arrayBuffer();
}

// A packed network whose numbers came as their first bytes, then their second ones and so on.
function fromPlanes(all) {
  readHeader(all);
  const start = all.indexOf(10) + 1;
  const count = (all.length - start) / 4;
  const packed = all.slice();
  for (let at = 0; at < count; ++at) {
    for (let byte = 0; byte < 4; ++byte) {
      packed[start + 4 * at + byte] = all[start + byte * count + at];
    }
  }
  return packed;
}
