// The defender's desk beside the map: what is known of the chosen host, what can be done to it,
// and keys for all of it.

import { el, replace } from "/app/dom.js";
import {
  HOSTS,
  OP_SERVER,
  SUBNETS,
  USER0,
  costOf,
  decoyWords,
  servicesOf,
  splitAction,
  systemOf,
  whyNoDecoy,
} from "/games/cage2/network.js";

const MEANINGS = {
  no: "Monitoring has nothing on it.",
  unknown: "Something was removed; what is left is unknown.",
  user: "An attack was noticed: red may have a shell.",
  privileged: "Malware was found: count it as red's.",
};
const HELP = {
  Analyse: "find malware",
  Remove: "end shells",
  Restore: "as new, -1",
};
const KEYS = { Analyse: "a", Remove: "r", Restore: "x", Sleep: "w", Monitor: "o" };
const REPEAT = ".";
const NEXT = "j";

export class Desk {
  constructor(session, pick) {
    Object.assign(this, { session, pick });
    this.host = USER0 + 1;
    this.ask = null;
    this.seen = null;
    this.last = null; // what the person did last
    const { engine, rules } = session;
    this.actions = Array.from({ length: rules.actions }, (_, action) => ({
      action,
      ...splitAction(engine.actionName(action)),
    }));
    this.title = el("h3", {});
    this.facts = el("p", { class: "facts" });
    this.belief = el("p", { class: "belief-words" });
    this.main = el("div", { class: "deeds main" });
    this.decoys = el("div", { class: "deeds" });
    this.rest = el("div", { class: "deeds" });
    this.useless = el(
      "details",
      { class: "useless" },
      el("summary", {}, "Decoys that do nothing here"),
      this.rest,
    );
    this.always = el("div", { class: "deeds always" });
    this.element = el(
      "section",
      { class: "desk", "aria-label": "What to do" },
      this.always,
      this.title,
      this.facts,
      this.belief,
      this.main,
      el("h4", {}, "Decoys"),
      this.decoys,
      this.useless,
    );
  }

  show(seen, ask) {
    this.seen = seen;
    this.ask = ask;
    this.hinted = null;
    this.draw();
  }

  choose(host) {
    this.host = host;
    this.hinted = null;
    this.draw();
  }

  mark(action) {
    this.hinted = action;
    this.draw();
  }

  draw() {
    if (!this.seen) return;
    const { label, decoyMask, decoys } = this.seen.hosts[this.host];
    this.title.textContent = HOSTS[this.host];
    const services = servicesOf(this.host).join(", ");
    this.facts.textContent = `${systemOf(this.host)} · ${services} · ${worth(this.host)}`;
    this.belief.textContent =
      MEANINGS[label] + (decoys.length ? ` Decoys: ${decoys.join(", ")}.` : "");
    this.belief.dataset.label = label;
    const here = this.actions.filter(({ host }) => host === this.host);
    const isDecoy = ({ family }) => family.startsWith("Decoy");
    const plain = ["Analyse", "Remove", "Restore"].flatMap((name) =>
      here.filter(({ family }) => family === name),
    );
    this.fill(this.main, plain, (deed) => [KEYS[deed.family], HELP[deed.family]]);
    // A number stays with its decoy: those that were placed keep their place.
    const never = ({ family }) => whyNoDecoy(family, this.host, 0);
    const now = ({ family }) => whyNoDecoy(family, this.host, decoyMask);
    this.numbered = here.filter((deed) => isDecoy(deed) && !never(deed));
    const useless = here.filter((deed) => isDecoy(deed) && never(deed));
    this.fill(this.decoys, this.numbered, (deed, at) => [
      String(at + 1),
      now(deed) ?? decoyWords(deed.family),
      Boolean(now(deed)),
    ]);
    if (!this.numbered.length) this.decoys.textContent = "None does anything here.";
    this.fill(this.rest, useless, (deed) => ["", never(deed)]);
    this.useless.hidden = useless.length === 0;
    this.drawAlways();
  }

  drawAlways() {
    const idle = this.actions.filter(({ host }) => host < 0);
    this.fill(this.always, idle, ({ family }) => [KEYS[family], "wait"]);
    const last = this.actions[this.last];
    if (!last) return;
    const again = this.button(last, REPEAT, "again");
    again.classList.add("again");
    this.always.append(again);
  }

  fill(place, deeds, words) {
    replace(
      place,
      deeds.map((deed, at) => this.button(deed, ...words(deed, at))),
    );
  }

  button(deed, key, help, spent = false) {
    const { action, family, name } = deed;
    const shown = help === "again" ? name : family.replace(/^Decoy(?=.)/, "");
    return el(
      "button",
      {
        type: "button",
        class: `deed${action === this.hinted ? " hint" : ""}`,
        "data-action": action,
        "aria-label": `${name}${help ? `, ${help}` : ""}`,
        "aria-keyshortcuts": key || null,
        disabled: spent || !this.ask?.legal.includes(action),
        onclick: () => this.act(action),
      },
      key ? el("kbd", {}, key) : null,
      el("b", {}, shown),
      help ? el("span", {}, help) : null,
    );
  }

  act(action) {
    const done = this.session.choose(action);
    if (done) this.last = action;
    return done;
  }

  // True if the key meant something.
  key(key) {
    if (key === NEXT) return this.nextAlarm();
    if (key === REPEAT) return this.last !== null && this.act(this.last);
    const number = Number(key);
    if (number >= 1 && number <= this.numbered?.length) {
      this.decoys.children[number - 1].click(); // nothing, if it is spent
      return true;
    }
    const found = this.actions.find(
      ({ family, host }) => KEYS[family] === key && (host === this.host || host < 0),
    );
    return found ? this.act(found.action) : false;
  }

  // The next host on which something was noticed, the worst first.
  nextAlarm() {
    const order = [...SUBNETS].toReversed().flatMap(({ hosts }) => hosts);
    const grave = ({ activity, label }) =>
      (activity === "exploit" ? 8 : activity === "scan" ? 4 : 0) +
      { no: 0, unknown: 1, user: 2, privileged: 3 }[label];
    const alarming = order
      .filter((host) => grave(this.seen.hosts[host]) > 0)
      .toSorted((a, b) => grave(this.seen.hosts[b]) - grave(this.seen.hosts[a]));
    if (!alarming.length) return true;
    this.pick(alarming[(alarming.indexOf(this.host) + 1) % alarming.length]);
    return true;
  }
}

function worth(host) {
  if (host === USER0) return "red's foothold, costs nothing";
  const lost = `-${costOf(host)} a step if lost`;
  return host === OP_SERVER ? `${lost}, -10 while its service is stopped` : lost;
}
