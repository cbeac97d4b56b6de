// Elements without a framework: `el("button", { class: "quiet", onclick: go }, "Go")`.

const SVG = "http://www.w3.org/2000/svg";

// Makes an element. Properties are attributes; those that begin with "on" are listeners. Text is
// always set as text, so that names from outside can never become markup.
export function el(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

// The same for drawings.
export function svg(name, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...present(children));
  return element;
}

// Children may come in lists of lists; those that are missing leave no gap.
function present(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined);
}

// Replaces all children of an element.
export function replace(element, ...children) {
  element.replaceChildren(...present(children));
  return element;
}

export function setAll(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
}

export function wait(milliseconds) {
  return new Promise((done) => setTimeout(done, milliseconds));
}

// Whether the system is set to reduced motion.
export function calm() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

// Shows a message at the edge of the page for a few seconds.
export function toast(text) {
  const message = el("p", { class: "toast" }, text);
  document.getElementById("toasts")?.append(message);
  setTimeout(() => message.remove(), 6000);
}
