// Tabs as the guidelines have them: one stop for the tab key, arrows between them.

import { el, replace } from "/app/dom.js";

// tabs = { name: { title, make() -> element } }; a panel is made when it is first shown.
export class Tabs {
  constructor(tabs, chosen, onchange) {
    this.tabs = tabs;
    this.onchange = onchange;
    this.buttons = Object.entries(tabs).map(([name, { title }]) =>
      el(
        "button",
        {
          role: "tab",
          id: `tab-${name}`,
          "data-tab": name,
          "aria-controls": "tab-panel",
          onclick: () => this.choose(name),
        },
        title,
      ),
    );
    this.list = el("div", { role: "tablist", "aria-label": "Parts of this run" }, this.buttons);
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.panel = el("div", { role: "tabpanel", id: "tab-panel" });
    this.element = el("div", {}, this.list, this.panel);
    this.choose(chosen in tabs ? chosen : Object.keys(tabs)[0], false);
  }

  choose(name, notify = true) {
    this.chosen = name;
    for (const button of this.buttons) {
      const mine = button.dataset.tab === name;
      button.setAttribute("aria-selected", String(mine));
      button.tabIndex = mine ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", `tab-${name}`);
    this.show();
    if (notify) this.onchange(name);
  }

  show() {
    replace(this.panel, this.tabs[this.chosen].make());
  }

  key(event) {
    const names = Object.keys(this.tabs);
    const at = names.indexOf(this.chosen);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const name = names[(to + names.length) % names.length];
    this.choose(name);
    this.buttons[names.indexOf(name)].focus();
  }
}
