// Lines and bands as the `d` of an SVG path, with no more points than pixels can show.

// Joins points; where a value is missing the line breaks. Many points per pixel become the
// lowest and the highest of each pixel, so that spikes stay visible.
export function linePath(x, y, toX, toY, [first, last]) {
  const width = Math.abs(toX(x[last - 1]) - toX(x[first])) || 1;
  const rows = last - first > 3 * width ? extremes(x, y, toX, first, last) : range(first, last);
  let path = "";
  let pen = "M";
  for (const row of rows) {
    if (y[row] === null || !Number.isFinite(y[row]) || !Number.isFinite(x[row])) {
      pen = "M";
      continue;
    }
    path += `${pen}${round(toX(x[row]))} ${round(toY(y[row]))}`;
    pen = "L";
  }
  return path;
}

// The points themselves: strokes without length and round ends are dots.
export function dotPath(x, y, toX, toY, [first, last]) {
  let path = "";
  for (let row = first; row < last; row += 1) {
    if (y[row] === null || !Number.isFinite(y[row])) continue;
    path += `M${round(toX(x[row]))} ${round(toY(y[row]))}h0`;
  }
  return path;
}

// The area between two lines.
export function bandPath(x, low, high, toX, toY, [first, last]) {
  const width = Math.abs(toX(x[last - 1]) - toX(x[first])) || 1;
  const step = Math.max(1, Math.floor((last - first) / width));
  let path = "";
  let rows = [];
  const close = () => {
    if (rows.length > 1) {
      const up = rows.map((row) => `${round(toX(x[row]))} ${round(toY(high[row]))}`);
      const down = rows.map((row) => `${round(toX(x[row]))} ${round(toY(low[row]))}`);
      path += `M${up.join("L")}L${down.reverse().join("L")}Z`;
    }
    rows = [];
  };
  for (let row = first; row < last; row += 1) {
    const there = isThere(low[row]) && isThere(high[row]);
    if (!there) close();
    else if ((row - first) % step === 0 || row === last - 1) rows.push(row);
  }
  close();
  return path;
}

function isThere(value) {
  return value !== null && Number.isFinite(value);
}

function round(pixel) {
  return Math.round(pixel * 10) / 10;
}

function range(first, last) {
  return Array.from({ length: last - first }, (_, at) => first + at);
}

function extremes(x, y, toX, first, last) {
  const rows = [];
  let row = first;
  while (row < last) {
    const column = Math.floor(toX(x[row]));
    let low = row;
    let high = row;
    const start = row;
    while (row < last && Math.floor(toX(x[row])) === column) {
      if (y[row] < y[low] || y[low] === null) low = row;
      if (y[row] > y[high] || y[high] === null) high = row;
      row += 1;
    }
    rows.push(...[...new Set([start, low, high, row - 1])].sort((a, b) => a - b));
  }
  return rows;
}
