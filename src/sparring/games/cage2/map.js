// The network as a map: a row per subnet, every host a button. Lines are drawn between where the
// buttons lie, so that the same map fits a phone and a desk.

import { el, replace, svg } from "/app/dom.js";
import { HOSTS, SUBNETS, USER0, WAYS } from "/games/cage2/network.js";

const SHAPES = {
  desk: "M-13,-11h26v17h-26z M-5,11h10 M0,6v5",
  server: "M-9,-13h18v26h-18z M-5,-8h10 M-5,-3h10 M0,7h.1",
  shield: "M0,-13 l11,4 v8 c0,7 -5,11 -11,14 c-6,-3 -11,-7 -11,-14 v-8z",
};
const BELIEFS = {
  no: "no sign",
  unknown: "unknown",
  user: "user",
  privileged: "privileged",
};

export class NetworkMap {
  constructor(onPick) {
    this.onPick = onPick;
    this.nodes = HOSTS.map((name, host) => this.makeNode(name, host));
    this.wires = svg("svg", { class: "wires", "aria-hidden": "true" });
    this.strikes = svg("svg", { class: "strikes", "aria-hidden": "true" });
    const rows = SUBNETS.map(({ name, hosts }) =>
      el(
        "section",
        { class: "subnet", "aria-label": `${name} subnet` },
        el("h3", {}, name),
        el(
          "div",
          { class: "hosts" },
          hosts.map((host) => this.nodes[host].button),
        ),
      ),
    );
    this.element = el("div", { class: "network" }, this.wires, rows, this.strikes);
    this.watcher = new ResizeObserver(() => this.drawWires());
    this.watcher.observe(this.element);
  }

  makeNode(name, host) {
    const belief = el("span", { class: "belief" });
    const truth = el("span", { class: "truth" });
    const decoys = el("span", { class: "decoys" });
    const alarm = el("span", { class: "alarm" });
    const button = el(
      "button",
      {
        type: "button",
        class: "host",
        "data-host": name,
        tabindex: host === USER0 ? 0 : -1,
        onclick: () => this.onPick(host),
      },
      icon(host),
      alarm,
      el("span", { class: "name" }, name),
      belief,
      truth,
      decoys,
    );
    return { button, belief, truth, decoys, alarm };
  }

  // `truth` is null as long as it is hidden.
  draw(seen, truth) {
    this.truth = truth;
    seen.hosts.forEach((host, at) => {
      const { button, belief, truth: real, decoys, alarm } = this.nodes[at];
      button.dataset.label = host.label;
      button.dataset.activity = host.activity;
      belief.textContent = BELIEFS[host.label];
      alarm.textContent = host.activity === "none" ? "" : host.activity;
      replace(
        decoys,
        host.decoys.map((port) => el("i", { title: `decoy on ${port}` }, port.split(" ")[1])),
      );
      real.textContent = truth ? trueWords(truth, at) : "";
      if (truth) button.dataset.truth = truth.levels[at];
      else delete button.dataset.truth;
      button.setAttribute("aria-label", hostWords(at, host, truth));
    });
    this.drawStrike();
  }

  pick(host, focus) {
    this.nodes.forEach(({ button }, at) => {
      button.tabIndex = at === host ? 0 : -1;
      button.setAttribute("aria-pressed", String(at === host));
    });
    if (focus) this.nodes[host].button.focus({ preventScroll: true });
  }

  hint(host) {
    this.nodes.forEach(({ button }, at) => button.classList.toggle("hint", at === host));
  }

  // Middle, top and bottom of a node, within the map.
  spot(host) {
    const map = this.element.getBoundingClientRect();
    const node = this.nodes[host].button.getBoundingClientRect();
    return {
      x: node.left + node.width / 2 - map.left,
      top: node.top - map.top,
      bottom: node.bottom - map.top,
    };
  }

  drawWires() {
    const { clientWidth, clientHeight } = this.element;
    for (const layer of [this.wires, this.strikes]) {
      layer.setAttribute("viewBox", `0 0 ${clientWidth} ${clientHeight}`);
    }
    const buses = SUBNETS.map(({ hosts }) => {
      const spots = hosts.map((host) => this.spot(host));
      return { spots, y: spots[0].top - 12, xs: spots.map(({ x }) => x) };
    });
    const wires = buses.flatMap(({ spots, y, xs }) => [
      `M${Math.min(...xs)},${y}H${clientWidth - 3}`,
      ...spots.map(({ x, top }) => `M${x},${y}V${top}`),
    ]);
    const trunk = clientWidth - 3;
    const ways = WAYS.map(([from, to]) => {
      const [a, b] = [this.spot(from), this.spot(to)];
      const half = (a.bottom + b.top) / 2;
      return `M${a.x},${a.bottom}C${a.x},${half} ${b.x},${half} ${b.x},${b.top}`;
    });
    replace(
      this.wires,
      svg("path", { class: "trunk", d: `M${trunk},${buses[0].y}V${buses[2].y}` }),
      svg("path", { class: "wire", d: wires.join("") }),
      svg("path", { class: "way", d: ways.join("") }),
    );
    this.drawStrike();
  }

  // Red's last move; all of them start on User0.
  drawStrike() {
    replace(this.strikes);
    const host = this.truth?.move.host ?? null;
    if (host === null || host === USER0) return;
    const [from, to] = [this.spot(USER0), this.spot(host)];
    const below = to.top > from.bottom;
    const [y1, y2] = below ? [from.bottom, to.top] : [from.top, to.top];
    const bend = below ? (y1 + y2) / 2 : y1 - 26;
    const kind = this.truth.move.succeeded ? "hit" : "miss";
    replace(
      this.strikes,
      svg("path", {
        class: `strike ${kind}`,
        d: `M${from.x},${y1}C${from.x},${bend} ${to.x},${bend} ${to.x},${y2 - 9}`,
      }),
      svg("path", {
        class: `tip ${kind}`,
        d: `M${to.x},${y2}l-5,-10h10z`,
      }),
    );
  }

  close() {
    this.watcher.disconnect();
  }
}

function icon(host) {
  const name = HOSTS[host];
  const shape = name === "Defender" ? "shield" : /Enterprise|Server/.test(name) ? "server" : "desk";
  return svg(
    "svg",
    { class: "icon", viewBox: "-16 -16 32 32", "aria-hidden": "true" },
    svg("path", { d: SHAPES[shape] }),
  );
}

function trueWords(truth, host) {
  const level = { none: "", user: "red: user", privileged: "red: root" }[truth.levels[host]];
  const parts = [level, truth.malware[host] ? "malware" : ""];
  return parts.filter(Boolean).join(", ") || "clean";
}

function hostWords(host, { activity, label, decoys }, truth) {
  const parts = [HOSTS[host], `believed compromised: ${BELIEFS[label]}`];
  if (activity !== "none") parts.push(`${activity} noticed`);
  if (decoys.length) parts.push(`decoys on ${decoys.join(", ")}`);
  if (truth) parts.push(`in truth ${trueWords(truth, host)}`);
  return parts.join(", ");
}
