// Which charts a run has, by the names of its curves: what matters most comes first.

import { titled } from "/app/words.js";

const GRAY = 7;
const PREVIOUS_BEST = "previous best";
const PHASES =
  "stepping inference select evaluate settle transfer advantage replay sampling update other".split(
    " ",
  );
export const LOSSES = {
  policy_loss: "Policy loss",
  value_loss: "Value loss",
  entropy: "Entropy",
  approx_kl: "Approximate KL per update",
  clipfrac: "Clipped share of samples",
  magnet_kl: "KL divergence from the magnet",
  explained_variance: "Explained variance of returns",
  grad_norm: "Gradient norm",
  q_loss: "Q loss",
  td_error: "Mean TD error",
  critic_loss: "Critic loss",
  actor_loss: "Policy loss",
  temperature_loss: "Temperature loss",
};
const LEARNING = {
  lr: "Learning rate",
  entropy_weight: "Weight of entropy",
  replay_ratio: "Samples trained per decision",
  steps_per_decision: "Gradient steps per decision",
  replay_fill: "Replay: share that is full",
  replay_age: "Replay: mean age in decisions",
  epsilon: "Share of random actions",
  temperature: "Temperature (entropy coefficient)",
};
const CURRICULUM = {
  reward: "Reward weights",
  flag: "Flags of the game",
  opponents: "Share of games per opponent",
};
const SPEEDS = { "charts/SPS": "decisions/s", "charts/samples_per_s": "samples/s" };
const USE = {
  "charts/machine_share": ["Share of what this machine can do", "percent"],
  "charts/simulations_per_s": ["Simulations of searches per second", "rate"],
  "charts/cpu_share": ["Processor cores at work", "number"],
  "charts/gpu_busy": ["GPU at work", "percent"],
  "distributed/learner_idle": ["Learner idle", "percent"],
  "distributed/actor_idle": ["Actors idle", "percent"],
};

// Returns [{ name, open, charts: [spec] }]; every curve is in one chart.
export function groupsOf(store, fairShare) {
  const maker = new Maker(store);
  const groups = [
    { name: "Strength", charts: strength(maker, fairShare) },
    { name: "Speed", charts: speed(maker) },
    { name: "Losses", charts: losses(maker) },
    { name: "Game statistics", charts: statistics(maker) },
    { name: "Learning", charts: learning(maker) },
    { name: "Curriculum", charts: curriculum(maker) },
  ];
  const rest = maker.left().map((name) => maker.single(titled(name.replaceAll("/", ": ")), name));
  groups.push({ name: "Everything else", charts: rest, folded: true });
  return groups.filter(({ charts }) => charts.length);
}

class Maker {
  constructor(store) {
    this.store = store;
    this.names = store.names.toSorted();
    this.used = new Set();
  }

  with(prefix) {
    return this.names.filter((name) => name.startsWith(prefix));
  }

  left() {
    return this.names.filter((name) => !this.used.has(name));
  }

  series(name, curve, color, more = {}) {
    const [low, high] = more.ends ?? [null, null];
    for (const used of [curve, low, high]) if (used) this.used.add(used);
    const read = (by) => this.store.line(curve, by, low, high);
    return { name, color: color % 8, curve, read, ...more };
  }

  single(title, curve, more = {}) {
    return { title, series: [this.series("last", curve, 0)], ...more };
  }
}

function strength(maker, fairShare) {
  const opponents = maker
    .with("eval/")
    .filter((name) => name.split("/").length > 2 && /\/(win|score)$/.test(name))
    .map((name) => name.split("/").slice(1, -1).join("/"));
  const met = [...new Set(opponents)];
  const named = met.filter((name) => name !== PREVIOUS_BEST && !name.startsWith("past "));
  const past = met.filter((name) => name.startsWith("past "));
  const previous = met.includes(PREVIOUS_BEST) ? [PREVIOUS_BEST] : [];
  const guide = fairShare ? { value: fairShare, name: "equal strength" } : null;
  const line = (name, at, what) => {
    const ends = ["low", "high"].map((end) => `eval/${name}/${end}`);
    const band = what === "win" && maker.store.has(ends[0]) ? ends : undefined;
    const color = name === PREVIOUS_BEST ? GRAY : at % GRAY;
    const dashed = name === PREVIOUS_BEST || at >= GRAY;
    return maker.series(name, `eval/${name}/${what}`, color, { ends: band, dashed });
  };
  const lines = (names, what) =>
    names.filter((name) => maker.store.has(`eval/${name}/${what}`)).map((n, i) => line(n, i, what));
  const share = { form: "percent", span: [0, 1], guide };
  const charts = [
    {
      title: "Wins against each opponent",
      series: lines([...named, ...previous], "win"),
      wide: true,
      ...share,
    },
    { title: "Score against each opponent", series: lines([...named, ...previous], "score") },
    { title: "Wins against past selves", series: lines(past, "win"), ...share },
  ];
  if (maker.store.has("eval/strength")) {
    const rated = charts[0].series.length > 0;
    const form = rated ? { form: "percent" } : {};
    charts.push(maker.single("Mean over opponents", "eval/strength", { ...form, wide: !rated }));
  }
  if (maker.store.has("eval/exploitability"))
    charts.push(maker.single("Exploitability, exact", "eval/exploitability"));
  if (maker.store.has("charts/score"))
    charts.push(maker.single("Score while training", "charts/score"));
  for (const name of maker.with("league/")) {
    charts.push(maker.single(`League: ${name.slice(7).replaceAll("_", " ")}`, name));
  }
  return charts.filter(({ series }) => series.length);
}

function speed(maker) {
  const speeds = Object.keys(SPEEDS).filter((name) => maker.store.has(name));
  const charts = [
    {
      title: "Speed, learning included",
      series: speeds.map((name, at) => maker.series(SPEEDS[name], name, at)),
      form: "rate",
      fromZero: true,
      log: true,
    },
    timeSpent(maker),
  ];
  for (const [name, [title, form]] of Object.entries(USE)) {
    if (maker.store.has(name)) charts.push(maker.single(title, name, { form, fromZero: true }));
  }
  return charts.filter(({ series }) => series.length);
}

function timeSpent(maker) {
  const there = maker.with("phases/").map((name) => name.slice(7));
  const names = [
    ...PHASES.filter((n) => there.includes(n)),
    ...there.filter((n) => !PHASES.includes(n)),
  ];
  const curves = names.map((name) => `phases/${name}`);
  const series = names.map((name, at) => ({
    ...maker.series(name, curves[at], name === "other" ? GRAY : at),
    read: (by) => maker.store.layer(curves, at, by),
  }));
  return { title: "Where the time goes", series, form: "percent", span: [0, 1], stacked: true };
}

// A chart for every loss; where roles learn apart, a line for each of them.
function losses(maker) {
  return byRole(maker, "losses/", LOSSES, { log: true });
}

function learning(maker) {
  return byRole(maker, "learning/", LEARNING, { log: true, fromZero: true }, true);
}

function byRole(maker, prefix, titles, more, onlyKnown = false) {
  const found = new Map();
  for (const curve of maker.with(prefix)) {
    const [name, ...role] = curve.slice(prefix.length).split("/");
    if (onlyKnown && !(name in titles)) continue;
    if (!found.has(name)) found.set(name, []);
    const lines = found.get(name);
    lines.push(maker.series(role.join("/") || "last", curve, lines.length % GRAY));
  }
  const order = Object.keys(titles);
  const place = (name) => (order.includes(name) ? order.indexOf(name) : order.length);
  return [...found]
    .sort(([a], [b]) => place(a) - place(b))
    .map(([name, series]) => ({ title: titles[name] ?? titled(name), series, ...more }));
}

// A chart for each statistic of the game, with its stages: bid_kept_early is a stage of bid_kept.
function statistics(maker) {
  const names = maker.with("stats/").map((name) => name.slice(6));
  const found = new Map();
  for (const name of names) {
    const whole = names.find((other) => name.startsWith(`${other}_`)) ?? name;
    if (!found.has(whole)) found.set(whole, []);
    if (!/\d$/.test(name)) found.get(whole).push(name);
  }
  return [...found]
    .filter(([, stages]) => stages.length)
    .map(([whole, stages]) => ({
      title: titled(whole),
      series: stages.map((name, at) =>
        maker.series(
          stageName(name.slice(whole.length), stages.length),
          `stats/${name}`,
          at % GRAY,
        ),
      ),
    }));
}

function stageName(stage, stages) {
  return stage.replace(/^_/, "") || (stages > 1 ? "whole game" : "last");
}

function curriculum(maker) {
  return Object.entries(CURRICULUM)
    .map(([group, title]) => ({
      title,
      series: maker
        .with(`curriculum/${group}/`)
        .map((name, at) =>
          maker.series(name.slice(12 + group.length), name, at % GRAY, { dashed: at >= GRAY }),
        ),
      form: group === "opponents" ? "percent" : "number",
      fromZero: true,
    }))
    .filter(({ series }) => series.length);
}
