// The levels of a family as a picture: tables by the ranges of their keys, and sizes against targets.

import { bytes, drawn, empty, fill } from "./text.js";

const LABEL = 118;
const SIZE = 150;
const LEVEL_HEIGHT = 22;
const LINE_HEIGHT = 5;
/** Tables of level 0 overlap: each has a line of its own, up to so many. */
const LINES_MAX = 24;

export function drawLevels(parent, family) {
  const levels = family ? shownLevels(family) : [];
  if (levels.length === 0) return fill(parent, empty("There are no tables yet."));
  const width = Math.max(parent.clientWidth, 260);
  const narrow = width < 560;
  const sizeWidth = narrow ? 0 : SIZE;
  const from = LABEL;
  const to = width - sizeWidth - 4;
  const svg = drawn("svg", { role: "img", "aria-label": described(family, levels) });
  let top = 0;
  for (const level of levels) {
    const lines = level.level === 0 ? Math.min(level.spans.length, LINES_MAX) : 1;
    const height = Math.max(LEVEL_HEIGHT, lines * LINE_HEIGHT + 4);
    svg.append(drawn("text", { x: 0, y: top + 15 }, `L${level.level}`));
    svg.append(drawn("text", { x: 26, y: top + 15, class: "dim" }, `${level.tables} · ${bytes(level.bytes)}`));
    svg.append(drawn("rect", { class: "track", x: from, y: top + 2, width: to - from, height: height - 4, rx: 3 }));
    level.spans.forEach((span, at) => svg.append(drawSpan(level, span, at, { from, to, top, height })));
    if (sizeWidth > 0) svg.append(...drawSize(level, width - sizeWidth + 14, top + height / 2 - 5, sizeWidth - 14));
    top += height + 4;
  }
  svg.setAttribute("viewBox", `0 0 ${width} ${top}`);
  svg.setAttribute("height", top);
  fill(parent, svg);
}

function shownLevels(family) {
  const last = family.levels.reduce((last, level) => (level.tables > 0 ? level.level : last), -1);
  return family.levels.filter((level) => level.level <= last);
}

function drawSpan(level, span, at, { from, to, top, height }) {
  const x = from + span.from * (to - from);
  const width = Math.max((span.to - span.from) * (to - from) - 1, 1.5);
  const isLine = level.level === 0;
  const y = isLine ? top + 3 + Math.min(at, LINES_MAX - 1) * LINE_HEIGHT : top + 3;
  const tall = isLine ? LINE_HEIGHT - 1.5 : height - 6;
  const rect = drawn("rect", { class: span.is_busy ? "busy-span" : "table-span", x, y, width, height: tall, rx: 1 });
  const tables = span.tables === 1 ? `table ${span.number}` : `${span.tables} tables from ${span.number} on`;
  rect.append(drawn("title", {}, `${tables}, ${bytes(span.bytes)}\n${span.smallest}\n${span.largest}`));
  return rect;
}

function drawSize(level, x, y, width) {
  const due = level.score ?? 0;
  const text = level.target_bytes === null
    ? level.score === null ? "" : `score ${due.toFixed(2)}`
    : `${Math.round((level.bytes / level.target_bytes) * 100)} % of ${bytes(level.target_bytes)}`;
  const part = level.target_bytes === null ? Math.min(due, 1) : Math.min(level.bytes / level.target_bytes, 1);
  if (text === "") return [];
  return [
    drawn("rect", { class: "track", x, y: y + 10, width, height: 5, rx: 2 }),
    drawn("rect", { class: due >= 1 ? "over-bar" : "target-bar", x, y: y + 10, width: width * part, height: 5, rx: 2 }),
    drawn("text", { class: "dim", x, y: y + 5 }, text),
  ];
}

function described(family, levels) {
  const each = levels.map((level) => `level ${level.level}: ${level.tables} tables, ${bytes(level.bytes)}`);
  return `Levels of ${family.name}. ${each.join("; ")}`;
}
