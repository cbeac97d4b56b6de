// The person's hand at the bottom of the table in Skull King.

import { el } from "/app/dom.js";
import { face } from "/games/skull_king/cards.js";
import {
  ACTION,
  SUITS,
  TIGRESS,
  cardName,
  kindOf,
  numberOf,
  suitOf,
} from "/games/skull_king/reading.js";
import { capital } from "/games/skull_king/words.js";

const SUIT_ORDER = [3, 0, 1, 2]; // trump stands last of the suits
const KIND_ORDER = [
  "suit",
  "escape",
  "loot",
  "tigress",
  "mermaid",
  "pirate",
  "king",
  "kraken",
  "whale",
];

function rank(card) {
  const suit = suitOf(card);
  const within = suit < 0 ? card : 20 * SUIT_ORDER[suit] + numberOf(card);
  return 1000 * KIND_ORDER.indexOf(kindOf(card)) + within;
}

export function sorted(cards) {
  return [...cards].sort((a, b) => rank(a) - rank(b));
}

// The action that plays a card. Of cards that are alike only one may be legal: any of them does.
export function actionFor(card, legal, abilities) {
  const action = ACTION.play + card;
  if (legal.includes(action)) return action;
  const kind = kindOf(card);
  const alike = ["escape", "loot", "mermaid", ...(abilities ? [] : ["pirate"])];
  if (!alike.includes(kind)) return null;
  return (
    legal.find(
      (action) =>
        action >= ACTION.play &&
        action < ACTION.tigressEscape &&
        kindOf(action - ACTION.play) === kind,
    ) ?? null
  );
}

// Why a card cannot be played now.
function reason(at, card, ask) {
  if (!ask) return at.phase === "over" ? "The game is over." : "It is not your turn.";
  if (at.phase !== "play" && at.phase !== "discard")
    return "Not now: another decision comes first.";
  const suit = SUITS[at.follow];
  return `${capital(suit)} was led and you have ${suit}: follow it, or play a special card.`;
}

export class Hand {
  // `choose(card, action)` is called with a card that may be played, `refuse(why)` with others.
  constructor({ choose, refuse }) {
    this.choose = choose;
    this.refuse = refuse;
    this.slots = new Map(); // by card
    this.element = el("div", { class: "sk-hand", role: "group", "aria-label": "your hand" });
  }

  draw(at, cards, ask) {
    const shown = sorted(cards);
    for (const [card, slot] of this.slots) {
      if (shown.includes(card)) continue;
      slot.element.remove();
      this.slots.delete(card);
    }
    const middle = (shown.length - 1) / 2;
    shown.forEach((card, index) => {
      const slot = this.slots.get(card) ?? this.make(card);
      const from = index - middle;
      slot.element.style.setProperty("--turn", `${(from * 24) / Math.max(8, shown.length)}deg`);
      slot.element.style.setProperty(
        "--drop",
        `${(from * from * 60) / Math.max(36, shown.length ** 2)}px`,
      );
      this.element.append(slot.element);
      this.ready(slot, at, card, ask);
    });
    this.element.classList.toggle("many", shown.length > 5);
    this.element.style.setProperty("--count", shown.length);
  }

  make(card) {
    const button = el(
      "button",
      {
        type: "button",
        class: "sk-hand-card",
        "data-card": card,
        onclick: () => {
          const slot = this.slots.get(card);
          if (slot.why) this.refuse(slot.why);
          else this.choose(card, slot.action);
        },
      },
      face(card + 1, { inHand: true }),
    );
    const slot = {
      element: el("div", { class: "sk-slot" }, button),
      button,
      action: null,
      why: "",
    };
    this.slots.set(card, slot);
    return slot;
  }

  ready(slot, at, card, ask) {
    const asked = ask && (at.phase === "play" || at.phase === "discard");
    slot.action = asked ? actionFor(card, ask.legal, at.settings.abilities) : null;
    slot.why = slot.action === null ? reason(at, card, ask) : "";
    const { button } = slot;
    button.classList.toggle("playable", slot.action !== null);
    button.classList.toggle("grayed", Boolean(asked) && slot.action === null);
    button.classList.remove("hinted");
    button.setAttribute("aria-disabled", String(slot.action === null));
    button.tabIndex = asked && slot.action === null ? -1 : 0;
    const name = capital(cardName(card));
    button.title = slot.why && ask ? `${name}. ${slot.why}` : name;
    button.setAttribute("aria-label", button.title);
    const asks = card === TIGRESS && at.phase === "play"; // pirate or escape
    if (slot.action === null || asks) delete button.dataset.action;
    else button.dataset.action = slot.action;
  }

  rectOf(card) {
    return this.slots.get(card)?.button.getBoundingClientRect() ?? null;
  }

  // Cards that may be played, from left to right.
  playable() {
    return [...this.element.querySelectorAll(".sk-hand-card.playable")];
  }

  all() {
    return [...this.element.querySelectorAll(".sk-hand-card")];
  }
}
