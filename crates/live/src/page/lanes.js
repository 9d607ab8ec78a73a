// What ran when: a lane for each kind of event, on the time axis of the charts.

import { BOTTOM, Chart, HEIGHT, LEFT, RIGHT, TOP } from "./charts.js";
import { clock, drawn, fill } from "./text.js";

const KINDS = [
  { name: "flushes", of: ["flush"], color: "var(--c0)" },
  { name: "compactions", of: ["compaction"], color: "var(--c1)" },
  { name: "ingests", of: ["ingest", "placed"], color: "var(--c2)" },
  { name: "slowed", color: "var(--c4)" },
  { name: "stopped", color: "var(--c6)" },
  { name: "disk is full", color: "var(--c5)" },
  { name: "slow writes", of: ["slow write"], color: "var(--c3)" },
];

export class Lanes extends Chart {
  constructor() {
    super({ id: "ran", title: "What ran", unit: "the last thousand events; pale: in which readings writers waited", shown: String, series: [] });
    this.events = [];
  }

  /** slowFrom: from when a write is an event, in words; null for never. */
  drawEvents(points, events, end, slowFrom) {
    this.events = events;
    this.points = points;
    super.draw(points, end);
    const isEmpty = !this.spans().some(({ lane }) => lane === laneOf("slow writes"));
    const why = slowFrom === null ? "Slow writes are not told: the option slow_operation_micros (at run time) is 0." : `No slow write: told from ${slowFrom} on (slow_operation_micros).`;
    this.note.textContent = isEmpty ? why : "";
  }

  /** A short wait leaves its mark, too: an interval between two readings takes its worst state. Exact times lie over it. */
  spans() {
    return [...waits(this.points), ...spans(this.events, this.end)];
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
    return this.spans().map(({ lane, from, to, said, isPale }) => {
      const x = Math.max(this.x(from), LEFT);
      const width = Math.max(this.x(to) - x, 1.5);
      const bar = drawn("rect", { x, y: TOP + height * lane + 3, width, height: height - 5, rx: 1 }, drawn("title", {}, said));
      bar.style.fill = KINDS[lane].color;
      if (isPale) bar.style.opacity = 0.4;
      return bar;
    }).filter((bar) => Number(bar.getAttribute("x")) + Number(bar.getAttribute("width")) > LEFT);
  }

  cursor() {
    super.cursor();
    const all = this.spans();
    const counts = KINDS.map(({ name }, at) => `${all.filter(({ lane }) => lane === at).length} ${name}`);
    this.svg.setAttribute("aria-label", `${this.title}: ${counts.join(", ")}`);
    fill(this.legend);
  }
}

const laneOf = (name) => KINDS.findIndex((kind) => kind.name === name);

/** What writers must wait in an interval, in milliseconds of all of them together, to be seen. */
const WAITED_MS_MIN = 10;

/** Intervals in which writers waited: as stopped if one of them was. */
function waits(points) {
  return points.filter((point) => waitedMs(point) >= WAITED_MS_MIN).map((point) => {
    const how = point.stops > 0 ? "stopped" : "slowed";
    const causes = Object.keys(point.stall_ms).join(", ");
    const said = `${clock(point.unix_ms)} ${how}: writers waited ${Math.round(waitedMs(point))} ms, ${causes}`;
    return { lane: laneOf(how), from: point.unix_ms - point.seconds * 1000, to: point.unix_ms, said, isPale: true };
  });
}

function waitedMs(point) {
  return Object.values(point.stall_ms).reduce((sum, ms) => sum + ms, 0) * point.seconds;
}

/** The lane of the condition that an event begins; -1 if it ends one. */
function begins({ kind, text }) {
  if (kind === "stall begins") return laneOf(text.includes("stopped: ") ? "stopped" : "slowed");
  return kind === "disk is full" ? laneOf("disk is full") : -1;
}

/** Events as spans of time. A condition lasts until the next event of its subject: stopped writers may be slowed down next. */
function spans(events, end) {
  const begun = new Map();
  const all = [];
  for (const event of events) {
    const said = `${clock(event.unix_ms)} ${event.kind}: ${event.text}`;
    if (["stall begins", "stall ends", "disk is full", "space again"].includes(event.kind)) {
      const subject = event.kind.startsWith("stall") ? event.text.split(",")[0] : "disk";
      const before = begun.get(subject);
      if (before) all.push({ ...before, to: event.unix_ms });
      begun.delete(subject);
      const lane = begins(event);
      if (lane >= 0) begun.set(subject, { lane, from: event.unix_ms, said });
    } else {
      const lane = KINDS.findIndex(({ of }) => of?.includes(event.kind));
      if (lane >= 0) all.push({ lane, from: event.unix_ms - event.duration_ms, to: event.unix_ms, said });
    }
  }
  return [...all, ...[...begun.values()].map((start) => ({ ...start, to: end }))];
}
