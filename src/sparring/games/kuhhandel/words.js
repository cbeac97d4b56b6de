// Events of Kuhhandel as sentences that reveal nothing hidden.

import {
  ACTION,
  BIDS,
  DONKEY_PAYS,
  KINDS,
  NOTES,
  VALUES,
  cardsIn,
  counted,
  isFinished,
  laidDown,
  minus,
  nameOf,
  pileWords,
  read,
  sees,
  tradeOf,
  worth,
} from "/games/kuhhandel/reading.js";

export const RULES = [
  "Collect quartets: all four animals of a kind. Cheap ones are roosters (10), dear ones are horses (1000). At the end the values of your quartets are added up and multiplied by how many quartets you have.",
  "In your turn you do one of two things: auction the next animal of the deck, or trade with a player who has an animal that you have too.",
  "In an auction the others bid, each more than the last. Then the auctioneer sells to the highest bidder, or keeps the animal and pays that bid to the bidder. If there is no bid, the auctioneer gets it for nothing.",
  "No change is given: a player who cannot pay exactly pays more. Notes of 0 pay nothing.",
  "You may bid more than you have. If you are sold the animal and cannot pay, you show your money to all players, and the auction begins again without you.",
  "In a trade you lay down notes face down, zeros among them if you like. The other player sees only how many. They take the notes and hand over the animal, or lay down notes too: then piles are swapped, and the higher one wins the animal.",
  "If both have two animals of the kind, both are at stake. Equal piles: both lay down notes once more; equal again, and the challenger wins.",
  "Whenever a donkey is turned up, every player gets money: 50 for the first, then 100, 200 and 500.",
  "When the deck is empty only trades are left, until all ten quartets are complete. Money is worth nothing then.",
  "Keys: arrows and Enter choose, digits choose by place. In a bid type the amount; P passes. Notes are moved with the arrows and Enter.",
];

export function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

// A sentence; + marks where the ending of the verb goes.
function sentence(session, seat, did) {
  if (seat === session.person) return `You ${did.replaceAll("+", "")}`;
  const verb = did.replaceAll("pass+", "passes").replaceAll("+", "s");
  return `${capital(nameOf(session, seat))} ${verb}`;
}

export function actionName(state, action, session) {
  const at = read(state);
  if (action === ACTION.auction) return "auction the next animal";
  if (action < ACTION.pass) {
    const { seat, kind, stake } = tradeOf(at, action);
    return `trade ${counted(stake, KINDS[kind])} with ${nameOf(session, seat)}`;
  }
  if (action === ACTION.raise) return `bid ${at.highBid + 10}`;
  if (action >= ACTION.number) {
    const number = action - ACTION.number;
    if (at.phase === "bid") return `bid ${100 * number} and something`;
    if (at.phase === "tens") return `bid ${100 * at.hundreds + 10 * number}`;
    return `${number} × ${NOTES[at.pointer]}`;
  }
  const names = { [ACTION.pass]: "pass", [ACTION.accept]: "accept", [ACTION.counter]: "counter" };
  return names[action] ?? `${action === ACTION.sell ? "sell" : "buy"} for ${at.highBid}`;
}

export function describe(before, move, after, session) {
  const was = read(before);
  const now = read(after);
  const [action] = move.actions;
  if (!isFinished(was, now)) return [];
  const trades = ["offer", "respond", "counter"].includes(was.phase);
  const lines = trades
    ? tradeLines(session, was, action, now)
    : auctionLines(session, was, action, now);
  return [...lines, ...quartetLines(session, was, now)];
}

function auctionLines(session, was, action, now) {
  if (was.phase === "turn" && action !== ACTION.auction)
    return challenge(session, was, action, now);
  let lines = [];
  if (was.phase === "turn") {
    const kind = was.next;
    lines = [sentence(session, was.actor, `auction+ a ${KINDS[kind]} (${VALUES[kind]}).`)];
    if (now.donkeys > was.donkeys) {
      lines.push(`A donkey: every player gets ${DONKEY_PAYS[was.donkeys]}.`);
    }
  } else if (was.phase === "decide") lines = decision(session, was, action);
  else if (BIDS.includes(was.phase)) {
    const did = action === ACTION.pass ? "pass+." : `bid+ ${bidMade(was, action, now)}.`;
    lines = [sentence(session, was.actor, did)];
  }
  const others = unasked(was, action, now).map((seat) => sentence(session, seat, "pass+."));
  return [...lines, ...others, ...settled(session, was, now)];
}

// What was bid by the action that completed a bid.
export function bidMade(was, action, now) {
  if (action === ACTION.raise) return was.highBid + 10;
  if (was.phase === "tens") return 100 * was.hundreds + 10 * (action - ACTION.number);
  return now.lastBids[was.actor]; // its tens are implied
}

function challenge(session, was, action, now) {
  const { seat, kind, stake } = tradeOf(was, action);
  const wanted = `${counted(stake, KINDS[kind])} (${VALUES[kind]})`;
  const lines = [
    sentence(session, was.actor, `challenge+ ${nameOf(session, seat)} for ${wanted}.`),
  ];
  if (now.phase === "respond") lines.push(laying(session, was.actor, now.offer, [was.actor]));
  return lines;
}

function decision(session, was, action) {
  const bidder = was.highBidder;
  const name = nameOf(session, bidder);
  if (action === ACTION.buy) {
    return [
      sentence(
        session,
        was.actor,
        `buy+ the ${KINDS[was.lot]} for ${was.highBid}, paid to ${name}.`,
      ),
    ];
  }
  const lines = [
    sentence(session, was.actor, `sell+ the ${KINDS[was.lot]} to ${name} for ${was.highBid}.`),
  ];
  const hand = was.money[bidder];
  if (worth(hand) < was.highBid) {
    const shown = `${pileWords(hand)}, that is ${worth(hand)}`;
    lines.push(sentence(session, bidder, `cannot pay and show+ ${shown}.`));
  }
  return lines;
}

// Seats that passed because they could not raise; the text is that of any other pass.
export function unasked(was, action, now) {
  if (now.lot < 0 || now.phase === "pay") return [];
  const raised = BIDS.includes(was.phase) && action !== ACTION.pass;
  const cleared = was.phase === "decide" || (raised && was.settings.pass_mode === "SOFT");
  const announced = [was.actor, ...(cleared ? [] : was.passed)];
  return now.passed.filter((seat) => !announced.includes(seat));
}

// How an auction ended between two positions: who has the animal, who paid whom what; or null.
export function saleOf(was, now) {
  const kind = was.lot >= 0 ? was.lot : was.next;
  if (now.lot >= 0 || kind < 0) return null;
  const owner = now.animals.findIndex((farm, seat) => farm[kind] > was.animals[seat][kind]);
  if (owner < 0) return null;
  const change = cardsIn(now.money[owner]) - cardsIn(was.money[owner]);
  if (was.highBidder < 0 || change >= 0) return { kind, owner, paid: null, to: -1 };
  const to = owner === was.turn ? was.highBidder : was.turn;
  return { kind, owner, paid: minus(was.money[owner], now.money[owner]), to };
}

function settled(session, was, now) {
  const sale = saleOf(was, now);
  if (!sale) return [];
  const { kind, owner, paid, to } = sale;
  if (!paid) return [sentence(session, owner, `take+ the ${KINDS[kind]} for nothing.`)];
  const seen = seesPile(session, [owner, to]) || was.settings.open_pay;
  const notes = counted(cardsIn(paid), "note") + (seen ? `: ${pileWords(paid)}` : "");
  return [
    sentence(session, owner, `pay+ ${nameOf(session, to)} ${notes}.`),
    sentence(session, owner, `take+ the ${KINDS[kind]}.`),
  ];
}

function tradeLines(session, was, action, now) {
  const both = [was.turn, was.target];
  const laid = laidDown(was, action, now);
  if (was.phase === "offer") {
    const lines = [laying(session, was.actor, laid, [was.actor])];
    return now.target >= 0 ? lines : [...lines, ...outcome(session, was, laid, null, now)];
  }
  if (action === ACTION.accept) {
    const seen = seesPile(session, both) ? `: ${pileWords(was.offer)}` : "";
    const notes = counted(cardsIn(was.offer), "note");
    return [
      sentence(session, was.actor, `accept+ ${notes}${seen}.`),
      winnerLine(session, was, now),
    ];
  }
  if (was.phase === "respond" && now.phase === "counter" && now.ties === was.ties) {
    return [sentence(session, was.actor, "counter+.")];
  }
  return [laying(session, was.actor, laid, both), ...outcome(session, was, was.offer, laid, now)];
}

function outcome(session, was, offer, counter, now) {
  const seen = counter && seesPile(session, [was.turn, was.target]);
  const values = seen ? `${worth(offer)} against ${worth(counter)}` : "";
  const lines = [];
  if (counter && worth(offer) === worth(counter)) {
    lines.push(`Equal piles${values ? `, ${values}` : ""}.`);
  } else if (values) lines.push(`${values}.`);
  if (now.target < 0) return [...lines, winnerLine(session, was, now)];
  lines.push("Both lay down notes again.");
  if (now.phase === "counter") lines.push(laying(session, now.turn, now.offer, [now.turn]));
  return lines;
}

// Who took the animals of a trade.
export function winnerOf(was, now) {
  const gained = now.animals[was.turn][was.traded] > was.animals[was.turn][was.traded];
  return gained ? was.turn : was.target;
}

function winnerLine(session, was, now) {
  return sentence(session, winnerOf(was, now), `take+ ${counted(was.stake, KINDS[was.traded])}.`);
}

function laying(session, seat, pile, seenBy) {
  const seen = seesPile(session, seenBy) ? `: ${pileWords(pile)}` : "";
  return sentence(session, seat, `lay+ down ${counted(cardsIn(pile), "note")}${seen}.`);
}

export function seesPile(session, seats) {
  return seats.some((seat) => sees(session, seat));
}

// Seats and kinds of the quartets that were completed.
export function quartetsMade(was, now) {
  return now.animals.flatMap((farm, seat) =>
    farm.flatMap((count, kind) =>
      count === 4 && was.animals[seat][kind] < 4 ? [{ seat, kind }] : [],
    ),
  );
}

function quartetLines(session, was, now) {
  return quartetsMade(was, now).map(
    ({ seat, kind }) =>
      `${sentence(session, seat, `complete+ the ${counted(4, KINDS[kind]).slice(2)}`)}: ${now.scores[seat]} points.`,
  );
}

export function result(state, session) {
  const { scores } = state;
  const best = Math.max(...scores);
  const winners = scores.flatMap((score, seat) => (score === best ? [nameOf(session, seat)] : []));
  const verb = winners.length === 1 && winners[0] !== "you" ? "wins" : "win";
  return `${capital(winners.join(" and "))} ${verb} with ${best} points.`;
}
