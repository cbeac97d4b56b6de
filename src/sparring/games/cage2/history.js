// The steps of an episode: blue's actions, their cost, and the reports of monitoring. Red's actions
// are kept separately and shown only when the viewer may see them.

import { HOSTS, readSeen, readTruth, splitAction, whyNoDecoy } from "/games/cage2/network.js";

export class History {
  constructor(session) {
    this.session = session;
    this.steps = [];
  }

  // All steps up to a position, which may be any: of an undo, of a replay.
  upTo(state) {
    const { session, steps } = this;
    const count = Math.min(readSeen(state).step, session.moves.length);
    let same = 0;
    while (same < count && steps[same]?.action === session.moves[same][0]) ++same;
    steps.length = same;
    if (same === count) return steps;
    const walker = session.positionAt(same);
    for (const [action] of session.moves.slice(same, count)) {
      const was = readSeen(walker);
      walker.apply(action);
      steps.push(stepOf(was, action, walker, session.engine.actionName(action)));
    }
    walker.free();
    return steps;
  }
}

// One step: what blue did and saw, what it cost, and what red did.
export function stepOf(was, action, after, called) {
  const now = readSeen(after);
  const { name, family, host } = splitAction(called);
  const noticed = now.hosts.flatMap(({ activity }, at) =>
    activity === "none" ? [] : [{ host: at, activity }],
  );
  return {
    action,
    name,
    noticed,
    cost: Math.round((was.total - now.total) * 10) / 10,
    result: host < 0 ? "" : resultOf(family, was.hosts[host], now.hosts[host], host),
    red: readTruth(after).move.words,
  };
}

// The result of blue's action, as blue can observe it.
function resultOf(family, was, now, host) {
  if (family === "Analyse") {
    if (now.label !== "privileged") return "nothing found";
    return was.label === "privileged" ? "still counts as privileged" : "malware found";
  }
  if (family === "Remove") {
    return was.label === "no" ? "nothing to remove" : "ended the shells that were noticed";
  }
  if (family === "Restore") return "as new";
  if (now.decoyMask !== was.decoyMask) return "placed";
  return whyNoDecoy(family, host, was.decoyMask) ?? "nothing changed";
}

// A loss as it is written everywhere here.
export function minus(cost) {
  return cost > 0 ? `-${cost.toFixed(1)}` : "0";
}

export function noticedWords(step) {
  return step.noticed.map(({ host, activity }) => `${activity} on ${HOSTS[host]}`).join(", ");
}
