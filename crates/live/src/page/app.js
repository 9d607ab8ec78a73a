// Follows the stream of readings, and draws the page once for each.

import { Chart } from "./charts.js";
import { Lanes } from "./lanes.js";
import { drawLevels } from "./levels.js";
import { drawAdvice, drawEvents, drawFamilies, drawJobs, drawKept, drawMemory, drawOptions, drawReads, drawTiles, drawVerdict } from "./panels.js";
import { age, by, bytes, count, element, fill, micros } from "./text.js";

const CAUSES = ["memtable-limit", "memory-limit", "l0-file-count", "pending-compaction-bytes", "memtable-switch", "log-switch", "pipeline-full", "ingest-latch"];
const NO_SAMPLE = "Nothing was timed: without the option statistics one operation in 64 is.";

const charts = [
  new Chart({ id: "writes", title: "Write latency", unit: "half, 99 and 99.9 in 100 take no longer; the longest", log: true, shown: micros, missing: NO_SAMPLE, least: 100, series: [
    { name: "p50", color: "var(--c2)", value: (point) => point.write_p50_us },
    { name: "p99", color: "var(--c0)", value: (point) => point.write_p99_us },
    { name: "p99.9", color: "var(--c1)", value: (point) => point.write_p999_us },
    { name: "longest", color: "var(--c6)", value: (point) => point.write_max_us },
  ] }),
  new Chart({ id: "waits", title: "Waits of writers by cause", unit: "milliseconds a second, of all writers together", kind: "areas", none: "No writer waited.", shown: (ms) => `${count(ms)} ms`, least: 10,
    series: CAUSES.map((cause, at) => ({ name: cause, color: `var(--c${at})`, value: (point) => point.stall_ms[cause] ?? 0 })) }),
  new Chart({ id: "reads", title: "Read latency", unit: "half, 99 and 99.9 in 100 take no longer", log: true, shown: micros, missing: NO_SAMPLE, least: 100, series: [
    { name: "p50", color: "var(--c2)", value: (point) => point.get_p50_us },
    { name: "p99", color: "var(--c0)", value: (point) => point.get_p99_us },
    { name: "p99.9", color: "var(--c1)", value: (point) => point.get_p999_us },
  ] }),
  new Chart({ id: "tables", title: "Written to tables", unit: "bytes a second", kind: "areas", binary: true, shown: bytes, least: 1 << 20, series: [
    { name: "flushes", color: "var(--c0)", value: (point) => point.flushed_bytes },
    { name: "compactions", color: "var(--c1)", value: (point) => point.compacted_bytes },
    { name: "ingests", color: "var(--c2)", value: (point) => point.ingested_bytes },
  ] }),
  new Chart({ id: "operations", title: "Operations", unit: "a second", shown: count, least: 10, series: [
    { name: "writes", color: "var(--c0)", value: (point) => point.writes },
    { name: "reads", color: "var(--c2)", value: (point) => point.reads },
    { name: "syncs", color: "var(--c1)", value: (point) => point.syncs },
  ] }),
  new Chart({ id: "level0", title: "Level 0 and full memtables", unit: "tables; memtables that wait", shown: count, least: 4, series: [
    { name: "tables in level 0", color: "var(--c1)", value: (point) => point.level0_tables },
    { name: "full memtables", color: "var(--c0)", value: (point) => point.sealed_memtables },
  ] }),
  new Chart({ id: "debt", title: "Compaction debt", unit: "bytes to rewrite until each level is within its target", kind: "areas", none: "Nothing is to be rewritten.", binary: true, shown: bytes, least: 1 << 20, series: [
    { name: "to rewrite", color: "var(--c1)", value: (point) => point.pending_bytes },
  ] }),
  new Chart({ id: "cache", title: "Found in the block cache", unit: "of lookups", shown: (part) => `${Math.round(part * 100)} %`, least: 1, missing: "No lookups.", series: [
    { name: "found", color: "var(--c2)", value: (point) => point.cache_hit_rate },
  ] }),
  new Chart({ id: "kept", title: "Kept for old readers, and not freed yet", unit: "bytes that iterators keep; of deleted files whose space is released step by step", kind: "areas", none: "Nothing is kept.", binary: true, shown: bytes, least: 1 << 20, series: [
    { name: "memory", color: "var(--c0)", value: (point) => point.kept_memtable_bytes },
    { name: "disk", color: "var(--c1)", value: (point) => point.kept_table_bytes },
    { name: "deleted, space not released yet", color: "var(--c6)", value: (point) => point.release_bytes },
  ] }),
  new Chart({ id: "limiter", title: "Use of the rate limiter", unit: "its bytes; jobs that wait for it: 100 % is one job, waiting all the time", shown: (part) => `${Math.round(part * 100)} %`, least: 1, onlyIfMeasured: true, series: [
    { name: "bytes used", color: "var(--c7)", value: (point) => point.limit_used },
    { name: "jobs held back", color: "var(--c6)", value: (point) => (point.limit_used === null ? null : point.rest_ms / 1000) },
  ] }),
];

const lanes = new Lanes();
const state = { points: [], frame: null, before: null, allowChanges: false, family: null, events: [] };

function start() {
  by("charts").append(...charts.slice(0, 2).map((chart) => chart.figure), lanes.figure, ...charts.slice(2).map((chart) => chart.figure));
  const stream = new EventSource("stream");
  stream.addEventListener("history", (event) => {
    const head = JSON.parse(event.data);
    Object.assign(state, { points: head.points, allowChanges: head.allow_changes });
  });
  stream.addEventListener("frame", (event) => {
    take(JSON.parse(event.data));
  });
  stream.onopen = () => link("live", "live");
  stream.onerror = () => link("lost", stream.readyState === EventSource.CLOSED ? "refused: reload the page" : "lost, trying again");
  by("family").addEventListener("change", (event) => {
    state.family = event.target.value;
    draw();
  });
  by("change").addEventListener("submit", (event) => {
    event.preventDefault();
    change();
  });
  document.addEventListener("visibilitychange", draw);
  window.addEventListener("resize", draw);
  followSections();
}

function link(how, text) {
  by("link").className = how;
  by("link").textContent = text;
}

function take(frame) {
  if (frame.gone) return link("lost", `the database is gone: ${frame.gone}`);
  link("live", "live");
  state.before = state.frame;
  state.frame = frame;
  if (frame.events) state.events = frame.events;
  if (frame.point) {
    if (state.points.length > 0 && frame.point.unix_ms <= state.points.at(-1).unix_ms) state.points = [];
    state.points.push(frame.point);
    while (frame.point.unix_ms - state.points[0].unix_ms > 600_000) state.points.shift();
  }
  requestAnimationFrame(draw);
}

function draw() {
  if (document.hidden || state.frame === null) return;
  const { observation, verdict, advice } = state.frame;
  const { process } = observation;
  document.title = `${{ good: "✓", attention: "!", bad: "✕" }[verdict.level]} Spillway: ${process.directory}`;
  by("directory").textContent = process.directory;
  by("facts").textContent = `process ${process.pid}, open for ${age(process.uptime_us / 1e6)}, Spillway ${process.version}`;
  const options = state.frame.options ?? [];
  const point = state.points.at(-1);
  if (point) drawTiles(point, observation);
  const now = process.unix_time_us / 1000;
  charts.forEach((chart) => chart.draw(state.points, now));
  lanes.drawEvents(state.points, state.events, now, slowFrom(options));
  drawVerdict(verdict, options);
  drawEvents(state.events);
  chooseFamily(observation.families);
  drawLevels(by("levels"), observation.families.find((family) => family.name === state.family));
  drawMemory(observation);
  drawReads(state.points, observation);
  drawJobs(observation);
  drawKept(observation);
  drawAdvice(advice ?? [], options);
  drawFamilies(observation.families, flushRates(observation));
  // A list under the reader's hands is left as it is.
  if (!document.activeElement?.closest("#options-online, #options-at-open")) drawOptions(options, state.allowChanges, pick);
  by("change").hidden = !state.allowChanges;
}

/** From when a write is an event, in words; null for never. */
function slowFrom(options) {
  const option = options.find(({ name }) => name === "slow_operation_micros");
  return option && option.value !== "0" ? option.text : null;
}

/** Bytes that each family flushed in the last second. */
function flushRates(observation) {
  const earlier = new Map((state.before?.observation.families ?? []).map((family) => [family.id, family.flushes.written_bytes]));
  const seconds = state.points.at(-1)?.seconds ?? 1;
  return new Map(observation.families.map(({ id, flushes }) => [id, Math.max(flushes.written_bytes - (earlier.get(id) ?? flushes.written_bytes), 0) / seconds]));
}

function chooseFamily(families) {
  const names = families.filter((family) => family.levels.some((level) => level.spans.length > 0)).map((family) => family.name);
  if (!names.includes(state.family)) state.family = names[0] ?? families[0]?.name ?? null;
  offer(by("family"), names, state.family);
  offer(by("change-family"), ["(database)", ...families.map((family) => family.name)], by("change-family").value || "(database)");
}

function offer(select, names, chosen) {
  if (select === document.activeElement) return;
  if (select.options.length !== names.length || names.some((name, at) => select.options[at].value !== name)) {
    fill(select, ...names.map((name) => element("option", { value: name }, name)));
  }
  select.value = chosen;
}

function pick({ family, name, member_of, value }) {
  by("change-family").value = family ?? "(database)";
  by("change-name").value = member_of ?? name;
  by("change-value").value = member_of === null ? value : `{${name}=${value}}`;
  by("change-value").focus();
}

async function change() {
  const family = by("change-family").value;
  const body = JSON.stringify({ family: family === "(database)" ? null : family, name: by("change-name").value, value: by("change-value").value });
  const said = by("change-result");
  try {
    const answer = await fetch("options", { method: "POST", headers: { "x-spillway-change": "1" }, body });
    said.className = answer.ok ? "good" : "bad";
    said.textContent = answer.ok ? "Changed." : await answer.text();
  } catch (error) {
    said.className = "bad";
    said.textContent = `Not sent: ${error.message}`;
  }
}

function mark(link, isHere) {
  link.classList.toggle("here", isHere);
  if (isHere) link.setAttribute("aria-current", "true");
  else link.removeAttribute("aria-current");
}

/** Marks the question in the heading whose part of the page is in view. */
function followSections() {
  const links = [...document.querySelectorAll("nav a")];
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) links.forEach((link) => mark(link, link.hash === `#${target.id}`));
    }
  }, { rootMargin: "-10% 0px -80% 0px" });
  document.querySelectorAll("main section").forEach((section) => seen.observe(section));
}

start();
