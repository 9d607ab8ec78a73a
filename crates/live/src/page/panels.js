// Everything that is not a chart.

import { age, by, bytes, clock, count, element, empty, fill, gauge, list, micros, parts, percent, refill, rowOf, withOptions } from "./text.js";

const MARKS = { good: "✓ Well", attention: "! Look", bad: "✕ Bad" };

export function drawVerdict(verdict, options) {
  const box = by("verdict");
  box.className = `verdict ${verdict.level}`;
  const lines = verdict.sentences.map(({ level, text, remedy, family, place }) =>
    element("p", {}, element("span", { class: `mark ${level}` }, MARKS[level]), text, seen(place),
      remedy ? element("span", { class: "remedy" }, " ", ...withOptions(remedy, family, options)) : null));
  refill(box, ...lines);
  markPlaces(verdict.sentences);
  // Told aloud if something is new: figures change each second.
  const said = `${MARKS[verdict.level].slice(2)}: ${verdict.sentences.length} to know`;
  if (by("said").textContent !== said) by("said").textContent = said;
}

/** A link to what shows a trouble. */
function seen(place) {
  const shown = place ? by(place) : null;
  if (!shown || shown.hidden) return null;
  return element("span", {}, " ", element("a", { class: "seen", href: `#${place}` }, `See: ${shown.querySelector("figcaption b, h3").textContent}`), ".");
}

/** Headings of what shows a trouble have its mark, as long as it is told. */
function markPlaces(sentences) {
  const told = new Map([...sentences].reverse().map(({ level, place }) => [place, level]));
  document.querySelectorAll("figure.card, .card[id]").forEach((card) => {
    const level = told.get(card.id);
    if (level) card.dataset.told = level;
    else delete card.dataset.told;
  });
}

function tile(name, figure, more = "") {
  return element("li", {}, element("span", { class: "name" }, name), element("span", { class: "figure" }, figure), element("span", { class: "more" }, more));
}

export function drawTiles(point, observed) {
  const waits = Object.entries(point.stall_ms).sort((a, b) => b[1] - a[1]);
  const waited = waits.reduce((sum, [, ms]) => sum + ms, 0);
  const waiting = (observed.writes?.stalls ?? []).reduce((sum, stall) => sum + stall.waiting, 0);
  const how = waits.length === 0 ? "" : `${waits[0][0]}, ${point.stops > 0 ? `${count(Math.ceil(point.stops))} stops/s` : "slowed"}; `;
  const { debt } = observed.health;
  fill(by("tiles"),
    tile("Writes a second", count(point.writes), `${bytes(point.write_bytes)}/s`),
    tile("Writes, p99", point.write_p99_us === null ? "–" : micros(point.write_p99_us), point.write_p999_us === null ? "" : `p99.9: ${micros(point.write_p999_us)}`),
    tile("Writers waited", `${waited.toFixed(0)} ms/s`, `${how}${waiting === 0 ? "none waits" : waiting === 1 ? "1 waits" : `${waiting} wait`} now`),
    tile("Reads a second", point.reads === null ? "–" : count(point.reads), point.get_p99_us === null ? "" : `p99: ${micros(point.get_p99_us)}`),
    tile("Compaction debt", bytes(point.pending_bytes), debt === 0 ? "to rewrite; slows no writer" : `to rewrite; ${percent(debt)} of the way from slowed to stopped writers`),
    tile("Tables", bytes(point.table_bytes), `${count(observed.families.reduce((sum, family) => sum + family.tables, 0))} tables, ${count(observed.families.length)} families`),
    tile("Memory", bytes(observed.memory.memtables_bytes + observed.memory.block_cache_bytes + observed.memory.table_readers_bytes + observed.memory.row_cache_bytes), "memtables, caches, tables"),
    tile("Running jobs", String(observed.jobs.length), point.running.map((number, kind) => (number > 0 ? `${number} ${["flush", "compaction", "ingest"][kind]}` : "")).filter(Boolean).join(", ")),
  );
}

export function drawMemory(observed) {
  const { memory, families, logs, cache } = observed;
  const most = [...families].sort((a, b) => b.memtables.total_bytes - a.memtables.total_bytes).slice(0, 4);
  fill(by("memtables"), ...most.flatMap((family) => [
    gauge(`${family.name}: takes writes`, family.memtables.mutable_bytes, family.memtables.capacity_bytes, bytes, true),
    gauge(`${family.name}: full, waiting`, family.memtables.sealed, Math.max(family.memtables.number_max - 1, 1), String),
  ]), list([["Representation", families[0]?.memtables.kind ?? "–"], ["Families not shown", String(Math.max(families.length - most.length, 0))]]));
  fill(by("log"),
    gauge("All logs in use", logs.live_bytes, logs.limit_bytes),
    gauge("The current log", logs.current_bytes, logs.current_capacity_bytes),
    list([["Logs in use", String(logs.live)], ["Prefaulted ahead", bytes(logs.window_bytes)], ["Spare log", logs.has_spare ? "ready" : "none"],
      ...(logs.value_logs > 0 ? [["Value logs", `${logs.value_logs}, ${bytes(logs.live_value_bytes)} of ${bytes(logs.value_log_bytes)} needed`]] : [])]));
  const owners = [
    { name: "memtables", value: memory.memtables_bytes - memory.kept_memtables_bytes, color: "var(--c0)" },
    { name: "memtables kept for readers", value: memory.kept_memtables_bytes, color: "var(--c6)" },
    { name: "block cache", value: memory.block_cache_bytes, color: "var(--c2)" },
    { name: "row cache", value: memory.row_cache_bytes, color: "var(--c4)" },
    { name: `${memory.open_tables} open tables`, value: memory.table_readers_bytes, color: "var(--c3)" },
  ].filter(({ value }) => value > 0);
  fill(by("memory"), ...parts(owners, bytes),
    memory.budget_bytes === null ? list([["Limit on memtables", "none"]]) : gauge("Memtables against their limit", memory.charged_bytes ?? 0, memory.budget_bytes));
  const all = cache.hits + cache.misses;
  fill(by("cache"), gauge("Filled (a full cache is well)", cache.usage_bytes, cache.capacity_bytes, bytes, true), list([
    ["Found, since the open", all === 0 ? "–" : percent(cache.hits / all)],
    ["Missed", count(cache.misses)],
    ["Missed, but there not long ago", count(cache.returns)],
    ...(cache.kinds ?? []).filter(({ hits, misses }) => hits + misses > 0).map(({ kind, hits, misses }) => [`${kind} blocks found`, percent(hits / (hits + misses))]),
  ]));
}

export function drawReads(points, observed) {
  // Points are ten seconds apart while nobody looks.
  const after = (points.at(-1)?.unix_ms ?? 0) - 60_000;
  const recent = points.filter((point) => point.unix_ms > after && point.answers !== null);
  const seconds = recent.reduce((all, point) => all + point.seconds, 0);
  const mean = (name) => recent.reduce((all, point) => all + point.answers[name] * point.seconds, 0) / Math.max(seconds, 1);
  const kinds = [["memtables", "memtables"], ["kept", "kept answers"], ["level0", "level 0"], ["level1", "level 1"], ["deeper", "deeper levels"], ["nowhere", "not there"]];
  const all = kinds.map(([key, name], at) => ({ name, value: mean(key), color: `var(--c${at})` }));
  const box = by("answers");
  if (recent.length === 0 && observed.reads === null) return fill(box, empty("No lookups in the last minute."));
  const shown = all.some(({ value }) => value > 0) ? parts(all.filter(({ value }) => value > 0), (value) => `${count(value)}/s`) : [empty("No lookups in the last minute.")];
  if (observed.reads === null) return fill(box, ...shown, list([["Filters", "counted with the option statistics"]]));
  const { filters } = observed.reads;
  const asked = filters.useful + filters.passed;
  fill(box, ...shown, list([
    ["Tables spared by filters", asked === 0 ? "–" : percent(filters.useful / asked)],
    ["Let through in vain", count(Math.max(filters.passed - filters.passed_rightly, 0))],
    ["Hidden entries that iterators passed", count(observed.reads.skipped)],
  ]));
}

const KINDS = { flush: "Flush", compaction: "Compaction", ingest: "Ingest" };

export function drawJobs(observed) {
  const jobs = observed.jobs.map((job) => {
    const levels = job.kind === "compaction" ? ` L${job.level ?? "?"} → L${job.output_level ?? "?"}` : "";
    const name = `${KINDS[job.kind]}${levels} of ${job.family}, ${job.reason}, ${age(job.running_us / 1e6)}`;
    return gauge(name, job.done_bytes, job.total_bytes);
  });
  const { flushes, compactions, ingests } = observed.ended;
  fill(by("jobs"), ...(jobs.length > 0 ? jobs : [empty("Nothing runs.")]),
    list([["Ended since the open", `${count(flushes)} flushes, ${count(compactions)} compactions, ${count(ingests)} ingests`]]));
}

export function drawKept(observed) {
  const { snapshots, kept, ingests } = observed;
  const oldest = snapshots.oldest;
  fill(by("kept"),
    list([["Snapshots", String(snapshots.count)], ...(oldest ? [["The oldest", `${age(oldest.age_s)}, ${count(oldest.changes_since)} changes ago`]] : [])]),
    ...(kept.length === 0 ? [empty("No iterator holds anything back.")] : [list(kept.slice(0, 6).map((one) => [
      `${one.readers} iterator${one.readers === 1 ? "" : "s"} of ${one.family}, ${age(one.age_us / 1e6)}`,
      `${bytes(one.memtable_bytes)} memory, ${bytes(one.table_bytes)} disk`]))]));
  fill(by("ingests"), list([
    ["Waiting in queues", `${ingests.queued}, of ${ingests.queued_tables} tables`],
    ...(ingests.queued > 0 ? [["The oldest of them", age(ingests.oldest_queued_s)]] : []),
    ["Tables with a level", `${count(ingests.placed_tables)}, ${bytes(ingests.placed_bytes)}`],
    ["Writers that waited for one", count(ingests.writer_waits)],
    ["The longest such wait", micros(ingests.longest_writer_wait_us)],
    ["The commit lock was held", micros(ingests.lock_held_us)],
  ]));
}

export function drawEvents(events) {
  const rows = events.slice(-200).reverse().map(({ unix_ms, kind, text }) =>
    element("li", {}, element("time", {}, clock(unix_ms)), element("span", {}, kind), element("span", { class: "what" }, text)));
  fill(by("events"), ...(rows.length > 0 ? rows : [empty("Nothing happened yet.")]));
}

export function drawAdvice(advice, options) {
  const levels = { urgent: "bad", warning: "attention", note: "good" };
  const rows = advice.map(({ severity, family, seen, advice, option, from, to, is_mutable }) => element("li", {},
    element("span", { class: `mark ${levels[severity]}` }, severity), family === null ? "" : `Family ${family}: `, `${seen.replace(/\.$/, "")}. `,
    element("span", { class: "remedy" }, ...withOptions(advice, family, options),
      ...(option === null ? [] : [" ", ...withOptions(option, family, options), `: ${from ? `${from} → ` : ""}${to} (${is_mutable ? "at run time" : "at the next open"})`]))));
  refill(by("advice"), ...(rows.length > 0 ? rows : [empty("Nothing to turn, as far as rules of thumb see.")]));
}

function row(kind, cells, attributes = {}) {
  return element("tr", attributes, ...cells.map((cell) =>
    typeof cell === "object" && !(cell instanceof Node) ? element(kind, { class: cell.as }, cell.text) : element(kind, {}, cell)));
}
const number = (text) => ({ as: "number", text });

const GATES = { free: "go freely", delayed: "slowed", stopped: "STOPPED", refused: "refused" };

export function drawFamilies(families, rates) {
  const hot = [...families].sort((a, b) => (rates.get(b.id) ?? 0) - (rates.get(a.id) ?? 0) || b.table_bytes - a.table_bytes).slice(0, 50);
  fill(by("families"),
    row("th", ["Family", number("Flushed/s"), number("Memtables"), number("Tables"), number("Bytes"), number("Level 0"), number("From slowed to stopped"), number("Written again"), "Writers"]),
    ...hot.map((family) => {
      const compacted = family.levels.reduce((sum, level) => sum + level.compactions.written_bytes, 0);
      const fresh = family.flushes.written_bytes + family.ingested_bytes;
      return row("td", [{ as: "name", text: family.name }, number(`${bytes(rates.get(family.id) ?? 0)}/s`), number(bytes(family.memtables.total_bytes)), number(count(family.tables)),
        number(bytes(family.table_bytes)), number(String(family.levels[0]?.tables ?? 0)), number(percent(family.debt)),
        number(fresh === 0 ? "–" : `${((family.flushes.written_bytes + compacted) / fresh).toFixed(1)} times`), [GATES[family.gate] ?? family.gate, family.gate_cause].filter(Boolean).join(": ")]);
    }));
}

export function drawOptions(options, allowChanges, pick) {
  by("changes").textContent = allowChanges ? "" : "read-only: started without --allow-changes";
  const change = (option) => {
    const button = element("button", { type: "button", "aria-label": `Change ${option.name} of ${option.family ?? "the database"}` }, "change");
    button.addEventListener("click", () => pick(option));
    return button;
  };
  const draw = (id, shown, mayChange) => fill(by(id), row("th", ["Option", "Value", "Default", "Family", ...(mayChange ? [""] : [])]),
    ...shown.map((option) => row("td", [{ as: "option", text: nameOf(option) },
      { as: "value", text: option.text }, { as: "default", text: option.default }, { as: "name", text: option.family ?? "(database)" }, ...(mayChange ? [option.deletes_data ? "deletes data: by the program" : change(option)] : [])],
      { id: rowOf(option), tabindex: "-1", ...(option.is_named ? { class: "named" } : {}) })),
    ...(shown.length === 0 ? [row("td", ["None."])] : []));
  draw("options-online", options.filter((option) => option.is_mutable), allowChanges);
  draw("options-at-open", options.filter((option) => !option.is_mutable), false);
}

function nameOf({ name, member_of, is_changed, is_named, advised }) {
  const told = advised ? `advised: ${advised}` : is_named ? "named above" : null;
  return element("span", {}, name, is_changed ? element("b", { class: "new" }, " changed") : null, told === null ? null : element("small", { class: "told" }, ` ${told}`),
    member_of === null ? null : element("small", {}, ` in ${member_of}`));
}
