// Drawing on a canvas: shapes whose points are one flat list of x and y, and the theme of the page.

function trace(pen, points) {
  pen.beginPath();
  for (let at = 0; at < points.length; at += 2) pen.lineTo(points[at], points[at + 1]);
}

export function polygon(pen, points, fill) {
  trace(pen, points);
  pen.closePath();
  pen.fillStyle = fill;
  pen.fill();
}

export function stroke(pen, points) {
  trace(pen, points);
  pen.stroke();
}

export function box(pen, x, y, fill, corner) {
  pen.beginPath();
  pen.roundRect(-x, -y, 2 * x, 2 * y, corner);
  pen.fillStyle = fill;
  pen.fill();
}

export function disc(pen, x, y, radius, fill) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fillStyle = fill;
  pen.fill();
}

export function ring(pen, x, y, radius, angle = 2 * Math.PI) {
  pen.beginPath();
  pen.arc(x, y, radius, Math.PI / 2, Math.PI / 2 + angle);
  pen.stroke();
}

// Light or dark, by the system or by the button of the page. Returns what ends it.
export function onTheme(changed) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = new MutationObserver(changed);
  system.addEventListener("change", changed);
  button.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => {
    system.removeEventListener("change", changed);
    button.disconnect();
  };
}
