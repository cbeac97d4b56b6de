// Kuhhandel in a browser: the auction, hidden money, and trades.

import { el, replace } from "/app/dom.js";
import { Motion, quick, setQuick } from "/app/play/motion.js";
import { BidBox, PileBox, plainChoices, turnChoices, waiting } from "/games/kuhhandel/choices.js";
import { middleOf } from "/games/kuhhandel/middle.js";
import {
  ACTION,
  BIDS,
  KINDS,
  PILES,
  cardsIn,
  counted,
  isFinished,
  laidDown,
  nameOf,
  read,
  worth,
} from "/games/kuhhandel/reading.js";
import { Plate } from "/games/kuhhandel/seats.js";
import { hiddenNote, note } from "/games/kuhhandel/wares.js";
import { bestPayment, wholeAdvice } from "/games/kuhhandel/wishes.js";
import {
  RULES,
  actionName,
  capital,
  quartetsMade,
  result,
  saleOf,
  describe,
  seesPile,
  winnerOf,
} from "/games/kuhhandel/words.js";

const TIMES = { card: 450, bid: 420, read: 1000, money: 520, shown: 1900 };

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
    this.ask = null;
    this.box = null; // a BidBox or PileBox while one is asked for
    this.build();
    this.keys = (event) => this.key(event);
    document.addEventListener("keydown", this.keys);
  }

  build() {
    const { session } = this;
    this.plates = session.players.map(
      (_, seat) => new Plate(session, seat, (index) => this.box?.add?.(index)),
    );
    const bottom = Math.max(0, session.person);
    const others = this.plates.map((_, k) => (bottom + k) % this.plates.length).slice(1);
    this.quickButton = el("button", {
      type: "button",
      title: "Whether cards and money fly or lie at once",
      onclick: () => {
        setQuick(!quick());
        this.drawQuick();
      },
    });
    this.drawQuick();
    this.where = el("div", { class: "kh-where" });
    this.middle = el("div", { class: "kh-middle" });
    this.banner = el("div", { class: "kh-banner" });
    this.words = el("p", { class: "kh-words" });
    this.inside = el("div", { class: "kh-inside" });
    this.others = el(
      "div",
      { class: "kh-others" },
      others.map((seat) => this.plates[seat].element),
    );
    this.others.style.setProperty("--others", others.length);
    this.host.append(
      el(
        "div",
        { class: "kh" },
        el("div", { class: "kh-head" }, this.where, this.quickButton),
        this.others,
        el("div", { class: "kh-stage" }, this.middle, this.banner),
        el("div", { class: "kh-ask" }, this.words, this.inside),
        this.plates[bottom].element,
      ),
    );
  }

  drawQuick() {
    this.quickButton.textContent = quick() ? "Quick" : "Animated";
    this.quickButton.setAttribute("aria-pressed", String(quick()));
  }

  show(state, ask) {
    const at = read(state);
    if (ask && ask !== this.ask) this.prepare(state, at);
    if (!ask) this.box = null;
    this.draw(at, { ask });
    if (ask) this.motion.calmDown();
  }

  // What is needed to ask for a bid or a pile.
  prepare(state, at, preset = null) {
    const act = (actions) => this.act(actions);
    if (BIDS.includes(at.phase)) {
      this.box = new BidBox(state, act, { preset });
      this.box.warn = (amount) => this.warnBluff(at, amount);
      this.box.update();
    } else if (PILES.includes(at.phase)) {
      const pay = at.phase === "pay" && cardsIn(at.chosen) === 0 ? bestPayment(state) : null;
      this.box = new PileBox(state, at, act, {
        preset: preset ?? pay,
        changed: () => this.drawPlates(this.at),
      });
    } else this.box = null;
  }

  warnBluff(at, amount) {
    const funds = worth(at.money[at.actor]);
    if (amount > funds) this.box.warning.textContent = `A bluff: you have only ${funds}.`;
  }

  act([first, ...rest]) {
    this.session.choose(first, rest);
  }

  draw(at, { ask = null, lines = [], counter = null } = {}) {
    const focused = this.host.contains(document.activeElement);
    this.at = at;
    this.ask = ask;
    this.drawWhere(at);
    this.drawPlates(at);
    replace(this.middle, middleOf(this.session, at, { counter }));
    replace(
      this.banner,
      lines.map((line) => el("span", {}, line)),
    );
    this.drawAsk(at, ask);
    if (focused && !this.host.contains(document.activeElement)) this.lostFocus = true;
    if (ask && this.lostFocus) {
      this.lostFocus = false;
      this.choices()[0]?.focus({ preventScroll: true });
    }
  }

  drawWhere(at) {
    const donkeys = at.donkeys > 0 ? ` · ${counted(at.donkeys, "donkey")} seen` : "";
    const left =
      at.deckLeft > 0 ? `${counted(at.deckLeft, "card")} in the deck` : "the deck is empty";
    this.where.textContent =
      at.phase === "done" ? "The game is over" : `${capital(left)}${donkeys}`;
  }

  drawPlates(at) {
    const pile = this.ask && this.box?.takes ? this.box : null;
    this.plates.forEach((plate, seat) =>
      plate.draw(at, seat === this.session.person ? pile : null),
    );
  }

  drawAsk(at, ask) {
    const { session } = this;
    this.plates.forEach(({ element }) => element.classList.toggle("composing", false));
    if (!ask) {
      this.words.textContent = session.person < 0 ? "" : waiting(session, at);
      replace(this.inside);
      return;
    }
    const act = (actions) => this.act(actions);
    if (this.box) {
      this.words.textContent = this.boxWords(at);
      replace(this.inside, this.box.inside);
      return;
    }
    const asked = at.phase === "turn" ? turnChoices : plainChoices;
    const { words, inside } = asked(session, at, ask, act);
    this.words.textContent = words;
    replace(this.inside, inside);
  }

  boxWords(at) {
    const { session } = this;
    if (BIDS.includes(at.phase)) {
      const high =
        at.highBidder >= 0 ? `${capital(nameOf(session, at.highBidder))} bids ${at.highBid}.` : "";
      return `${high} What do you bid for the ${KINDS[at.lot]}?`.trim();
    }
    if (at.phase === "pay") {
      const to = at.actor === at.turn ? at.highBidder : at.turn;
      return `Pay ${nameOf(session, to)} ${at.highBid} for the ${KINDS[at.lot]}.`;
    }
    const stake = counted(at.stake, KINDS[at.traded]);
    const other = nameOf(session, at.phase === "offer" ? at.target : at.turn);
    if (at.phase === "offer")
      return `What do you offer ${other} for ${stake}? Only the number of notes is seen.`;
    return `${capital(other)} laid down ${counted(cardsIn(at.offer), "note")}. What do you lay against it?`;
  }

  async animate(before, move, after) {
    const was = read(before);
    const now = read(after);
    const [action] = move.actions;
    if (!isFinished(was, now)) return;
    const lines = describe(before, move, after, this.session);
    this.box = null;
    if (was.phase === "turn") await this.animateTurn(was, now, action, lines);
    else if (["offer", "respond", "counter"].includes(was.phase)) {
      await this.animateTrade(was, now, action, lines);
    } else await this.animateAuction(was, now, lines);
    if (quartetsMade(was, now).length > 0) await this.motion.pause(TIMES.read);
  }

  async animateTurn(was, now, action, lines) {
    const from = this.middle.querySelector(".kh-deck .kh-card")?.getBoundingClientRect();
    if (action !== ACTION.auction) {
      this.draw({ ...now, phase: "offer", offer: now.offer.map(() => 0), actor: -1 }, { lines });
      await this.motion.pause(TIMES.read);
      return;
    }
    const lot = { ...was, phase: "bid", lot: was.next, deckLeft: was.deckLeft - 1, actor: -1 };
    this.draw({ ...lot, donkeys: now.donkeys }, { lines });
    await this.motion.arrive(this.lot, from, TIMES.card, { turn: -8 });
    if (now.donkeys > was.donkeys) {
      const paid = now.money[0].findIndex((count, index) => count > was.money[0][index]);
      const seats = this.plates.map((plate) => plate.money);
      await Promise.all(seats.map((to) => this.motion.send(note(paid), this.lot, to, 700)));
      this.draw({ ...lot, donkeys: now.donkeys, money: now.money, known: now.known }, { lines });
    }
    await this.motion.pause(TIMES.read / 2);
    await this.animateSale({ ...was, lot: was.next }, now);
  }

  async animateAuction(was, now, lines) {
    const sale = saleOf(was, now);
    const stays = now.lot >= 0 ? now : { ...was, actor: -1 };
    this.draw({ ...stays, actor: -1 }, { lines: lines.slice(0, 2) });
    const status = this.plates[was.actor].status;
    const pop = [
      { transform: "scale(1)" },
      { transform: "scale(1.25)" },
      { transform: "scale(1)" },
    ];
    await this.motion.play(status, pop, TIMES.bid);
    const exposed = now.exposed.length > was.exposed.length;
    if (exposed) await this.motion.pause(TIMES.shown);
    else if (was.phase === "decide") await this.motion.pause(TIMES.read);
    if (sale) await this.animateSale(was, now);
  }

  // Money goes one way, the animal the other.
  async animateSale(was, now) {
    const sale = saleOf(was, now);
    if (!sale) return;
    const { owner, paid, to } = sale;
    if (paid) {
      const open = seesPile(this.session, [owner, to]) || was.settings.open_pay;
      await this.sendPile(paid, open, this.plates[owner].money, this.plates[to].money);
    }
    await this.motion.leave(this.lot, this.plates[owner].farm, TIMES.card);
  }

  async animateTrade(was, now, action, lines) {
    const laid = laidDown(was, action, now);
    const both = seesPile(this.session, [was.turn, was.target]);
    if (was.phase === "offer") {
      this.draw(
        { ...was, phase: "respond", offer: laid, chosen: was.offer, actor: -1 },
        { lines: lines.slice(0, 1) },
      );
      const pile = this.middle.querySelector(".left .kh-pile");
      await this.motion.arrive(pile, this.plates[was.turn].money, TIMES.money);
      if (now.target < 0) await this.animateWinner(was, now, lines);
      return;
    }
    if (action === ACTION.accept) {
      this.draw({ ...was, actor: -1 }, { lines });
      await this.motion.pause(TIMES.read / 2);
      await this.sendPile(
        was.offer,
        both,
        this.middle.querySelector(".left .kh-pile"),
        this.plates[was.target].money,
      );
      await this.animateWinner(was, now, lines);
      return;
    }
    if (was.phase === "respond" && now.phase === "counter" && now.ties === was.ties) {
      this.draw({ ...was, actor: -1 }, { lines });
      await this.motion.pause(TIMES.read / 2);
      return;
    }
    await this.animateCounter(was, now, laid, lines, both);
  }

  async animateCounter(was, now, laid, lines, both) {
    this.draw({ ...was, actor: -1 }, { lines, counter: laid });
    const [left, right] = ["left", "right"].map((side) =>
      this.middle.querySelector(`.${side} .kh-pile`),
    );
    await this.motion.arrive(right, this.plates[was.target].money, TIMES.money);
    await this.motion.pause(TIMES.shown);
    await Promise.all([
      this.sendPile(was.offer, both, left, this.plates[was.target].money),
      this.sendPile(laid, both, right, this.plates[was.turn].money),
    ]);
    if (now.target < 0) await this.animateWinner(was, now, lines);
  }

  async animateWinner(was, now, lines) {
    replace(
      this.banner,
      lines.slice(-2).map((line) => el("span", {}, line)),
    );
    await this.motion.leave(this.lot, this.plates[winnerOf(was, now)].farm, TIMES.card);
  }

  // Notes fly one after the other, with their faces down where they are not to be seen.
  async sendPile(pile, open, from, to) {
    const notes = pile.flatMap((count, index) =>
      Array.from({ length: count }, () => (open ? note(index) : hiddenNote())),
    );
    await Promise.all(notes.map((one, k) => this.motion.send(one, from, to, TIMES.money, 60 * k)));
  }

  get lot() {
    return this.middle.querySelector(".kh-lot");
  }

  // What the arrow keys go through.
  choices() {
    const inside = [...this.inside.querySelectorAll("button:not([disabled]), input")];
    const stacks = this.box?.takes
      ? [...this.host.querySelectorAll(".kh-stack:not([disabled])")]
      : [];
    return [...stacks, ...inside];
  }

  key(event) {
    if (!this.ask || event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest?.("input, select, textarea");
    const key = event.key.toLowerCase();
    if (key === "p" && !event.target.closest?.("select, textarea") && this.box?.field) {
      this.inside.querySelector(`[data-action="${ACTION.pass}"]`)?.click();
    } else if (typing) return;
    else if (/^\d$/.test(key)) return this.digit(key);
    else if (key.startsWith("arrow"))
      this.step(key === "arrowright" || key === "arrowdown" ? 1 : -1);
    else return;
    event.preventDefault();
  }

  // Digits are an amount where a bid is asked for; the field gets the key itself.
  digit(key) {
    if (this.box?.field) {
      this.box.field.value = "";
      this.box.field.focus();
      return;
    }
    this.choices()[(Number(key) + 9) % 10]?.click();
  }

  step(by) {
    const choices = this.choices();
    if (choices.length === 0) return;
    const now = choices.indexOf(document.activeElement);
    const next = now < 0 ? (by > 0 ? 0 : choices.length - 1) : now + by;
    choices[(next + choices.length) % choices.length].focus();
  }

  // A hint: whole bids and piles are filled in, to be confirmed.
  mark(action) {
    const { session, at } = this;
    if (this.box && action >= ACTION.number) {
      const next = (state) => session.moveOf(session.adviser, state, this.ask.row);
      const advice = wholeAdvice(session.state, action, next);
      this.prepare(session.state, at, this.box.field ? advice.bid : advice.pile);
      this.draw(at, { ask: this.ask });
      this.inside.querySelector(".kh-bid, .kh-confirm")?.classList.add("hinted");
      return;
    }
    this.inside.querySelector(`[data-action="${action}"]`)?.classList.add("hinted");
  }

  close() {
    document.removeEventListener("keydown", this.keys);
    this.motion.close();
  }
}
