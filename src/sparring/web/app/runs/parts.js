// Small pieces that several pages of runs show.

import { el } from "/app/dom.js";
import { MISSING, isNumber, percent, shown, titled } from "/app/words.js";

// How a run stands; of a damaged one the reason shows when the pointer rests there.
export function stateBadge({ state, trouble }) {
  return el("span", { class: `state state-${state}`, title: trouble || null }, el("i", {}), state);
}

// A strength as its run measures it: a share of wins, or a score.
export function strengthText({ strength, measure }) {
  if (!isNumber(strength)) return MISSING;
  return measure === "score" ? shown(strength) : percent(strength);
}

// "78.2 – 82.6", or nothing if there is no interval.
export function intervalText({ low, high, measure }) {
  if (!isNumber(low) || !isNumber(high)) return "";
  if (measure === "score") return `${shown(low)} – ${shown(high)}`;
  return `${(100 * low).toFixed(1)} – ${(100 * high).toFixed(1)}`;
}

export function progressBar(share, label) {
  if (!isNumber(share)) return null;
  const value = Math.min(1, Math.max(0, share));
  const bar = el("span", {
    class: "progress",
    role: "progressbar",
    "aria-label": label,
    "aria-valuemin": 0,
    "aria-valuemax": 100,
    "aria-valuenow": Math.round(100 * value),
  });
  const fill = el("i", {});
  fill.style.width = `${100 * value}%`;
  bar.append(fill);
  return bar;
}

export function gameTitle({ game, title }) {
  return (title ?? titled(game)).split(":")[0];
}

// Gray shapes where something will be, so that nothing jumps when it comes.
export function skeleton(lines, kind = "line") {
  return el(
    "div",
    { class: "skeleton", "aria-hidden": "true" },
    Array.from({ length: lines }, () => el("i", { class: kind })),
  );
}

// Buttons of which one is pressed.
export function choice(label, options, chosen, onchange) {
  const buttons = Object.entries(options).map(([value, text]) =>
    el(
      "button",
      {
        type: "button",
        "data-value": value,
        "aria-pressed": String(value === chosen),
        onclick: () => {
          for (const one of buttons) {
            one.setAttribute("aria-pressed", String(one.dataset.value === value));
          }
          onchange(value);
        },
      },
      text,
    ),
  );
  return el("div", { class: "choice", role: "group", "aria-label": label }, buttons);
}

// A line that shows whether the page is up to date.
export function liveSign() {
  const sign = el("span", { class: "live-sign", role: "status" });
  return {
    element: sign,
    set(on) {
      sign.classList.toggle("off", !on);
      sign.textContent = on ? "live" : "not connected, trying again";
    },
  };
}
