// Events of Skull King as sentences that reveal nothing hidden.

import {
  ACTION,
  LOADS,
  cardName,
  kindOf,
  laidAfter,
  nameOf,
  read,
  roundEnded,
  sees,
  takerOf,
  tokenName,
  tokenOf,
} from "/games/skull_king/reading.js";

const JADE = 8;

export const RULES = [
  "Before every round you bid how many tricks you will take. Then you try to take exactly that many: not one more, not one less.",
  "In turn every player plays one card. Numbers run from 1 to 14 in green, purple, yellow and black. Follow the suit that was led if you can; the highest card of it wins. Black is trump and beats the other three.",
  "Special cards may always be played, even if you could follow suit. Escapes lose. Mermaids beat all numbers, pirates beat mermaids, the Skull King beats pirates, and a mermaid beats the Skull King, even with pirates in the trick.",
  "The Tigress is a pirate or an escape: you choose which when you play her. Loot is an escape that allies you with the player who takes the trick: 20 points for each of you if both bids come true.",
  "The Kraken destroys the trick: no player takes it. With the White Whale suits and special cards count for nothing, and the highest number wins. If both are played, the later one counts.",
  "An exact bid brings 20 points a trick. Being off costs 10 for each trick too many or too few. A bid of 0 wins or loses 10 for every card dealt.",
  "With an exact bid you also keep your bonuses: 10 for a 14 (black 20), 20 for a mermaid taken by a pirate, 30 for a pirate taken by the Skull King, 40 for the Skull King taken by a mermaid.",
  "Tables with abilities: a pirate that wins a trick does something. Rosie chooses who leads, Bendt draws two cards and discards two, Rascal wagers up to 20 on the bid, Juanita Jade looks at the cards that were not dealt, and Harry may change the bid by one at the end of the round.",
  "Keys: arrows and Enter choose, digits bid or play a card by its place in the hand, L shows the last trick, T the table of scores.",
];

export function actionName(state, action, session) {
  const at = read(state);
  if (action < ACTION.play) return `bid ${action}`;
  if (action <= ACTION.tigressEscape) return tokenName(tokenOf(action));
  if (action < ACTION.wager) {
    const seat = (at.actor + action - ACTION.rosie) % at.players;
    return seat === at.actor ? "lead again" : `let ${nameOf(session, seat)} lead`;
  }
  if (action < ACTION.harry) return `wager ${10 * (action - ACTION.wager)}`;
  if (action < ACTION.grapeshot) {
    return ["lower the bid", "keep the bid", "raise the bid"][action - ACTION.harry];
  }
  return LOADS[action - ACTION.grapeshot];
}

export function describe(before, move, after, session) {
  const was = read(before);
  const now = read(after);
  const [action] = move.actions;
  const lines = [decided(was, now, action, session)];
  if ((was.phase === "bid" || was.phase === "cannon") && now.phase !== was.phase) {
    lines.push(revealed(was, now, session));
  }
  if (was.phase === "play") lines.push(...trickLines(was, now, action, session));
  if (roundEnded(was, now)) lines.push(roundLine(was, now, session));
  return lines;
}

function sentence(session, seat, you, others) {
  return seat === session.person ? `You ${you}` : `${capital(nameOf(session, seat))} ${others}`;
}

export function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

function decided(was, now, action, session) {
  const seat = was.actor;
  const line = (you, others) => sentence(session, seat, you, others);
  const known = sees(session, seat);
  switch (was.phase) {
    case "bid":
      if (known || was.settings.open_bids) return line(`bid ${action}.`, `bids ${action}.`);
      return line("bid.", "has bid.");
    case "cannon": {
      const load = LOADS[action - ACTION.grapeshot];
      return known ? line(`load ${load}.`, `loads ${load}.`) : line("load.", "has loaded.");
    }
    case "play": {
      const name = tokenName(tokenOf(action));
      return line(`play ${name}.`, `plays ${name}.`);
    }
    case "rosie": {
      const leads = now.leader === seat ? "lead again" : `let ${nameOf(session, now.leader)} lead`;
      return line(`${leads}.`, `${leads.replace("lead", "leads").replace(/^let /, "lets ")}.`);
    }
    case "discard": {
      const name = known ? cardName(action - ACTION.play) : "a card";
      return line(`discard ${name}.`, `discards ${name}.`);
    }
    case "wager": {
      const points = 10 * (action - ACTION.wager);
      return line(`wager ${points} on your bid.`, `wagers ${points} on the bid.`);
    }
    default: {
      const bid = was.bid[seat] + action - ACTION.harry - 1;
      return line(`end with a bid of ${bid}.`, `ends with a bid of ${bid}.`);
    }
  }
}

function revealed(was, now, session) {
  const seats = Array.from({ length: was.players }, (_, seat) => seat);
  if (was.phase === "cannon") {
    const brave = seats.filter((seat) => now.cannon[seat]).map((seat) => nameOf(session, seat));
    return `Cannonballs: ${brave.join(", ") || "none"}.`;
  }
  const bids = seats.map((seat) => `${nameOf(session, seat)} ${now.bid[seat]}`).join(", ");
  const sum = now.bid.slice(0, was.players).reduce((a, b) => a + b, 0);
  return `All bids: ${bids}. That is ${sum} for ${counted(now.cards, "trick")}.`;
}

function trickLines(was, now, action, session) {
  const laid = laidAfter(was, action);
  const lines = [];
  if (laid.length > was.trick.length + 1) {
    lines.push(`The ghost plays ${tokenName(laid.at(-1).token)}.`);
  }
  if (laid.length < was.seats) return lines;
  const ended = roundEnded(was, now);
  const taker = takerOf(was, now, laid);
  if (taker < 0) lines.push("The trick is destroyed: no player takes it.");
  else lines.push(...taken(was, now, taker, laid, session));
  if (now.trick.length > 0 && !ended) {
    lines.push(`The ghost leads ${tokenName(now.trick[0].token)}.`);
  }
  return lines;
}

function taken(was, now, taker, laid, session) {
  const card = laid.find(({ seat }) => seat === taker).token;
  const gained = bonusGained(was, now, taker);
  const bonus = gained ? `, ${gained} bonus points if the bid comes true` : "";
  const name = tokenName(card);
  const lines = [
    sentence(
      session,
      taker,
      `take the trick with ${name}${bonus}.`,
      `takes the trick with ${name}${bonus}.`,
    ),
  ];
  if (now.phase === "discard") {
    const drawn = now.hands[taker].filter((held) => !was.hands[taker].includes(held));
    const cards = sees(session, taker)
      ? drawn.map(cardName).join(" and ")
      : counted(drawn.length, "card");
    lines.push(sentence(session, taker, `draw ${cards} with Bendt.`, `draws ${cards} with Bendt.`));
  }
  if (card === JADE + 1 && was.settings.abilities && !roundEnded(was, now) && kindOf(JADE)) {
    lines.push(
      sentence(
        session,
        taker,
        "look at the cards that were not dealt.",
        "looks at the cards that were not dealt.",
      ),
    );
  }
  return lines;
}

// What a trick added to the bonuses of the one who took it.
export function bonusGained(was, now, taker) {
  if (taker < 0 || taker >= was.players) return 0;
  const bonus = roundEnded(was, now) ? now.last_bonus : now.bonus;
  return bonus[taker] - was.bonus[taker];
}

function roundLine(was, now, session) {
  const points = Array.from({ length: was.players }, (_, seat) => seat).map(
    (seat) => `${nameOf(session, seat)} ${now.last_points[seat]} (${now.total[seat]})`,
  );
  return `Round ${was.round}, points and totals: ${points.join(", ")}.`;
}

export function result({ scores }, session) {
  const best = Math.max(...scores);
  const winners = scores.flatMap((score, seat) => (score === best ? [nameOf(session, seat)] : []));
  const verb = winners.length === 1 && winners[0] !== "you" ? "wins" : "win";
  return `${capital(winners.join(" and "))} ${verb} with ${best} points.`;
}

export function counted(count, thing) {
  return `${count} ${thing}${count === 1 ? "" : "s"}`;
}
