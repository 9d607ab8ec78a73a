// What ran when: a lane for each kind of event, on the time axis of the charts.

import { BOTTOM, Chart, HEIGHT, LEFT, RIGHT, TOP } from "./charts.js";
import { clock, drawn, fill } from "./text.js";

const KINDS = [
  { name: "flushes", of: ["flush"], color: "var(--c0)" },
  { name: "compactions", of: ["compaction"], color: "var(--c1)" },
  { name: "ingests", of: ["ingest", "placed"], color: "var(--c2)" },
  { name: "stalls", of: ["stall begins", "stall ends", "disk is full", "space again"], color: "var(--c6)" },
  { name: "slow writes", of: ["slow write"], color: "var(--c3)" },
];

export class Lanes extends Chart {
  constructor() {
    super({ title: "What ran", unit: "the last thousand events", shown: String, series: [] });
    this.events = [];
  }

  drawEvents(points, events, end) {
    this.events = events;
    super.draw(points, end);
  }

  grid() {
    const height = (HEIGHT - TOP - BOTTOM) / KINDS.length;
    const names = KINDS.map(({ name }, at) => drawn("text", { x: LEFT - 5, y: TOP + height * (at + 0.5) + 4, "text-anchor": "end" }, name));
    const lines = KINDS.map((_, at) => {
      const y = TOP + height * (at + 1);
      return drawn("line", { class: "grid", x1: LEFT, x2: this.width - RIGHT, y1: y, y2: y });
    });
    return [...names, ...lines, ...this.times()];
  }

  lines() {
    const height = (HEIGHT - TOP - BOTTOM) / KINDS.length;
    return KINDS.flatMap(({ of, color }, lane) => bars(this.events.filter(({ kind }) => of.includes(kind)), this.end).map(({ from, to, said }) => {
      const x = Math.max(this.x(from), LEFT);
      const width = Math.max(this.x(to) - x, 1.5);
      const bar = drawn("rect", { x, y: TOP + height * lane + 3, width, height: height - 6, rx: 1 }, drawn("title", {}, said));
      bar.style.fill = color;
      return bar;
    })).filter((bar) => Number(bar.getAttribute("x")) + Number(bar.getAttribute("width")) > LEFT);
  }

  cursor() {
    super.cursor();
    const counts = KINDS.map(({ name, of }) => `${this.events.filter(({ kind }) => of.includes(kind)).length} ${name}`);
    this.svg.setAttribute("aria-label", `${this.title}: ${counts.join(", ")}`);
    fill(this.legend);
  }
}

/** Events as spans of time. What begins and ends by events of its own lasts from one to the other. */
function bars(events, end) {
  const begun = new Map();
  const all = [];
  for (const event of events) {
    const subject = event.text.split(",")[0];
    const said = `${clock(event.unix_ms)} ${event.kind}: ${event.text}`;
    if (["stall begins", "disk is full"].includes(event.kind)) {
      if (!begun.has(subject)) begun.set(subject, { from: event.unix_ms, said });
    } else if (["stall ends", "space again"].includes(event.kind)) {
      const start = begun.get(subject);
      begun.delete(subject);
      if (start) all.push({ ...start, to: event.unix_ms });
    } else {
      all.push({ from: event.unix_ms - event.duration_ms, to: event.unix_ms, said });
    }
  }
  return [...all, ...[...begun.values()].map((start) => ({ ...start, to: end }))];
}
