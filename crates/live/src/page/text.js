// Figures as people read them, and elements without markup: whatever comes from a database is text.

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (value >= 1023.95 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1)} ${units[unit]}`;
}

export function count(value) {
  if (value < 9999.5) return value.toFixed(value < 9.95 && value % 1 ? 1 : 0);
  if (value < 999950) return `${(value / 1e3).toFixed(1)} k`;
  return `${(value / 1e6).toFixed(2)} M`;
}

export function micros(value) {
  if (value < 1000) return `${Math.round(value)} µs`;
  if (value < 1e6) return `${(value / 1e3).toFixed(1)} ms`;
  return `${(value / 1e6).toFixed(1)} s`;
}

export function age(seconds) {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
  return `${Math.floor(seconds / 86400)} days`;
}

export const percent = (part) => `${(part * 100).toFixed(part > 0.0995 || part === 0 ? 0 : 1)} %`;

export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });

/** An element with attributes and children; strings become text. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export const by = (id) => document.getElementById(id);

export function fill(parent, ...children) {
  parent.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

/** As `fill`, of links that a reader may be on: the focus stays. Nothing is done while nothing has changed. */
export function refill(parent, ...children) {
  const next = element("div", {}, ...children);
  if (next.innerHTML === parent.innerHTML) return;
  const at = [...parent.querySelectorAll("a")].indexOf(document.activeElement);
  fill(parent, ...next.childNodes);
  if (at >= 0) parent.querySelectorAll("a")[at]?.focus({ preventScroll: true });
}

export const rowOf = ({ family, name }) => `option-${name}-${encodeURIComponent(family ?? "")}`;

/** A text whose names of options lead to their rows, where the table has one: of this family, else the first. */
export function withOptions(text, family, options) {
  return text.split(/(\w+)/).map((word) => {
    const rows = options.filter(({ name }) => name === word);
    const row = rows.find((row) => row.family === family) ?? rows[0];
    return row?.is_named ? element("a", { href: `#${rowOf(row)}` }, word) : word;
  });
}

export function list(pairs) {
  const made = element("dl");
  for (const [name, value] of pairs) made.append(element("dt", {}, name), element("dd", {}, value));
  return made;
}

export const empty = (text) => element("p", { class: "empty" }, text);

/** A bar that fills up: `limit` is where it is full. May it be full? */
export function gauge(name, value, limit, shown = bytes, mayBeFull = false) {
  const part = limit > 0 ? Math.min(value / limit, 1) : 0;
  const state = mayBeFull ? "gauge" : part >= 0.95 ? "gauge full" : part >= 0.8 ? "gauge near" : "gauge";
  const text = limit > 0 ? `${shown(value)} of ${shown(limit)}` : shown(value);
  const row = element("div", { class: "row" }, element("span", {}, name), element("span", {}, text));
  const bar = element("progress", { max: "1", value: String(part), "aria-label": `${name}: ${text}` });
  return element("div", { class: state }, row, limit > 0 ? bar : null);
}

/** Parts of a whole, as one bar and its legend. */
export function parts(all, shown) {
  const whole = all.reduce((sum, part) => sum + part.value, 0);
  const bar = drawn("svg", { class: "bar", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  const legend = element("div", { class: "legend" });
  let from = 0;
  for (const { name, value, color } of all) {
    const width = whole > 0 ? (value / whole) * 1000 : 0;
    const rect = drawn("rect", { x: from, y: 0, width, height: 10 });
    rect.style.fill = color;
    bar.append(rect);
    from += width;
    const dot = element("span", { class: "dot" });
    dot.style.background = color;
    legend.append(element("span", {}, dot, `${name} `, element("b", {}, shown(value))));
  }
  return [bar, legend];
}
