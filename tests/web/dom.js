// As much of a browser's document as the pages' modules need to build and change elements.

class FakeNode {
  constructor(tag) {
    this.tagName = tag.toUpperCase();
    this.attributes = {};
    this.listeners = {};
    this.children = [];
    this.style = { setProperty() {} };
    this.parent = null;
    const names = () => (this.attributes.class ?? "").split(" ").filter(Boolean);
    this.classList = {
      contains: (name) => names().includes(name),
      toggle: (name, on) => {
        const rest = names().filter((one) => one !== name);
        this.attributes.class = (on ? [...rest, name] : rest).join(" ");
      },
    };
    this.dataset = new Proxy(this, {
      get: (node, name) => node.attributes[`data-${name}`],
      set: (node, name, value) => Boolean((node.attributes[`data-${name}`] = String(value))),
    });
  }
  get isConnected() {
    return true;
  }
  get firstChild() {
    return this.children[0] ?? null;
  }
  get textContent() {
    return this.children.map((one) => (typeof one === "string" ? one : one.textContent)).join("");
  }
  set textContent(text) {
    this.replaceChildren(...(text ? [text] : []));
  }
  append(...nodes) {
    for (const node of nodes) {
      const text = !(node instanceof FakeNode);
      if (!text) node.remove();
      this.children.push(text ? String(node) : node);
      if (!text) node.parent = this;
    }
  }
  replaceChildren(...nodes) {
    this.children = [];
    this.append(...nodes);
  }
  remove() {
    const at = this.parent?.children.indexOf(this) ?? -1;
    if (at >= 0) this.parent.children.splice(at, 1);
    this.parent = null;
  }
  setAttribute(name, value) {
    this.attributes[name] = String(value);
  }
  getAttribute(name) {
    return this.attributes[name] ?? null;
  }
  removeAttribute(name) {
    delete this.attributes[name];
  }
  addEventListener(name, heard) {
    (this.listeners[name] ??= []).push(heard);
  }
  click() {
    return Promise.all((this.listeners.click ?? []).map((heard) => heard({ target: this })));
  }
  focus() {}
  // All elements below of one tag or one class: "td", ".tag".
  all(what) {
    const fits = (one) =>
      what.startsWith(".")
        ? one.classList.contains(what.slice(1))
        : one.tagName === what.toUpperCase();
    const inner = this.children.filter((one) => typeof one !== "string");
    return inner.flatMap((one) => [...(fits(one) ? [one] : []), ...one.all(what)]);
  }
}
for (const name of ["hidden", "disabled", "checked"]) {
  Object.defineProperty(FakeNode.prototype, name, {
    get() {
      return name in this.attributes;
    },
    set(on) {
      if (on) this.attributes[name] = "";
      else delete this.attributes[name];
    },
  });
}
Object.defineProperty(FakeNode.prototype, "value", {
  get() {
    return this.attributes.value ?? "";
  },
  set(text) {
    this.attributes.value = String(text);
  },
});

const byId = {};
globalThis.document = new FakeNode("document");
Object.assign(document, {
  body: new FakeNode("body"),
  documentElement: new FakeNode("html"),
  createElement: (tag) => new FakeNode(tag),
  createElementNS: (_, tag) => new FakeNode(tag),
  getElementById: (id) => (byId[id] ??= new FakeNode("div")),
  querySelector: () => new FakeNode("a"),
  querySelectorAll: () => [],
});
const heardByWindow = {};
globalThis.addEventListener = (name, heard) => (heardByWindow[name] ??= []).push(heard);
globalThis.fire = (name) => (heardByWindow[name] ?? []).forEach((heard) => heard({}));
globalThis.location = { hash: "" };
