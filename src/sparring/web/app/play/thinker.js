// Agents that look ahead: a network with a budget of search, which a worker spends.

import { readBudget, whyNoSearch } from "/app/engine/search.js";
import { source } from "/app/play/source.js";

const MAX_KEPT = 64; // results, of some kilobytes each

// Runs the searches of one network; equal ones once. Results are kept.
class Thinker {
  constructor(network) {
    this.network = network;
    this.worker = null;
    this.jobs = new Map(); // by what is searched
    this.ids = 0;
  }

  // The result of a search, null after `signal` aborts. `progress(found)` hears of it meanwhile.
  search(state, row, wish, { signal = null, progress = () => {} } = {}) {
    const saved = state.save();
    const key = JSON.stringify([wish, row]) + new TextDecoder("latin1").decode(saved);
    const job = this.jobs.get(key) ?? this.begin(key, { saved, row, ...wish });
    if (job.done) return Promise.resolve(job.found);
    return new Promise((resolve, reject) => {
      const client = { progress, resolve, reject };
      job.clients.add(client);
      signal?.addEventListener("abort", () => this.leave(job, client), { once: true });
    });
  }

  begin(key, wish) {
    const job = { id: ++this.ids, key, clients: new Set(), found: null, done: false };
    for (const [old, { done }] of this.jobs) {
      if (this.jobs.size < MAX_KEPT) break;
      if (done) this.jobs.delete(old);
    }
    this.jobs.set(key, job);
    this.worker ??= this.start();
    this.worker.postMessage({ kind: "search", id: job.id, ...wish });
    return job;
  }

  start() {
    const { engine, packed } = this.network;
    const worker = source().worker();
    worker.onmessage = ({ data }) => this.hear(data);
    worker.onerror = (wrong) => this.fail(wrong.message || "the worker does not start");
    worker.postMessage({ kind: "load", wasm: engine.wasm, rules: engine.rules, packed });
    return worker;
  }

  hear({ id, found, done, wrong }) {
    const job = [...this.jobs.values()].find((one) => one.id === id);
    if (!job) return;
    if (wrong) return this.fail(wrong, job);
    job.found = found;
    if (!done) return job.clients.forEach(({ progress }) => progress(found));
    job.done = true;
    job.clients.forEach(({ resolve }) => resolve(found));
    job.clients.clear();
  }

  fail(why, ...jobs) {
    for (const job of jobs.length ? jobs : this.jobs.values()) {
      if (!job.done) this.jobs.delete(job.key);
      job.clients.forEach(({ reject }) => reject(new Error(`the search failed: ${why}`)));
      job.clients.clear();
    }
  }

  leave(job, client) {
    if (!job.clients.delete(client)) return;
    client.resolve(null);
    if (job.clients.size > 0) return;
    this.jobs.delete(job.key);
    this.worker?.postMessage({ kind: "cancel", id: job.id });
  }

  // Ends what is being searched, with the result so far.
  stop() {
    this.worker?.postMessage({ kind: "stop" });
  }

  close() {
    this.worker?.terminate();
    this.worker = null;
    for (const job of this.jobs.values()) job.clients.forEach(({ resolve }) => resolve(null));
    this.jobs.clear();
  }
}

function thinkerOf(network) {
  network.thinker ??= new Thinker(network);
  return network.thinker;
}

// Plays as a network does (see engine/network.js), after a search.
export class Searching {
  // `budget` is text, see `readBudget`.
  constructor(network, budget) {
    const { rules } = network.engine;
    const why = whyNoSearch(rules, network.about);
    if (why) throw new Error(why);
    Object.assign(this, { network, budget, about: network.about, name: network.name });
    this.wish = { budget: readBudget(budget, rules) };
    this.leaving = new AbortController();
  }

  answer(state, row) {
    return this.network.answer(state, row);
  }

  // A promise of what it plays; null after `cancel`. A temperature above 0: noise at the root, so
  // that moves vary.
  async action(state, row = 0, { temperature = 0, seed = 0, progress } = {}) {
    const legal = this.about.box ? [] : state.legal(row);
    if (legal.length === 1) return legal[0];
    const noise = temperature > 0;
    const found = await this.consider(state, row, { noise, seed, progress });
    return found && found.action;
  }

  // A promise of all that the search found; null after `cancel`.
  async consider(state, row = 0, { noise = false, seed = 0, progress } = {}) {
    const { signal } = this.leaving;
    const wish = { ...this.wish, noise, seed };
    if (!this.network.handle) await this.network.ready;
    if (signal.aborted) return null;
    return thinkerOf(this.network).search(state, row, wish, { signal, progress });
  }

  // Decides now, with what is found so far.
  stop() {
    this.network.thinker?.stop();
  }

  cancel() {
    this.leaving.abort();
    this.leaving = new AbortController();
  }
}
