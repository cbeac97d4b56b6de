// Stop and resume a run: a dialog to confirm, and a message if it fails.

import { order } from "/app/data.js";
import { el, toast } from "/app/dom.js";

const ORDERS = {
  stop: {
    verb: "Stop",
    text: "It saves a checkpoint first, from which it can be resumed.",
    done: "is asked to stop",
  },
  resume: {
    verb: "Resume",
    text: "It continues from its newest checkpoint until its budget is used.",
    done: "goes on",
  },
};

// The button that fits a state, or nothing.
export function orderButton({ name, state }) {
  const what = { running: "stop", stopped: "resume", failed: "resume", unmeasured: "resume" }[
    state
  ];
  if (!what) return null;
  const { verb } = ORDERS[what];
  return el("button", { "data-order": what, onclick: () => confirmOrder(name, what) }, verb);
}

function confirmOrder(name, what) {
  const { verb, text, done } = ORDERS[what];
  const wrong = el("p", { class: "wrong", role: "alert", hidden: true });
  const go = el("button", { class: "primary" }, verb);
  const cancel = el("button", { onclick: () => dialog.close() }, "Cancel");
  const dialog = el(
    "dialog",
    { "aria-labelledby": "order-title" },
    el("h2", { id: "order-title" }, `${verb} ${name}?`),
    [el("p", {}, text), wrong],
    el("div", { class: "actions" }, cancel, go),
  );
  go.addEventListener("click", async () => {
    go.disabled = true;
    try {
      await order(`/api/runs/${encodeURIComponent(name)}/${what}`);
      dialog.close();
      toast(`${name} ${done}.`);
    } catch (error) {
      wrong.textContent = error.message;
      wrong.hidden = false;
      go.disabled = false;
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  cancel.focus();
}
