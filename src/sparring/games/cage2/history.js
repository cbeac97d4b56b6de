// What has happened in an episode, step by step: blue's actions with what they cost and what
// monitoring said. What red really did is kept beside it and shown only when it may be.

import { HOSTS, readSeen, readTruth, splitAction, whyNoDecoy } from "/games/cage2/network.js";

export class History {
  constructor(session) {
    this.session = session;
    this.steps = [];
  }

  add(before, action, after) {
    const was = readSeen(before);
    this.steps.length = Math.min(this.steps.length, was.step);
    if (this.steps.length !== was.step) return; // it is followed anew when it is shown
    this.steps.push(this.stepOf(was, action, after));
  }

  stepOf(was, action, after) {
    const now = readSeen(after);
    const { name, family, host } = splitAction(this.session.engine.actionName(action));
    const noticed = now.hosts.flatMap(({ activity }, at) =>
      activity === "none" ? [] : [{ host: at, activity }],
    );
    return {
      action,
      name,
      cost: Math.round((was.total - now.total) * 10) / 10,
      result: host < 0 ? "watched" : resultOf(family, was.hosts[host], now.hosts[host], host),
      noticed,
      red: readTruth(after).move.words,
    };
  }

  // All steps up to a position. A replay may jump anywhere: then the episode is played again.
  upTo(state) {
    const { step, total } = readSeen(state);
    this.steps.length = Math.min(this.steps.length, step);
    if (this.steps.length < step) this.follow(step, total);
    return this.steps;
  }

  follow(count, total) {
    const { engine, seed, setup, moves = [] } = this.session;
    this.steps = [];
    if (moves.length < count) return;
    const walker = engine.state(seed ?? 0, { skipForced: false, setup: setup ?? null });
    for (const move of moves.slice(0, count)) {
      const [action] = [move].flat();
      const before = walker.clone();
      if (walker.apply(action)) this.add(before, action, walker);
      before.free();
    }
    // Where chances fell otherwise, this is not what happened.
    if (readSeen(walker).total !== total) this.steps = [];
    walker.free();
  }
}

// What blue can tell of its own action.
function resultOf(family, was, now, host) {
  if (family === "Analyse") {
    if (now.label !== "privileged") return "nothing found";
    return was.label === "privileged" ? "still counts as privileged" : "malware found";
  }
  if (family === "Remove") {
    return was.label === "no" ? "nothing to remove" : "ended the shells that were noticed";
  }
  if (family === "Restore") return "as new, decoys are gone";
  if (now.decoyMask !== was.decoyMask) return "placed";
  return whyNoDecoy(family, host, was.decoyMask) ?? "nothing changed";
}

export function noticedWords(step) {
  return step.noticed.map(({ host, activity }) => `${activity} on ${HOSTS[host]}`).join(", ");
}
