// Held inputs: keys, and on a touch screen a stick and buttons.

import { el } from "/app/dom.js";

// Pressed keys by `KeyboardEvent.code`, independent of the keyboard layout.
export class Keys {
  // `codes`: the keys that the game handles; the browser handles all others.
  constructor(codes) {
    this.codes = new Set(codes);
    this.down = new Set();
    this.listeners = {
      keydown: (event) => this.press(event, true),
      keyup: (event) => this.press(event, false),
      blur: () => this.down.clear(), // a key released in another window sends no event here
    };
    for (const [name, heard] of Object.entries(this.listeners)) addEventListener(name, heard);
  }

  press(event, down) {
    if (!this.codes.has(event.code) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target?.closest?.("input, select, textarea, button, a, summary, dialog")) {
      // A button that was clicked keeps the focus; letters and arrows still steer then.
      if (event.target.tagName !== "BUTTON" || ["Space", "Enter"].includes(event.code)) return;
    }
    if (down) this.down.add(event.code);
    else this.down.delete(event.code);
    event.preventDefault();
  }

  any(codes) {
    return codes.some((code) => this.down.has(code));
  }

  // -1, 0 or 1.
  axis(minus, plus) {
    return Number(this.any(plus)) - Number(this.any(minus));
  }

  close() {
    for (const [name, heard] of Object.entries(this.listeners)) removeEventListener(name, heard);
  }
}

// A stick under a thumb. `x` and `y` are within -1..1, y upwards.
export class Stick {
  constructor(label) {
    this.x = 0;
    this.y = 0;
    this.finger = null;
    this.knob = el("span", { class: "stick-knob" });
    this.element = el(
      "div",
      {
        class: "stick",
        role: "application",
        "aria-label": label,
        onpointerdown: (event) => {
          this.finger = event.pointerId;
          this.element.setPointerCapture(event.pointerId);
          this.move(event);
        },
        onpointermove: (event) => event.pointerId === this.finger && this.move(event),
        onpointerup: (event) => this.letGo(event),
        onpointercancel: (event) => this.letGo(event),
      },
      this.knob,
    );
  }

  move(event) {
    const box = this.element.getBoundingClientRect();
    const reach = 0.36 * box.width;
    const x = (event.clientX - box.left - box.width / 2) / reach;
    const y = (box.top + box.height / 2 - event.clientY) / reach;
    const far = Math.max(1, Math.hypot(x, y));
    this.lean(x / far, y / far);
    event.preventDefault();
  }

  lean(x, y) {
    this.x = x;
    this.y = y;
    this.knob.style.transform = `translate(${36 * x}%, ${-36 * y}%)`;
  }

  letGo(event) {
    if (event.pointerId !== this.finger) return;
    this.finger = null;
    this.lean(0, 0);
  }
}

// A button that acts while it is held.
export class Held {
  constructor(label, sign, name = "") {
    this.down = false;
    const hold = (down) => (event) => {
      this.down = down;
      this.element.classList.toggle("held", down);
      if (down) this.element.setPointerCapture(event.pointerId);
      event.preventDefault();
    };
    this.element = el(
      "button",
      {
        class: `hold ${name}`,
        type: "button",
        tabindex: -1, // a keyboard has keys for it
        "aria-label": label,
        onpointerdown: hold(true),
        onpointerup: hold(false),
        onpointercancel: hold(false),
        oncontextmenu: (event) => event.preventDefault(),
      },
      sign,
    );
  }
}
