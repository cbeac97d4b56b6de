// Searches beside the page, which stays alive meanwhile. The page sends { kind: "load", wasm, rules,
// packed } first, then { kind: "search", id, saved, row, noise, seed, budget }; a search answers
// { id, found, done } now and then. "stop" ends it with what it has, "cancel" without an answer.

import { Engine } from "/app/engine/engine.js";
import { Network } from "/app/engine/network.js";
import { Search } from "/app/engine/search.js";

const SLICE_MS = 25; // between two looks at what the page has sent
const REPORT_MS = 100;

let network = null; // a promise
const waiting = [];
let busy = false;

async function load({ wasm, rules, packed }) {
  return Network.load(await Engine.load(wasm, rules), packed);
}

function hear({ data }) {
  if (data.kind === "load") network = load(data);
  else if (data.kind === "search") waiting.push(data);
  else if (data.kind === "stop") for (const job of waiting) job.stopped = true;
  else for (const job of waiting) job.cancelled ||= job.id === data.id;
  if (!busy) work();
}

async function work() {
  busy = true;
  while (waiting.length > 0) {
    const [job] = waiting;
    try {
      if (!job.cancelled) await think(job, await network);
    } catch (wrong) {
      self.postMessage({ id: job.id, wrong: wrong.message });
    }
    waiting.shift();
  }
  busy = false;
}

async function think(job, agent) {
  const { saved, row, noise, seed, budget } = job;
  const state = agent.engine.state(0);
  let search = null;
  try {
    state.load(saved);
    search = new Search(agent, state, row, { ...budget, noise, seed });
    await goOn(job, search, budget.seconds * 1000 || Infinity);
  } finally {
    search?.free();
    state.free();
  }
}

async function goOn(job, search, limit_ms) {
  const began = performance.now();
  let reported = began;
  const report = (done) => {
    reported = performance.now();
    const found = { ...search.found(), ms: reported - began };
    self.postMessage({ id: job.id, found, done });
  };
  for (let left = 1; left > 0 && !job.stopped && performance.now() - began < limit_ms;) {
    left = slice(search, Math.min(SLICE_MS, limit_ms));
    await pause();
    if (job.cancelled) return;
    if (performance.now() - reported >= REPORT_MS) report(false);
  }
  report(true);
}

function slice(search, most_ms) {
  const end = performance.now() + most_ms;
  let left = 1;
  while (left > 0 && performance.now() < end) left = search.run(1);
  return left;
}

// Lets messages in. A timer would wait for 4 ms each time.
function pause() {
  return new Promise((go) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      go();
    };
    port2.postMessage(0);
  });
}

self.onmessage = hear;
