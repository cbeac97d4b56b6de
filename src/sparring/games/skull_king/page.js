// Skull King in a browser: a card table seen from the person's seat.

import { el, replace } from "/app/dom.js";
import { Motion, quick, setQuick } from "/app/play/motion.js";
import { face } from "/games/skull_king/cards.js";
import { choicesOf, waiting } from "/games/skull_king/choices.js";
import { Hand, sorted } from "/games/skull_king/hand.js";
import {
  ACTION,
  TIGRESS,
  cardOf,
  handsAfter,
  laidAfter,
  nameOf,
  read,
  roundEnded,
  sees,
  takerOf,
  tokenName,
  winningSeat,
} from "/games/skull_king/reading.js";
import { Plate, othersOf, placesOf } from "/games/skull_king/seats.js";
import { Sheet } from "/games/skull_king/sheet.js";
import {
  RULES,
  actionName,
  bonusGained,
  capital,
  counted,
  result,
  describe,
} from "/games/skull_king/words.js";

const JADE = 9; // her token
const TIMES = { card: 340, bid: 160, read: 900, trick: 1300, sweep: 380 };

export const page = {
  rules: RULES,
  plates: false,
  actionName,
  describe,
  result,
  make(host, session) {
    return new Table(host, session);
  },
};

class Table {
  constructor(host, session) {
    this.session = session;
    this.host = host;
    this.motion = new Motion(host);
    this.sheet = new Sheet(session);
    this.tricks = new Map(); // finished ones by "round:number"
    this.picked = null; // the Tigress, while she waits for a role
    this.ask = null;
    this.plates = new Map();
    this.hand = new Hand({
      choose: (card, action) => this.playCard(card, action),
      refuse: (why) => this.refuse(why),
    });
    this.build();
    this.keys = (event) => this.key(event);
    document.addEventListener("keydown", this.keys);
  }

  build() {
    this.where = el("div", { class: "sk-where" });
    this.lastButton = el(
      "button",
      { type: "button", onclick: () => this.openLast() },
      "Last trick",
    );
    this.sheetButton = el("button", { type: "button", onclick: () => this.openSheet() }, "Scores");
    this.seenButton = el("button", { type: "button", onclick: () => this.openSeen() }, "Seen");
    this.quickButton = el("button", {
      type: "button",
      onclick: () => {
        setQuick(!quick());
        this.drawQuick();
      },
    });
    this.drawQuick();
    this.others = el("div", { class: "sk-others" });
    this.middle = el("div", { class: "sk-middle" });
    this.banner = el("div", { class: "sk-banner" });
    this.mine = el("div", { class: "sk-mine" });
    this.words = el("p", { class: "sk-words" });
    this.buttons = el("div", { class: "sk-buttons" });
    this.dialog = el("dialog", { class: "sk-dialog" });
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    const tools = [this.seenButton, this.lastButton, this.sheetButton, this.quickButton];
    this.felt = el(
      "div",
      { class: "sk-felt" },
      this.others,
      this.middle,
      this.banner,
      this.buttons,
    );
    this.host.append(
      el(
        "div",
        { class: "sk" },
        el("div", { class: "sk-head" }, this.where, el("div", { class: "sk-tools" }, tools)),
        this.felt,
        el("div", { class: "sk-bar" }, this.mine, this.words),
        this.hand.element,
        this.dialog,
      ),
    );
  }

  get bottom() {
    return Math.max(0, this.session.person);
  }

  show(state, ask) {
    const at = read(state);
    this.sheet.note(at);
    this.picked = null;
    this.draw(at, { ask, winner: winningSeat(state, at) });
    if (ask) this.motion.calmDown();
  }

  draw(at, { ask = null, winner = -1, message = "" } = {}) {
    const focused = this.host.contains(document.activeElement);
    this.at = at;
    this.ask = ask;
    this.drawWhere(at);
    this.drawSeats(at);
    this.drawMiddle(at, winner);
    replace(this.banner, message ? el("span", {}, message) : null);
    const hand = sees(this.session, this.bottom) ? at.hands[this.bottom] : [];
    this.hand.draw(at, hand, ask);
    this.drawChoices();
    if (focused && !this.host.contains(document.activeElement)) this.lostFocus = true;
    if (ask && this.lostFocus) {
      this.lostFocus = false;
      this.choices()[0]?.focus({ preventScroll: true });
    }
  }

  drawWhere(at) {
    const trick = Math.min(at.cards, at.tricksDone + 1);
    const words = [el("b", {}, `Round ${at.round}/${at.rounds}`)];
    if (at.phase === "over") words.push("game over");
    else if (at.phase === "bid" || at.phase === "cannon") words.push(counted(at.cards, "card"));
    else words.push(`trick ${trick}/${at.cards}`);
    replace(
      this.where,
      words.flatMap((word, i) => (i ? [" · ", word] : [word])),
    );
    this.lastButton.disabled = !this.lastTrick();
    this.sheetButton.disabled = this.sheet.rounds.size === 0;
    const seen = this.session.person < 0 ? [] : at.seen[this.session.person];
    this.seenButton.hidden = seen.length === 0;
    this.seenButton.textContent = `Out of play (${seen.length})`;
  }

  drawQuick() {
    this.quickButton.textContent = quick() ? "Quick" : "Animated";
    this.quickButton.title = "Whether cards fly or lie at once";
    this.quickButton.setAttribute("aria-pressed", String(quick()));
  }

  drawSeats(at) {
    const places = placesOf(at, this.bottom);
    for (const seat of [this.bottom, ...othersOf(at, this.bottom)]) {
      if (!this.plates.has(seat)) {
        const plate = new Plate(this.session, seat);
        this.plates.set(seat, plate);
        (seat === this.bottom ? this.mine : this.others).append(plate.element);
        const [x, y] = places.get(seat).plate;
        plate.element.style.setProperty("--x", `${x}%`);
        plate.element.style.setProperty("--y", `${y}%`);
      }
      this.plates.get(seat).draw(at);
    }
    this.others.style.setProperty("--others", this.plates.size - 1);
    this.felt.dataset.seats = at.seats;
  }

  drawMiddle(at, winner) {
    if (at.trick.length > 0) {
      replace(
        this.middle,
        at.trick.map((laid) => this.laid(at, laid, winner)),
      );
      return;
    }
    const between = at.phase === "bid" || at.phase === "over";
    const last = between ? this.sheet.lastRound(at) : null;
    replace(this.middle, last ? el("div", { class: "sk-paper" }, last) : null);
  }

  laid(at, { seat, token }, winner) {
    const [x, y] = placesOf(at, this.bottom).get(seat).card;
    const card = el(
      "div",
      {
        class: `sk-laid${seat === winner ? " wins" : ""}`,
        "data-seat": seat,
        role: "img",
        "aria-label": `${nameOf(this.session, seat)}: ${tokenName(token)}`,
        title: capital(tokenName(token)),
      },
      face(token),
      el("span", { class: "sk-by" }, nameOf(this.session, seat)),
    );
    card.style.setProperty("--x", `${x}%`);
    card.style.setProperty("--y", `${y}%`);
    return card;
  }

  drawChoices() {
    const { session, at, ask } = this;
    if (!ask) {
      // The winner is shown below the table.
      const watches = session.person < 0 || at.phase === "over";
      this.words.textContent = watches ? "" : waiting(session, at);
      replace(this.buttons);
      return;
    }
    const act = (action) => {
      if (action === null) this.pick(null);
      else session.choose(action);
    };
    const { words, buttons } = choicesOf(session, at, ask, this.picked, act);
    this.words.textContent = words;
    replace(this.buttons, buttons);
  }

  playCard(card, action) {
    if (card === TIGRESS && this.at.phase === "play") this.pick(TIGRESS);
    else this.session.choose(action);
  }

  pick(card) {
    this.picked = card;
    this.drawChoices();
    this.choices()[0]?.focus({ preventScroll: true });
  }

  refuse(why) {
    this.words.textContent = why;
    this.motion.play(
      this.words,
      [{ transform: "translateX(0)" }, { transform: "translateX(6px)" }, { transform: "none" }],
      160,
    );
  }

  async animate(before, move, after) {
    const was = read(before);
    const now = read(after);
    const [action] = move.actions;
    this.sheet.note(now);
    if (was.phase === "play") await this.animateCard(was, now, action);
    else if (was.phase === "bid" || was.phase === "cannon") await this.animateBid(was, now);
    else await this.animateAbility(before, move, after, was);
  }

  async animateBid(was, now) {
    this.draw(now);
    const revealed = now.phase !== was.phase;
    const seats = revealed ? [...this.plates.keys()] : [was.actor];
    const pops = seats.map((seat) => this.pop(seat));
    await Promise.all(pops);
    if (revealed) {
      const bids = now.bid.slice(0, now.players).reduce((a, b) => a + b, 0);
      this.draw(now, {
        message:
          was.phase === "bid"
            ? `${bids} bid for ${counted(now.cards, "trick")}`
            : "Loads are shown",
      });
      await this.motion.pause(TIMES.read);
    }
  }

  pop(seat) {
    const numbers = this.plates.get(seat)?.element.querySelector(".sk-numbers");
    return this.motion.play(
      numbers,
      [{ transform: "scale(1)" }, { transform: "scale(1.25)" }, { transform: "scale(1)" }],
      TIMES.bid,
    );
  }

  async animateAbility(before, move, after, was) {
    const message = describe(before, move, after, this.session)[0];
    this.draw(was, { message });
    await this.motion.pause(TIMES.read);
  }

  async animateCard(was, now, action) {
    const laid = laidAfter(was, action);
    for (let count = was.trick.length + 1; count <= laid.length; ++count) {
      await this.layCard(was, laid.slice(0, count));
    }
    if (laid.length < was.seats) return;
    const taker = takerOf(was, now, laid);
    this.tricks.set(`${was.round}:${was.tricksDone + 1}`, { laid, taker, was });
    await this.animateTrick(was, now, laid, taker);
  }

  async layCard(was, laid) {
    const { seat, token } = laid.at(-1);
    const plate = this.plates.get(seat)?.element;
    const from =
      seat === this.bottom
        ? this.hand.rectOf(cardOf(token))
        : (plate?.querySelector(".sk-backs, .sk-held svg") ?? plate)?.getBoundingClientRect();
    const hands = handsAfter(was, laid);
    this.draw({ ...was, trick: laid, hands, actor: -1 });
    const card = this.middle.querySelector(`.sk-laid[data-seat="${seat}"]`);
    await this.motion.arrive(card, from, TIMES.card, { turn: seat === this.bottom ? 0 : -14 });
  }

  async animateTrick(was, now, laid, taker) {
    const won = was.won.map((tricks, seat) => tricks + (seat === taker));
    const bonus = was.bonus.map(
      (points, seat) => points + (seat === taker ? bonusGained(was, now, taker) : 0),
    );
    const hands = handsAfter(was, laid);
    const message = this.trickWords(was, now, taker);
    this.draw({ ...was, trick: laid, hands, won, bonus, actor: -1 }, { winner: taker, message });
    this.motion.calmDown();
    await this.motion.pause(TIMES.trick);
    const place = taker < 0 ? null : this.plates.get(taker)?.element;
    const cards = [...this.middle.querySelectorAll(".sk-laid")];
    await Promise.all(cards.map((card) => this.sweep(card, place)));
    const jade = taker >= 0 && laid.find(({ seat }) => seat === taker).token === JADE;
    if (jade && was.settings.abilities && taker === this.session.person && !roundEnded(was, now)) {
      this.draw({ ...now, trick: [] });
      this.openSeen("Juanita Jade shows you the cards that were not dealt");
    }
  }

  sweep(card, place) {
    if (place) return this.motion.leave(card, place, TIMES.sweep);
    const gone = [{}, { transform: "translateY(30px) rotate(25deg) scale(.6)", opacity: 0 }];
    return this.motion.play(card, gone, TIMES.sweep, { fill: "forwards" });
  }

  trickWords(was, now, taker) {
    if (taker < 0) return "The trick is destroyed";
    const takes =
      taker === this.session.person ? "You take" : `${capital(nameOf(this.session, taker))} takes`;
    const gained = bonusGained(was, now, taker);
    return `${takes} the trick${gained ? `, +${gained} bonus` : ""}`;
  }

  // The trick that ended last before the position on the table.
  lastTrick() {
    const { at } = this;
    if (at.tricksDone > 0) return this.tricks.get(`${at.round}:${at.tricksDone}`);
    const before = [...this.tricks.entries()].filter(([key]) => key.startsWith(`${at.round - 1}:`));
    return before.at(-1)?.[1];
  }

  openLast() {
    const trick = this.lastTrick();
    if (!trick) return;
    const cards = trick.laid.map((one) => this.laid(trick.was, one, trick.taker));
    const takes =
      trick.taker < 0
        ? "No player took it."
        : `${capital(nameOf(this.session, trick.taker))} took it.`;
    this.open("The last trick", el("div", { class: "sk-row" }, cards), el("p", {}, takes));
  }

  openSheet() {
    this.open("Scores", el("div", { class: "sk-scroll" }, this.sheet.whole(this.at)));
  }

  openSeen(title = "Cards you know to be out of play") {
    const { person } = this.session;
    if (person < 0) return;
    const cards = sorted(this.at.seen[person]).map((card) => face(card + 1, { inHand: true }));
    this.open(title, el("div", { class: "sk-row small" }, cards));
  }

  open(title, ...inside) {
    const shut = el("button", { type: "button", onclick: () => this.dialog.close() }, "Close");
    replace(this.dialog, el("h2", {}, title), ...inside, shut);
    if (!this.dialog.open) this.dialog.showModal();
  }

  // What the arrow keys go through.
  choices() {
    const buttons = [...this.buttons.querySelectorAll("button")];
    return buttons.length > 0 ? buttons : this.hand.playable();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.dialog.open) return;
    if (event.target.closest?.("input, select, textarea")) return;
    const key = event.key.toLowerCase();
    if (key === "l") this.openLast();
    else if (key === "t" && !this.sheetButton.disabled) this.openSheet();
    if (!this.ask) return;
    if (/^\d$/.test(key)) this.digit(Number(key));
    else if (key === "escape" && this.picked !== null) this.pick(null);
    else if (key.startsWith("arrow"))
      this.step(key === "arrowright" || key === "arrowdown" ? 1 : -1);
    else return;
    event.preventDefault();
  }

  digit(number) {
    if (this.at.phase === "bid") {
      this.session.choose(number);
      return;
    }
    const buttons = [...this.buttons.querySelectorAll("button")];
    const list = buttons.length > 0 ? buttons : this.hand.all();
    list[(number + 9) % 10]?.click();
  }

  step(by) {
    const choices = this.choices();
    if (choices.length === 0) return;
    const now = choices.indexOf(document.activeElement);
    const next = now < 0 ? (by > 0 ? 0 : choices.length - 1) : now + by;
    choices[(next + choices.length) % choices.length].focus();
  }

  mark(action) {
    const tigress = action === ACTION.tigressEscape || action === ACTION.play + TIGRESS;
    if (tigress && this.at.phase === "play") this.pick(TIGRESS);
    this.host.querySelector(`[data-action="${action}"]`)?.classList.add("hinted");
  }

  close() {
    document.removeEventListener("keydown", this.keys);
    this.motion.close();
    if (this.dialog.open) this.dialog.close();
  }
}
