// Charts over the last ten minutes, on one time axis.

import { clock, drawn, element, fill } from "./text.js";

const SPAN_MS_MAX = 600_000;
const SPAN_MS_MIN = 60_000;
export const HEIGHT = 150;
export const LEFT = 74;
export const RIGHT = 8;
export const TOP = 8;
export const BOTTOM = 18;

/** Where the reader points, in milliseconds since 1970; null for nowhere. Shared by all charts. */
let pointed = null;
const charts = [];

export class Chart {
  /**
   * id: of its figure, behind `chart-`. series: [{name, color, value(point) -> number or null}], kind: "lines", "areas" (stacked) or "lanes".
   * shown(value): its text. log: a logarithmic axis; binary: marks at powers of two. missing: said where no value was
   * measured; onlyIfMeasured: nothing is shown then. none: said of areas without any. least: what the axis has at least.
   */
  constructor({ id, title, unit, kind = "lines", log = false, binary = false, shown, series, missing, none, onlyIfMeasured = false, least = 1 }) {
    Object.assign(this, { title, kind, log, binary, shown, series, missing, none, onlyIfMeasured, least });
    this.svg = drawn("svg", { role: "img", tabindex: "0", preserveAspectRatio: "none" });
    this.legend = element("div", { class: "legend" });
    this.note = element("p", { class: "empty" });
    const caption = element("figcaption", {}, element("b", {}, title), " ", element("small", {}, unit));
    this.figure = element("figure", { class: "card", id: `chart-${id}`, tabindex: "-1" }, caption, this.svg, this.legend, this.note);
    this.points = [];
    this.drawn = new Set();
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => pointAt(null));
    this.svg.addEventListener("blur", () => pointAt(null));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    charts.push(this);
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    const part = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
    pointAt(part >= 0 && part <= 1 ? this.end - this.span + part * this.span : null);
  }

  key(event) {
    if (event.key === "Escape") return pointAt(null);
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || this.points.length === 0) return;
    event.preventDefault();
    const at = pointed === null ? this.points.length - 1 : nearest(this.points, pointed) + step;
    pointAt(this.points[Math.max(0, Math.min(at, this.points.length - 1))].unix_ms);
  }

  draw(points, end) {
    this.points = points;
    this.end = end;
    // A page that is new shows what there is, not ten empty minutes.
    this.span = Math.min(Math.max(end - (points[0]?.unix_ms ?? end), SPAN_MS_MIN), SPAN_MS_MAX);
    this.width = Math.max(this.svg.clientWidth, 200);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    // The legend of areas names those that are somewhere in the picture.
    this.drawn = new Set(this.series.filter(({ value }) => points.some((point) => value(point) > 0)).map(({ name }) => name));
    const measured = points.some((point) => this.series.some(({ value }) => value(point) !== null));
    this.figure.hidden = this.onlyIfMeasured && !measured;
    const said = measured ? this.kind === "areas" && this.drawn.size === 0 && this.none : this.missing;
    this.note.textContent = points.length > 0 && said ? said : "";
    const most = Math.max(this.least, this.most(points));
    this.scale = this.log ? logarithmic(most) : linear(most, this.binary);
    fill(this.svg, ...this.grid(), ...(this.kind === "areas" ? this.areas() : this.lines()));
    this.cursor();
  }

  most(points) {
    const of = (point) => this.series.map(({ value }) => value(point) ?? 0);
    const sum = (values) => values.reduce((a, b) => a + b, 0);
    return points.reduce((most, point) => Math.max(most, this.kind === "areas" ? sum(of(point)) : Math.max(...of(point))), 0);
  }

  x(ms) {
    return LEFT + (1 - (this.end - ms) / this.span) * (this.width - LEFT - RIGHT);
  }

  y(value) {
    return TOP + (1 - this.scale.part(value)) * (HEIGHT - TOP - BOTTOM);
  }

  grid() {
    const all = [];
    for (const value of this.scale.ticks) {
      const y = this.y(value);
      all.push(drawn("line", { class: "grid", x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y }));
      all.push(drawn("text", { x: LEFT - 5, y: y + 4, "text-anchor": "end" }, this.shown(value)));
    }
    return [...all, ...this.times()];
  }

  times() {
    const all = [];
    const marks = this.width < 420 ? 3 : 6;
    const step = [10, 20, 30, 60, 120, 300].find((seconds) => this.span / 1000 / seconds <= marks) ?? 300;
    for (let seconds = 0; seconds * 1000 <= this.span; seconds += step) {
      const at = this.x(this.end - seconds * 1000);
      const anchor = seconds === 0 ? "end" : at < LEFT + 20 ? "start" : "middle";
      const text = seconds === 0 ? "now" : step < 60 ? `−${seconds} s` : `−${seconds / 60} min`;
      all.push(drawn("text", { x: at, y: HEIGHT - 4, "text-anchor": anchor }, text));
    }
    return all;
  }

  lines() {
    return this.series.map(({ value, color }) => {
      let path = "";
      let before = null;
      for (const point of this.points) {
        const found = value(point);
        if (found === null) {
          before = null;
          continue;
        }
        // A gap where no reading was taken.
        const goes_on = before !== null && point.unix_ms - before < point.seconds * 1000 * 1.5;
        path += `${goes_on ? "L" : "M"}${this.x(point.unix_ms).toFixed(1)} ${this.y(found).toFixed(1)}`;
        if (!goes_on) path += "h0.01";
        before = point.unix_ms;
      }
      const line = drawn("path", { d: path, fill: "none", "stroke-width": 1.6, "stroke-linejoin": "round", "stroke-linecap": "round" });
      line.style.stroke = color;
      return line;
    });
  }

  areas() {
    const heights = this.points.map(() => 0);
    return this.series.map(({ value, color }) => {
      let path = "";
      this.points.forEach((point, at) => {
        const found = value(point) ?? 0;
        if (found <= 0) return;
        const left = Math.max(this.x(point.unix_ms - point.seconds * 1000), LEFT);
        const width = Math.max(this.x(point.unix_ms) - left, 1);
        const low = this.y(heights[at]);
        heights[at] += found;
        const high = Math.min(this.y(heights[at]), low - 0.5);
        path += `M${left.toFixed(1)} ${low.toFixed(1)}h${width.toFixed(2)}V${high.toFixed(1)}h${(-width).toFixed(2)}z`;
      });
      const area = drawn("path", { d: path });
      area.style.fill = color;
      return area;
    });
  }

  /** The instant that is pointed at, or the newest: its figures in the legend. */
  cursor() {
    this.svg.querySelector(".cursor")?.remove();
    const at = pointed === null ? this.points.length - 1 : nearest(this.points, pointed);
    const point = this.points[at];
    if (pointed !== null && point) {
      const x = this.x(point.unix_ms);
      this.svg.append(drawn("line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM }));
    }
    const texts = this.series
      .map(({ name, color, value }) => ({ name, color, found: point ? value(point) : null }))
      .filter(({ name, found }) => found !== null && (this.kind !== "areas" || this.drawn.has(name)));
    const when = pointed !== null && point ? [element("span", {}, clock(point.unix_ms))] : [];
    fill(this.legend, ...when, ...texts.map(({ name, color, found }) => {
      const dot = element("span", { class: "dot" });
      dot.style.background = color;
      return element("span", {}, dot, `${name} `, element("b", {}, this.shown(found)));
    }));
    const said = texts.map(({ name, found }) => `${name} ${this.shown(found)}`).join(", ");
    this.svg.setAttribute("aria-label", `${this.title}: ${said || "nothing"}`);
  }
}

function pointAt(ms) {
  pointed = ms;
  charts.forEach((chart) => chart.end && chart.cursor());
}

function nearest(points, ms) {
  let low = 0;
  let high = points.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle].unix_ms < ms) low = middle + 1;
    else high = middle;
  }
  const before = points[low - 1];
  return before && ms - before.unix_ms < points[low].unix_ms - ms ? low - 1 : low;
}

function linear(most, binary) {
  const rough = most / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = binary ? 2 ** Math.ceil(Math.log2(rough)) : [1, 2, 5, 10].map((by) => by * power).find((by) => by >= rough);
  const top = Math.ceil(most / step) * step;
  const ticks = [];
  for (let value = 0; value <= top * 1.001; value += step) ticks.push(value);
  return { part: (value) => Math.min(value / top, 1), ticks };
}

/** From 1 on. */
function logarithmic(most) {
  const decades = Math.max(Math.ceil(Math.log10(most)), 2);
  const step = Math.ceil(decades / 4);
  const ticks = [];
  for (let decade = 0; decade <= decades; decade += step) ticks.push(10 ** decade);
  return { part: (value) => Math.min(Math.log10(Math.max(value, 1)) / decades, 1), ticks };
}
