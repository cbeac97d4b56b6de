// Animations of a table: flying cards, pauses for reading. A click or a key skips the current one;
// with reduced motion or a quick table there are none.

import { calm } from "/app/dom.js";

const QUICK = "sparring-quick-table";
const SHORT = 0.35; // share of a pause that remains without animations

export function quick() {
  try {
    return localStorage.getItem(QUICK) === "yes";
  } catch {
    return false; // a page from a file has no storage
  }
}

export function setQuick(yes) {
  try {
    localStorage.setItem(QUICK, yes ? "yes" : "no");
  } catch {
    // Without storage it holds until the page is left.
  }
}

export class Motion {
  constructor(host) {
    this.host = host;
    this.hurried = false;
    this.running = new Set();
    this.skip = () => this.hurry();
    host.addEventListener("pointerdown", this.skip);
    document.addEventListener("keydown", this.skip);
  }

  close() {
    this.host.removeEventListener("pointerdown", this.skip);
    document.removeEventListener("keydown", this.skip);
    this.hurry();
  }

  // Ends skipping: later animations run at full length.
  calmDown() {
    this.hurried = false;
  }

  hurry() {
    if (this.running.size === 0) return;
    this.hurried = true;
    for (const end of this.running) end();
    this.running.clear();
  }

  async pause(milliseconds) {
    if (this.hurried || quick()) return;
    const time = calm() ? SHORT * milliseconds : milliseconds;
    await new Promise((done) => {
      const timer = setTimeout(end, time);
      const { running } = this;
      function end() {
        clearTimeout(timer);
        running.delete(end);
        done();
      }
      running.add(end);
    });
  }

  // Plays frames of the Web Animations API; afterwards the element is in its regular place.
  async play(element, frames, milliseconds, options = {}) {
    if (this.hurried || quick() || calm() || !element?.isConnected) return;
    const played = element.animate(frames, {
      duration: milliseconds,
      easing: "cubic-bezier(.25,.7,.3,1)",
      ...options,
    });
    const end = () => played.cancel();
    this.running.add(end);
    await played.finished.catch(() => {});
    this.running.delete(end);
  }

  // Moves an element to its place from `from`, an element or its rectangle.
  async arrive(element, from, milliseconds, { turn = 0 } = {}) {
    const start = boxOf(from);
    if (!start || !element?.isConnected) return;
    const end = element.getBoundingClientRect();
    await this.play(
      element,
      [{ transform: `${shift(end, start)} rotate(${turn}deg)`, opacity: 0.4 }, { opacity: 1 }, {}],
      milliseconds,
    );
  }

  // Moves an element to another one's place and hides it there.
  async leave(element, to, milliseconds) {
    const end = boxOf(to);
    if (!end || !element?.isConnected) return;
    const start = element.getBoundingClientRect();
    const there = { transform: shift(start, end), opacity: 0 };
    await this.play(element, [{}, { opacity: 1, offset: 0.6 }, there], milliseconds, {
      easing: "ease-in",
      fill: "forwards",
    });
  }

  // Moves a picture over the table from one place to another, then removes it.
  async send(picture, from, to, milliseconds, delay = 0) {
    const [start, end] = [boxOf(from), boxOf(to)];
    if (!start || !end || this.hurried || quick() || calm()) return;
    const { style } = picture;
    Object.assign(style, { position: "fixed", zIndex: 50, pointerEvents: "none" });
    document.body.append(picture);
    const size = picture.getBoundingClientRect();
    const put = (box) =>
      `translate(${box.x + (box.width - size.width) / 2}px, ${box.y + (box.height - size.height) / 2}px)`;
    Object.assign(style, { left: 0, top: 0 });
    const frames = [{ transform: put(start) }, { transform: put(end) }];
    await this.play(picture, frames, milliseconds, { delay, fill: "both", easing: "ease-in-out" });
    picture.remove();
  }
}

function boxOf(place) {
  if (!place) return null;
  const box = place.getBoundingClientRect ? place.getBoundingClientRect() : place;
  return box.width > 0 ? box : null;
}

// Moves and shrinks what lies in `from` to `to`.
function shift(from, to) {
  const x = to.x + to.width / 2 - from.x - from.width / 2;
  const y = to.y + to.height / 2 - from.y - from.height / 2;
  const size = Math.max(0.3, Math.min(1.2, to.width / from.width));
  return `translate(${x}px, ${y}px) scale(${size})`;
}
