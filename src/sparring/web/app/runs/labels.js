// What people write about a run: a note and tags, shown and changed.

import { order } from "/app/data.js";
import { el, replace } from "/app/dom.js";

// Tags as links to the runs that have them.
export function tagLinks(tags) {
  return tags.map((tag) =>
    el("a", { class: "tag", href: `#/runs?tag=${encodeURIComponent(tag)}` }, tag),
  );
}

// Fills a place with the labels of a run and a button that changes them.
export function showLabels(place, { name, note, tags }, onchange) {
  const edit = () => editLabels(name, note, tags, onchange);
  const verb = note || tags.length ? "Edit" : "Add a note or tags";
  replace(
    place,
    note ? el("p", { class: "note" }, note) : null,
    tags.length ? el("span", { class: "tags" }, tagLinks(tags)) : null,
    el("button", { class: "quiet small", "data-edit": "labels", onclick: edit }, verb),
  );
}

// "good, wide net" -> ["good", "wide", "net"]
export function readTags(text) {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))];
}

function editLabels(name, note, tags, onchange) {
  const text = el("textarea", { rows: 4, maxlength: 2000, "aria-label": "Note" }, note);
  const words = el("input", {
    value: tags.join(", "),
    placeholder: "baseline, wide-net",
    "aria-label": "Tags, with commas between them",
  });
  const wrong = el("p", { class: "wrong", role: "alert", hidden: true });
  const cancel = el("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const save = el("button", { class: "primary" }, "Save");
  const form = el(
    "form",
    { class: "labels-form" },
    [el("label", {}, "Note", text), el("label", {}, "Tags", words), wrong],
    el("div", { class: "actions" }, cancel, save),
  );
  const dialog = el(
    "dialog",
    { "aria-labelledby": "labels-title" },
    el("h2", { id: "labels-title" }, `About ${name}`),
    form,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    save.disabled = true;
    try {
      const changed = { note: text.value, tags: readTags(words.value) };
      onchange(await order(`/api/runs/${encodeURIComponent(name)}/labels`, changed));
      dialog.close();
    } catch (error) {
      wrong.textContent = error.message;
      wrong.hidden = false;
      save.disabled = false;
    }
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  text.focus();
}
