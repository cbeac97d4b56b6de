// Who sits where, as it stands in an address: one word per seat, separated by commas, as --against
// of `sparring play` has it; a word of several with weights is a mixture of whom one is drawn:
// careful=3+ttt/120@sampled=1

import { toast } from "/app/dom.js";
import { Network } from "/app/engine/network.js";
import { PERSON, agent, bot } from "/app/play/session.js";
import { source } from "/app/play/source.js";

export const A_PERSON = "person";

// The members of a seat's mixture: [{name, sampled, weight}].
export function readSeat(word) {
  return word
    .split("+")
    .filter(Boolean)
    .map((part) => {
      const [, who, weight] = /^(.*?)(?:=([0-9.]+))?$/.exec(part);
      const [, name, style] = /^(.*?)(?:@(sampled|greedy))?$/.exec(who);
      return { name, sampled: style === "sampled", weight: weight ? Number(weight) : 1 };
    });
}

export function writeSeat(members) {
  const mixed = members.length > 1;
  return members
    .map(
      ({ name, sampled, weight }) =>
        name + (sampled ? "@sampled" : "") + (mixed ? `=${weight}` : ""),
    )
    .join("+");
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
      this.networks.set(
        name,
        this.fetchNetwork(name).then((bytes) => Network.load(this.engine, bytes)),
      );
    }
    try {
      return await this.networks.get(name);
    } catch (wrong) {
      this.networks.delete(name);
      throw wrong;
    }
  }

  async player({ name, sampled }) {
    if (name === A_PERSON) return PERSON;
    if (this.rules.bots.includes(name)) return bot(this.rules, name);
    const network = await this.network(name);
    return agent(sampled ? `${name}@sampled` : name, network, { greedy: !sampled });
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
