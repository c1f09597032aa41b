// SPDX-License-Identifier: Apache-2.0
// The page's tables of sites beside the sites of a report with the same question.

import { check, cli, frameTitle } from "./viewer.mjs";
import { bytes, count, duration } from "./words.mjs";

// The question in an address as the words of a report.
const options = {
  metric: "--metric",
  from: "--from",
  to: "--to",
  where: "--where",
  hide: "--hide",
  under: "--only-under",
  thread: "--thread",
  phase: "--phase",
  process: "--process",
  module: "--module",
  min_size: "--min-size",
  max_size: "--max-size",
};

export function asReport(words) {
  return Object.entries({ metric: "peak", ...words }).flatMap(([word, value]) =>
    options[word] ? [options[word], value] : [],
  );
}

const metrics = { peak: "peak_bytes", live: "live_bytes", allocated: "allocated_bytes" };
export const amountOf = (metric) => (row) => row[metrics[metric] ?? metric];
export const textOf = (metric) => (metrics[metric] ? bytes : ["lifetime", "cpu"].includes(metric) ? duration : count);

// Headings of the page that are figures of a report. What is live says when.
const columns = [
  [/^at peak( until [\d.]+ \w+| of the range)?$/, "peak_bytes", bytes],
  [/^at (the end|[\d.]+ \w+)$/, "live_bytes", bytes],
  [/^blocks at (the end|[\d.]+ \w+)$/, "live_blocks", count],
  [/^allocated$/, "allocated_bytes", bytes],
  [/^allocations$/, "allocations", count],
  [/^reallocs$/, "reallocations", count],
  [/^temporary$/, "temporary", count],
  [/^stacks$/, "stacks", count],
  [/^CPU$/, "cpu", duration],
  [/^samples$/, "samples", count],
];
const columnOf = (head) => columns.find(([title]) => title.test(head));

function asWords(row, heads, name) {
  return [
    ...heads.map((head) => {
      const [, key, text] = columnOf(head);
      return text(row[key]);
    }),
    name,
  ].join(" | ");
}

// Every row of a table is a row of the report, with each of its figures, and none is missing.
export function sameRows(what, found, wanted, by = "site") {
  const heads = Object.keys(found[0] ?? {}).filter(columnOf);
  const fewest = heads.includes("CPU") ? 3 : by === "peak" ? 4 : 6;
  check(`${what}: figures beside each site`, heads.length >= fewest);
  const key = by === "peak" ? "site" : by;
  const on = found.map((row) => [...heads.map((head) => row[head]), row[key]].join(" | "));
  const told = wanted.map((row) => asWords(row, heads, key === "site" ? frameTitle(row) : row[key]));
  check(`${what}: rows`, on.toSorted(), told.toSorted());
}

const mostRows = 2_000; // Beyond, the lightest are one row.

// The table of sites that is open, and the sentence above it, with the report of the same words.
export async function sameSites(what, viewer, trace, words, by = "site") {
  const metric = words.metric ?? "peak";
  const told = cli("report", trace, ...asReport(words), "--by", by)[`${by}s`];
  const caption = await viewer.text(".view .caption");
  const sum = told.reduce((all, row) => all + amountOf(metric)(row), 0);
  const lighter = Math.max(0, told.length - mostRows);
  const many = `${count(told.length - lighter)} ${told.length === 1 ? by : `${by}s`}${lighter ? `; ${count(lighter)} lighter ones are together in the last row` : ""}`;
  const wanted = `${textOf(metric)(sum)} in ${many}; ${by}s with none of it are not listed`;
  if (told.length === 0) {
    const filtered = Object.keys(words).some((word) => options[word] && word !== "metric");
    const made = cli("report", trace, ...asReport({ ...words, metric: "allocations" }), "--by", "site").sites;
    const allocations = made.reduce((all, row) => all + row.allocations, 0);
    const said = await viewer.text(".view .sentence");
    if (!filtered) return check(what, said.startsWith("Nothing of this metric was recorded.") || said);
    if (allocations === 0) return check(what, said, "Nothing matches these filters.");
    const matches = ` ${count(allocations)} ${allocations === 1 ? "allocation matches" : "allocations match"}: look at `;
    return check(what, (said.startsWith("None of it ") && said.includes(matches)) || said);
  }
  const left = /; [^;]* left by processes that had ended by then, and are gone from the curve$/;
  check(what, caption?.replace(/^[^:]*: /, "").replace(left, ""), wanted);
  const label = await viewer.page.locator(".view [role=grid]").getAttribute("aria-label");
  if (lighter === 0) {
    sameRows(what, await viewer.rows(label), told, by);
    return caption;
  }
  // The heaviest of many; of those that weigh the same, any.
  const rows = await viewer.rows(label, 300),
    amount = amountOf(metric);
  const weights = told.map(amount).sort((a, b) => b - a);
  check(`${what}: the heaviest`, rows.map((row) => Object.values(row)[0]), weights.slice(0, 300).map(textOf(metric)));
  const last = textOf(metric)(weights[299]);
  const clear = (row) => textOf(metric)(amount(row)) !== last;
  sameRows(what, rows.filter((row) => Object.values(row)[0] !== last), told.filter((row) => amount(row) >= weights[299] && clear(row)), by);
  return caption;
}

// Those that changed, the largest change first.
export async function sameChanges(what, viewer, sites, metric = "live") {
  const text = textOf(metric),
    signed = (n) => (n > 0 ? "+" : "") + text(n);
  const changed = sites.filter((s) => s.change !== 0);
  if (changed.length === 0) return check(what, await viewer.text(".view .sentence"), "No site has changed.");
  const rows = await viewer.rows("Changes by site");
  check(
    what,
    rows.map((r) => [r.change, r.status, r.before, r.after, r.site].join(" | ")).sort(),
    changed.map((s) => [signed(s.change), s.status, text(s.was), text(s.is), frameTitle(s)].join(" | ")).sort(),
  );
  const sizes = changed.map((s) => Math.abs(s.change)).sort((a, b) => b - a);
  check(
    `${what}: the largest first`,
    rows.map((r) => r.change.replace(/^[+-]/, "")),
    sizes.map(text),
  );
}
