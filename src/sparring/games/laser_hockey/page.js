// Laser hockey in a browser: the rink from above, seat 0 at the left. Lengths are meters from the
// center of the rink, y upwards, as in the game.

import { calm, el } from "/app/dom.js";
import { Held, Keys, Stick } from "/app/play/inputs.js";
import { box, disc, onTheme, polygon, ring, stroke } from "/app/play/pen.js";
import { RealtimeSession } from "/app/play/realtime.js";

const STEP_S = 0.02;
const TIME_LIMIT = [250, 80, 80]; // steps, by mode
const CENTER = [5, 4]; // of the rink where the game counts from
const CENTER_OF_MASS = 0.1223755; // behind a racket's origin
const KEPT = 15; // steps for which a caught puck can be kept
const INNER = [235 / 60, 200 / 60]; // half of the ice
const OUTER = [255 / 60, 220 / 60];
const GOAL = [245 / 60, 265 / 60]; // from where to where a goal is deep
const MOUTH = 82 / 60;
const POST = 75 / 60;
const PUCK = 13 / 60;
const VIEW = [9.6, 7.6]; // what the canvas shows
const BEHIND = VIEW[0] / 2 - PUCK - 0.05; // how far from the center a fast puck is drawn in a goal
const RACKET = [0.1, -0.4, 0.1, 0.4, -0.2, 0.4, -0.36, 0.2, -0.42, 0, -0.36, -0.2, -0.2, -0.4];
const TRAIL = [15, 12, 9, 7, 5, 3]; // steps that the lines of the puck's trail go back

// Two people have a half of the keyboard each; one person may use both.
const KEYS = [
  {
    left: ["KeyA"],
    right: ["KeyD"],
    up: ["KeyW"],
    down: ["KeyS"],
    counter: ["KeyQ"],
    clockwise: ["KeyE"],
    shoot: ["Space", "KeyF"],
  },
  {
    left: ["ArrowLeft"],
    right: ["ArrowRight"],
    up: ["ArrowUp"],
    down: ["ArrowDown"],
    counter: ["Comma"],
    clockwise: ["Period"],
    shoot: ["Enter", "ShiftRight"],
  },
];
const ALL_KEYS = Object.fromEntries(
  Object.keys(KEYS[0]).map((what) => [what, [...KEYS[0][what], ...KEYS[1][what]]]),
);

const RULES = [
  "Two rackets, one puck, five seconds a point: a puck in the other goal scores, and five points win. Each racket stays in its half.",
  "A puck that comes to your racket is caught. It leaves where the racket points: when you shoot, or by itself after 0.28 s.",
  "Move with W A S D or the arrows, turn with Q and E or comma and full stop, shoot with space or enter. P or Escape pauses. On a phone there are a stick and three buttons.",
  "Two people at one keyboard: the left one has W A S D, Q, E and space, the right one the arrows, comma, full stop and enter.",
];

export const page = rinkPage([], () => (wish) => [wish.x, wish.y, wish.torque, wish.shoot]);

// The page of a game on this rink. `makeActionOf(session)` returns what makes an action of the game
// of what a person wants: (wish, seat) => action, where a wish has forces `x` and `y` and a `torque`
// within -1..1 in the player's frame, and `shoot`, 0 or 1.
export function rinkPage(moreRules, makeActionOf) {
  return {
    rules: [...RULES, ...moreRules],
    realtime: 1 / STEP_S,
    session: RealtimeSession,
    result: resultOf,
    make: (host, session) => makeRink(host, session, makeActionOf(session)),
  };
}

function makeRink(host, session, actionOf) {
  const people = session.players.flatMap((player, seat) => (player.kind === "person" ? seat : []));
  const board = scoreBoard(session);
  const ice = new Ice();
  const touch = people.length === 1 ? touchControls() : null;
  const rink = el("div", { class: "rink" }, ice.canvas);
  host.append(el("div", { class: "laser-hockey" }, board.element, rink, touch?.element));
  const keys = people.length > 0 ? new Keys(Object.values(ALL_KEYS).flat()) : null;
  const hands = new Map(
    people.map((seat) => [seat, new Hand(keys, people.length > 1 ? KEYS[seat] : ALL_KEYS, touch)]),
  );
  let last = null;
  const draw = (before, after, share) => {
    last = [before, after, share];
    ice.draw(before, after, share);
    board.clock(after);
  };
  const watch = new ResizeObserver(() => ice.fit() && last && draw(...last));
  watch.observe(rink);
  const forgetTheme = onTheme(() => ice.recolor() && last && draw(...last));
  return {
    rate: 1 / STEP_S,
    over: rink,
    read: readMatch,
    frame: draw,
    wins: board.wins,
    show(state) {
      const now = readMatch(state);
      draw(now, now, 1);
    },
    control: (seat, state) => actionOf(hands.get(seat).wish(seat, state), seat),
    close() {
      keys?.close();
      watch.disconnect();
      forgetTheme();
    },
  };
}

// What is drawn of a position.
function readMatch(state) {
  const { body, turn, keep, time, mode, winner } = state.fields();
  const racket = (seat) => {
    const back = seat === 0 ? CENTER_OF_MASS : -CENTER_OF_MASS;
    return {
      x: body[6 * seat] + back * turn[2 * seat + 1] - CENTER[0],
      y: body[6 * seat + 1] + back * turn[2 * seat] - CENTER[1],
      angle: body[6 * seat + 2],
      spin: body[6 * seat + 5],
    };
  };
  return {
    rackets: [racket(0), racket(1)],
    puck: { x: within(body[12] - CENTER[0], BEHIND), y: body[13] - CENTER[1] },
    keep: Array.from(keep),
    time: time[0],
    limit: TIME_LIMIT[mode[0]],
    winner: winner[0],
  };
}

// What a person wants, from keys and fingers. Forces grow while a key is held, so that a tap is a
// small step; turning holds an angle, since the bare torque would spin a racket within a blink.
class Hand {
  constructor(keys, names, touch) {
    Object.assign(this, { keys, names, touch, x: 0, y: 0, aim: 0 });
  }

  wish(seat, state) {
    const { keys, names, touch } = this;
    const side = seat === 0 ? 1 : -1; // seat 1 sees everything turned by half a circle
    const stick = touch?.stick ?? { x: 0, y: 0 };
    this.x = eased(this.x, keys.axis(names.left, names.right));
    this.y = eased(this.y, keys.axis(names.down, names.up));
    const turning =
      keys.axis(names.clockwise, names.counter) +
      Number(touch?.counter.down ?? 0) -
      Number(touch?.clockwise.down ?? 0);
    this.aim = turning === 0 ? 0.9 * this.aim : within(this.aim + 0.07 * turning, 0.95);
    const { angle, spin } = readMatch(state).rackets[seat];
    return {
      x: short(side * within(this.x + stick.x, 1)),
      y: short(side * within(this.y + stick.y, 1)),
      torque: short(within(3 * (this.aim - angle) - 0.35 * spin, 1)),
      shoot: Number(keys.any(names.shoot) || Boolean(touch?.shoot.down)),
    };
  }
}

function eased(now, wanted) {
  if (wanted === 0) return 0;
  return within((now * wanted > 0 ? now : 0.25 * wanted) + 0.12 * wanted, 1);
}

function within(value, most) {
  return Math.max(-most, Math.min(most, value));
}

// Exact as a 32-bit float and short in a file.
function short(value) {
  return Math.round(value * 128) / 128 + 0; // never -0, which a file would not keep
}

function touchControls() {
  const stick = new Stick("move");
  const counter = new Held("turn counter-clockwise", "↺");
  const clockwise = new Held("turn clockwise", "↻");
  const shoot = new Held("shoot", "Shoot", "shoot");
  const buttons = el(
    "div",
    { class: "touch-buttons" },
    counter.element,
    clockwise.element,
    shoot.element,
  );
  const element = el("div", { class: "touch" }, stick.element, buttons);
  return { stick, counter, clockwise, shoot, element };
}

function resultOf(state, session) {
  const { time, winner } = readMatch(state);
  const after = `${(time * STEP_S).toFixed(2)} s`;
  if (!winner) return `No goal in ${after}.`;
  const name = session.players[winner > 0 ? 0 : 1].name;
  const score = session.wins ? ` It stands ${session.wins.join(":")}.` : "";
  return `${name === "you" ? "You score" : `${name} scores`} after ${after}.${score}`;
}

function scoreBoard(session) {
  const names = session.players.map((player, seat) =>
    el("span", { class: `name seat-${seat}` }, player.name),
  );
  const score = el("strong", { class: "score", "aria-label": "score" }, "0 : 0");
  const bar = el("span", { class: "time-left" });
  const seconds = el("span", { class: "seconds" });
  const element = el(
    "div",
    { class: "score-board" },
    names[0],
    el("div", { class: "middle" }, score, el("div", { class: "time" }, bar), seconds),
    names[1],
  );
  let shown = -1;
  return {
    element,
    wins(wins) {
      score.textContent = wins.join(" : ");
    },
    clock({ time, limit }) {
      if (time === shown) return;
      shown = time;
      const left = Math.max(0, limit - time);
      bar.style.transform = `scaleX(${left / limit})`;
      seconds.textContent = `${(left * STEP_S).toFixed(1)} s`;
    },
  };
}

// The canvas. What never moves is painted once per size and theme.
class Ice {
  constructor() {
    this.canvas = el("canvas", { role: "img", "aria-label": "the rink from above" });
    this.still = document.createElement("canvas");
    this.pucks = []; // of the last steps, newest last: {time, x, y}
    this.width = 0;
  }

  // True if the size is another one.
  fit() {
    const width = Math.round(this.canvas.clientWidth * devicePixelRatio);
    if (width === 0 || width === this.width) return false;
    this.width = width;
    for (const canvas of [this.canvas, this.still]) {
      canvas.width = width;
      canvas.height = Math.round((width * VIEW[1]) / VIEW[0]);
    }
    return this.recolor();
  }

  recolor() {
    if (this.width === 0) return false;
    const color = (name) => {
      this.canvas.style.color = `var(--${name})`; // as a color it is light or dark, not both
      return getComputedStyle(this.canvas).color;
    };
    const names = ["ice", "ice-line", "wall", "net", "puck", "puck-ring", "trail"];
    this.colors = Object.fromEntries(names.map((name) => [name, color(name)]));
    this.seats = ["seat-0", "seat-1"].map((name) => ({
      fill: color(name),
      edge: color(`${name}-edge`),
    }));
    paintRink(this.meters(this.still), this.colors, this.seats);
    return true;
  }

  // A pen whose unit is the meter, y upwards.
  meters(canvas) {
    const pen = canvas.getContext("2d");
    const scale = canvas.width / VIEW[0];
    pen.setTransform(scale, 0, 0, -scale, canvas.width / 2, canvas.height / 2);
    pen.lineJoin = "round";
    pen.lineCap = "round";
    return pen;
  }

  draw(before, after, share) {
    if (this.width === 0 && !this.fit()) return;
    this.remember(after);
    const pen = this.canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height); // the margin is no part of the rink
    pen.drawImage(this.still, 0, 0);
    this.meters(this.canvas);
    const puck = between(before.puck, after.puck, share);
    if (after.winner) paintLight(pen, after.winner, this.seats);
    this.paintTrail(pen, puck);
    for (const seat of [0, 1]) {
      const racket = between(before.rackets[seat], after.rackets[seat], share);
      paintRacket(pen, racket, seat, this.seats[seat]);
      if (after.keep[seat]) paintAim(pen, racket, puck, seat, this.seats[seat]);
    }
    this.paintPuck(pen, puck, after.keep);
  }

  remember({ time, puck }) {
    const last = this.pucks.at(-1);
    if (last?.time === time) return;
    if (last && time !== last.time + 1 && !(time > last.time && time < last.time + 5))
      this.pucks = [];
    this.pucks.push({ time, ...puck });
    if (this.pucks.length > TRAIL[0]) this.pucks.shift();
  }

  // Lines of different lengths over each other add up to one that fades.
  paintTrail(pen, puck) {
    if (calm()) return;
    const points = [...this.pucks.slice(0, -1), puck].flatMap(({ x, y }) => [x, y]);
    pen.strokeStyle = this.colors.trail;
    pen.globalAlpha = 0.09;
    TRAIL.forEach((steps, at) => {
      pen.lineWidth = 2 * PUCK * (0.2 + (0.7 * at) / TRAIL.length);
      stroke(pen, points.slice(-2 * steps));
    });
    pen.globalAlpha = 1;
  }

  paintPuck(pen, puck, keep) {
    disc(pen, puck.x, puck.y, PUCK, this.colors.puck);
    pen.strokeStyle = this.colors["puck-ring"];
    pen.lineWidth = 0.035;
    ring(pen, puck.x, puck.y, 0.58 * PUCK);
    keep.forEach((left, seat) => {
      if (!left) return;
      pen.strokeStyle = this.seats[seat].edge;
      pen.lineWidth = 0.07;
      const radius = PUCK + 0.1 + (seat === 1 && keep[0] ? 0.1 : 0);
      ring(pen, puck.x, puck.y, radius, (2 * Math.PI * left) / KEPT);
    });
  }
}

function between(from, to, share) {
  const mixed = (name) => from[name] + (to[name] - from[name]) * share;
  return Object.fromEntries(Object.keys(to).map((name) => [name, mixed(name)]));
}

function paintRink(pen, colors, seats) {
  pen.clearRect(-VIEW[0], -VIEW[1], 2 * VIEW[0], 2 * VIEW[1]);
  box(pen, OUTER[0], OUTER[1], colors.wall, 0.3);
  box(pen, INNER[0], INNER[1], colors.ice, 0.06);
  for (const side of [-1, 1]) paintGoal(pen, side, colors, seats[side < 0 ? 0 : 1]);
  pen.strokeStyle = colors["ice-line"];
  pen.lineWidth = 0.05;
  stroke(pen, [0, -INNER[1], 0, INNER[1]]);
  ring(pen, 0, 0, 100 / 60);
  disc(pen, 0, 0, 0.1, colors["ice-line"]);
}

function paintGoal(pen, side, colors, seat) {
  const x = side * INNER[0];
  const half = [x - side * 0.1, MOUTH, x, MOUTH, side * OUTER[0], POST];
  const mirrored = [side * OUTER[0], -POST, x, -MOUTH, x - side * 0.1, -MOUTH];
  polygon(pen, [...half, ...mirrored], colors.ice);
  pen.save();
  pen.beginPath();
  pen.rect(-INNER[0] - 0.35, -MOUTH, 2 * INNER[0] + 0.7, 2 * MOUTH);
  pen.clip();
  pen.globalAlpha = 0.16;
  disc(pen, side * (250 / 60), 0, POST, seat.fill);
  pen.globalAlpha = 0.8;
  pen.strokeStyle = seat.fill;
  pen.lineWidth = 0.045;
  ring(pen, side * (250 / 60), 0, POST);
  pen.restore();
  const near = side * GOAL[0];
  const far = side * GOAL[1];
  polygon(pen, [near, -POST, far, -POST, far, POST, near, POST], colors.net);
  pen.strokeStyle = colors["ice-line"];
  pen.lineWidth = 0.02;
  for (let line = 1; line < 10; ++line) {
    const y = -POST + (line * POST) / 5;
    stroke(pen, [near, y, far, y]);
  }
  pen.strokeStyle = seat.fill;
  pen.lineWidth = 0.07;
  stroke(pen, [near, -POST, near, POST]);
}

// A goal: ice and net in the color of the scoring player.
function paintLight(pen, winner, seats) {
  const { fill } = seats[winner > 0 ? 0 : 1];
  pen.globalAlpha = 0.16;
  box(pen, INNER[0], INNER[1], fill, 0.06);
  pen.globalAlpha = 0.85;
  const [near, far] = GOAL.map((x) => winner * x);
  polygon(pen, [near, -POST, far, -POST, far, POST, near, POST], fill);
  pen.globalAlpha = 1;
}

function paintRacket(pen, { x, y, angle }, seat, { fill, edge }) {
  const side = seat === 0 ? 1 : -1;
  pen.save();
  pen.translate(x, y);
  pen.rotate(angle);
  pen.scale(side, 1);
  polygon(pen, RACKET, fill);
  pen.strokeStyle = edge;
  pen.lineWidth = 0.045;
  pen.stroke();
  polygon(pen, [0.1, -0.4, 0.1, 0.4, 0, 0.4, 0, -0.4], edge);
  pen.restore();
}

// Where a kept puck would be shot.
function paintAim(pen, { angle }, puck, seat, { fill }) {
  const side = seat === 0 ? 1 : -1;
  const [x, y] = [side * Math.cos(angle), side * Math.sin(angle)];
  pen.strokeStyle = fill;
  pen.lineWidth = 0.05;
  pen.setLineDash([0.14, 0.12]);
  stroke(pen, [puck.x + 0.35 * x, puck.y + 0.35 * y, puck.x + 2.2 * x, puck.y + 2.2 * y]);
  pen.setLineDash([]);
}
