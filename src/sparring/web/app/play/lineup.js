// Who sits where, as it stands in an address: one word per seat, separated by commas, as --against
// of `sparring play` has it; a word of several with weights is a mixture of whom one is drawn:
// careful=3+ttt/120@sampled=1. The way an agent plays stands behind its name: @sampled, @64 for a
// search of 64 simulations, @sampled@64 for one with noise, @level3.

import { el, toast } from "/app/dom.js";
import { Network } from "/app/engine/network.js";
import { PERSON, agent, bot } from "/app/play/session.js";
import { source } from "/app/play/source.js";
import { Searching } from "/app/play/thinker.js";

export const A_PERSON = "person";
const BUDGETS = ["64", "200", "800"]; // simulations
const ALONE = [
  ["", "most probable action"],
  ["sampled", "sampled action"],
];
const WAYS = /^(.*?)((?:@(?:sampled|greedy|level[1-9]|[0-9][^@]*))*)$/;

// The name of a player, without the way it plays.
export function plainName(word) {
  return WAYS.exec(word)[1];
}

// The members of a seat's mixture: [{name, way, weight}].
export function readSeat(word) {
  return word
    .split("+")
    .filter(Boolean)
    .map((part) => {
      const [, who, weight] = /^(.*?)(?:=([0-9.]+))?$/.exec(part);
      const [, name, ways] = WAYS.exec(who);
      const way = ways.split("@").filter((word) => word && word !== "greedy");
      return { name, way: way.join("@"), weight: weight ? Number(weight) : 1 };
    });
}

export function writeSeat(members) {
  const mixed = members.length > 1;
  return members.map((member) => nameOf(member) + (mixed ? `=${member.weight}` : "")).join("+");
}

function nameOf({ name, way }) {
  return way ? `${name}@${way}` : name;
}

// Searches as options of a select, after `first`; the `own` one too if it is none of the usual.
export function budgetOptions(rules, own, ...first) {
  const extra = /(^|@)\d/.test(own) && !BUDGETS.includes(own) ? [own] : [];
  const named = [...BUDGETS, ...extra].map((budget) => [budget, budgetName(budget, rules)]);
  return [...first, ...named].map(([value, text]) =>
    el("option", { value, selected: value === own }, text),
  );
}

function budgetName(budget, rules) {
  return /^\d+$/.test(budget) ? `${budget} ${simulationsWord(rules)}` : budget;
}

// What a search counts.
export function simulationsWord(rules) {
  return rules.search?.worlds ? "playouts" : "simulations";
}

// How an agent may play, as options of a select: by its network alone, after a search, at a level.
export function wayOptions(rules, searches, own) {
  const option = ([value, text]) => el("option", { value, selected: value === own }, text);
  const levels = levelsOf(rules, searches).map(([level]) => [`level${level}`, `level ${level}`]);
  return [
    el("optgroup", { label: "at once" }, ALONE.map(option)),
    searches ? el("optgroup", { label: "after a search" }, budgetOptions(rules, own)) : null,
    el("optgroup", { label: "at a level" }, levels.map(option)),
  ];
}

// Levels that an agent can play at: [number, { simulations, temperature }].
export function levelsOf(rules, searches) {
  const possible = ([, { simulations, temperature }]) =>
    simulations ? searches && rules.search : !temperature || !rules.box;
  return Object.entries(rules.levels).filter(possible);
}

// What is searched, "" for nothing, and how freely actions are drawn.
function readWay(way, levels) {
  const words = way ? way.split("@") : [];
  const searches = words.filter((word) => /^\d/.test(word));
  const [level] = words.filter((word) => word.startsWith("level"));
  const sampled = words.includes("sampled");
  if (searches.length > 1 || (level && words.length > 1)) {
    throw new Error(`@${way}: give @sampled, one search, or one level`);
  }
  if (!level) return { search: searches[0] ?? "", temperature: sampled ? 1 : 0 };
  const { simulations, temperature } = levels[level.slice("level".length)];
  return { search: simulations ? String(simulations) : "", temperature };
}

// A word for every seat but the person's, the last one for all that are left.
export function spreadWords(against, rules, person) {
  const words = against ? against.split(",") : [rules.bots.at(-1)];
  const others = Array.from({ length: rules.seats }, (_, seat) => seat).filter((s) => s !== person);
  if (words.length > others.length && others.length > 0) {
    throw new Error(`against names ${words.length} players for ${others.length} seats`);
  }
  return new Map(others.map((seat, at) => [seat, words[Math.min(at, words.length - 1)]]));
}

// The shortest equivalent text.
export function joinWords(words) {
  const all = [...words];
  return all.every((word) => word === all[0]) ? (all[0] ?? "") : all.join(",");
}

// One member of a mixture, by the seed and the seat.
export function drawMember(members, seed, seat) {
  const all = members.reduce((sum, { weight }) => sum + weight, 0);
  if (!(all > 0)) throw new Error("a mixture needs a weight above 0");
  let left = share(Number(BigInt.asUintN(31, BigInt(seed))), seat) * all;
  return members.find(({ weight }) => (left -= weight) < 0) ?? members.at(-1);
}

// A number in 0..1 that follows from two whole numbers.
function share(seed, seat) {
  let bits = Math.imul(seed ^ 0x5bd1e995, 0x9e3779b1) + Math.imul(seat + 1, 0x85ebca6b);
  for (const [shift, factor] of [
    [16, 0x7feb352d],
    [15, 0x846ca68b],
  ]) {
    bits = Math.imul(bits ^ (bits >>> shift), factor);
  }
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
}

// All players available for a game: a run stands for its best checkpoint; every other checkpoint is
// a separate agent.
export async function whoCanPlay(rules) {
  try {
    const runs = await source().players(rules);
    const agents = runs.flatMap(({ checkpoints = [], ...run }) => [
      run,
      ...checkpoints.map((number) => ({ name: `${run.name}/${number}`, run: run.name })),
    ]);
    return { bots: rules.bots, agents };
  } catch (wrong) {
    toast(`Only bots can play: ${wrong.message}`);
    return { bots: rules.bots, agents: [] };
  }
}

// Makes players of words, each network once.
export class ParticipantsBuilder {
  constructor(engine, fetchNetwork = source().network) {
    Object.assign(this, { engine, rules: engine.rules, fetchNetwork });
    this.networks = new Map();
  }

  async network(name) {
    if (!this.networks.has(name)) {
      this.networks.set(name, this.begin(name));
    }
    try {
      return await this.networks.get(name);
    } catch (wrong) {
      this.networks.delete(name);
      throw wrong;
    }
  }

  // Where the source knows what a network is before it is here, the game begins without it.
  async begin(name) {
    const about = source().header?.(name);
    if (!about) return Network.load(this.engine, await this.fetchNetwork(name));
    return Network.coming(this.engine, about, (progress) => this.fetchNetwork(name, progress));
  }

  async player(member) {
    const { name, way } = member;
    if (name === A_PERSON) return PERSON;
    if (this.rules.bots.includes(name)) return bot(this.rules, name);
    const { search, temperature } = readWay(way, this.rules.levels);
    const network = await this.network(name);
    if (/level/.test(way) && temperature > 0 && network.about.by_value) {
      throw new Error(`${name} learned values of actions, from which no level draws`);
    }
    const player = search ? new Searching(network, search) : network;
    return agent(nameOf(member), player, { temperature });
  }

  // Ends the workers of agents that searched.
  async close() {
    for (const network of this.networks.values()) {
      network.then(({ thinker }) => thinker?.close()).catch(() => {});
    }
  }

  // One player per seat; `person` is -1 for a viewer without a seat.
  async players({ person, against, seed }) {
    const words = spreadWords(against, this.rules, person);
    const seats = Array.from({ length: this.rules.seats }, (_, seat) => seat);
    return Promise.all(
      seats.map((seat) =>
        seat === person ? PERSON : this.player(drawMember(readSeat(words.get(seat)), seed, seat)),
      ),
    );
  }
}
