// SPDX-License-Identifier: Apache-2.0
// Rows put together by the code to blame: by site, function, file or module; how such groups went through
// the slices of time; and the stacks of one site.

import { type Frame, type Names, type Sites, type Sparks, type Stacks, kOthers } from "./contract";
import { type FileQuestion, blockAmounts, notHere } from "./file_question";
import { type FileRows, wholeName } from "./file_rows";
import { type CallTree, hiddenSymbol, nodeValues } from "./file_tree";
import { matchesAny } from "./pattern";

const nobody = 0xffffffff; // Those that do not fit into a table.
export const folded = 0xfffffffe; // Stacks that the file does not tell apart.
const asFunction = 0x80000000; // A function in place of a site whose own is hidden; its symbol on top.
const mostRows = 2_000,
  mostStacks = 50,
  mostSparks = 64;

// What a question is about.
export interface Asked {
  rows: FileRows;
  question: FileQuestion;
  tree: CallTree;
  meant: Uint8Array;
  groups: (by: string) => Groups; // See groupsOf(); made once.
}

export interface Groups {
  of: Int32Array; // By row; -1: not meant.
  id: number[];
  frames: Frame[];
}

export function frameOf(rows: FileRows, names: Names, place: number, fullNames: boolean): Frame {
  if (names === rows.symbols && place === hiddenSymbol(rows)) return { name: "[hidden]" };
  const name = names.name[place] ?? "?",
    full = names.full?.[place] ?? "";
  return {
    name: fullNames && full ? full : name,
    full: fullNames ? "" : full,
    file: names.file?.[place] ?? "",
    line: names.line?.[place] ?? 0,
    module: names.module?.[place] ?? "",
  };
}

export function groupsOf(asked: Omit<Asked, "groups">, by: string): Groups {
  const { rows, question, tree, meant } = asked;
  const groups: Groups = { of: new Int32Array(rows.count).fill(-1), id: [], frames: [] };
  const places = new Map<number | string, number>();
  const place = (key: number | string, id: number | null, frame: () => Frame): number => {
    let at = places.get(key);
    if (at === undefined) {
      at = groups.frames.push(frame()) - 1;
      groups.id.push(id ?? at);
      places.set(key, at);
    }
    return at;
  };
  const hidden = rows.sites.name.map((_, i) => matchesAny(question.hide, wholeName(rows.sites, i)));
  for (let row = 0; row < rows.count; ++row) {
    const node = tree.nodeOfRow[row]!;
    if (!meant[row] || node < 0) continue;
    const site = rows.site[row]!;
    const together = tree.kind[node] === kOthers;
    if (together && (by === "function" || site < 0)) {
      groups.of[row] = place("folded", folded, () => ({ name: "(light stacks, folded in this file)" }));
      continue;
    }
    const symbol = tree.symbol[node]!;
    const siteShown = site >= 0 && !hidden[site];
    if (by === "function") {
      const id = rows.symbols.id![symbol] ?? symbol;
      groups.of[row] = place(symbol, id, () => frameOf(rows, rows.symbols, symbol, question.fullNames));
    } else if (by === "site") {
      groups.of[row] = siteShown
        ? place(site, rows.sites.id![site]!, () => frameOf(rows, rows.sites, site, question.fullNames))
        : place(`f${symbol}`, asFunction + symbol, () => frameOf(rows, rows.symbols, symbol, question.fullNames));
    } else {
      const [names, at] = siteShown ? [rows.sites, site] : [rows.symbols, symbol];
      const name = (by === "file" ? names.file?.[at] : names.module?.[at]) || `(unknown ${by})`;
      groups.of[row] = place(`n${name}`, null, () => ({ name }));
    }
  }
  return groups;
}

export function sitesOf(asked: Asked, by: string, most: number | null): Sites {
  if (!["site", "function", "file", "module"].includes(by)) throw notHere(`What there is by ${by}`);
  const { rows, question, tree, meant } = asked;
  const known = asked.groups(by);
  const groups = { of: known.of, id: [...known.id], frames: [...known.frames] };
  const count = groups.id.length;
  const columns = new Map<string, Float64Array>(),
    totals: Record<string, number> = {};
  const column = (name: string, byRow: Float64Array) => {
    const sum = new Float64Array(count);
    for (let row = 0; row < byRow.length; ++row) if (groups.of[row]! >= 0) sum[groups.of[row]!]! += byRow[row]!;
    columns.set(name, sum);
    return sum;
  };
  const byRow = rows.value(question.parts, question.range);
  const value = column("value", byRow);
  // CPU time is not that of blocks.
  for (const name of question.metric === "cpu" ? [] : blockAmounts) {
    const amount = rows.amount(name, question.range);
    if (!amount) continue;
    const key = ["allocated", "live", "peak"].includes(name) ? `${name}_bytes` : name;
    totals[key] = column(name, amount).reduce((a, b) => a + b, 0);
  }
  const total = value.reduce((a, b) => a + b, 0);
  column(
    "stacks",
    byRow.map((v, row) => (v > 0 ? rows.stacksOf(row) : 0)),
  );
  const before = question.before ? column("before", rows.value(question.parts, question.before)) : null;
  let cumulative: Float64Array | null = null;
  if (by === "function") {
    cumulative = withCallees(asked, groups, nodeValues(tree, byRow, meant).total);
    for (const name of columns.keys()) columns.set(name, lengthened(columns.get(name)!, cumulative.length));
    columns.set("cumulative", cumulative);
  }

  const weight = (g: number) => Math.max(columns.get("value")![g]!, before?.[g] ?? 0, cumulative?.[g] ?? 0);
  const values = columns.get("value")!;
  const names = groups.frames.map((frame) => frame.name ?? "");
  const order = groups.id.map((_, g) => g).filter((g) => weight(g) > 0);
  // Nobody is to blame for what is folded, so it comes last, however heavy.
  const last = (g: number) => Number(groups.id[g] === folded);
  order.sort(
    (a, b) =>
      last(a) - last(b) ||
      values[b]! - values[a]! ||
      weight(b) - weight(a) ||
      (names[a]! < names[b]! ? -1 : names[a]! > names[b]! ? 1 : a - b),
  );
  const shown = Math.min(order.length, Math.max(1, most ?? mostRows));
  const left = order.length - shown;
  const frames = order.slice(0, shown).map((g) => groups.frames[g]!);
  const ids = order.slice(0, shown).map((g) => groups.id[g]!);
  const result = new Map<string, Float64Array>();
  for (const [name, all] of columns) {
    const some = new Float64Array(shown + (left > 0 ? 1 : 0));
    for (let i = 0; i < order.length; ++i)
      if (i < shown) some[i] = all[order[i]!]!;
      else if (name !== "cumulative") some[shown]! += all[order[i]!]!;
    result.set(name, some);
  }
  if (left > 0) {
    ids.push(nobody);
    frames.push({ name: "others" });
  }
  return {
    metric: question.metric,
    unit: question.unit,
    rows: ids.length,
    left_out: left,
    names: namesOf(frames),
    total,
    totals,
    id: Uint32Array.from(ids),
    columns: result,
  };
}

// What each function has with all it called; a recursive one counts once. Functions that only call others
// become groups as well.
function withCallees(asked: Asked, groups: Groups, totals: Float64Array): Float64Array {
  const { rows, question, tree } = asked;
  const place = new Int32Array(tree.symbols).fill(-1);
  for (let row = 0; row < rows.count; ++row) {
    const node = tree.nodeOfRow[row]!;
    if (groups.of[row]! >= 0 && tree.kind[node] !== kOthers) place[tree.symbol[node]!] = groups.of[row]!;
  }
  const sums: number[] = groups.id.map(() => 0);
  const open = new Uint32Array(tree.symbols);
  const visits: number[] = [0]; // A node, or when it is done with, the same negative.
  while (visits.length > 0) {
    const node = visits.pop()!;
    if (node < 0) {
      --open[tree.symbol[-node]!]!;
      continue;
    }
    if (node > 0) {
      const symbol = tree.symbol[node]!;
      if (place[symbol]! < 0) {
        place[symbol] = groups.frames.push(frameOf(rows, rows.symbols, symbol, question.fullNames)) - 1;
        groups.id.push(rows.symbols.id![symbol] ?? symbol);
        sums.push(0);
      }
      if (open[symbol]!++ === 0) sums[place[symbol]!]! += totals[node]!;
      visits.push(-node);
    }
    for (let c = tree.firstChild[node]!; c < tree.firstChild[node + 1]!; ++c) {
      const child = tree.children[c]!;
      if (totals[child]! > 0 && tree.kind[child] !== kOthers) visits.push(child);
    }
  }
  return Float64Array.from(sums);
}

function lengthened(values: Float64Array, length: number): Float64Array {
  const longer = new Float64Array(length);
  longer.set(values);
  return longer;
}

export function namesOf(frames: Frame[]): Names {
  return {
    name: frames.map((f) => f.name ?? "?"),
    full: frames.map((f) => f.full ?? ""),
    file: frames.map((f) => f.file ?? ""),
    line: frames.map((f) => f.line ?? 0),
    module: frames.map((f) => f.module ?? ""),
  };
}

// How the heaviest sites went through the whole time, at the ends of slices: the highest of each part. Of
// CPU time, what was used in each part.
export function sparksOf(asked: Asked): Sparks {
  const { rows } = asked;
  const points = Math.min(mostSparks, rows.slices);
  if (points === 0) return { points: mostSparks, id: new Uint32Array(), spark: new Float64Array() };
  const listed = sitesOf(asked, "site", null);
  const many = listed.left_out > 0 ? listed.rows - 1 : listed.rows;
  const id = listed.id.slice(0, many);
  const lines = new Map(Array.from(id, (one, i) => [one, i]));
  const groups = asked.groups("site");
  const line = Int32Array.from(groups.of, (g) => (g < 0 ? -1 : (lines.get(groups.id[g]!) ?? -1)));
  const spark = new Float64Array(many * points),
    live = new Float64Array(many);
  for (let slice = 0; slice < rows.slices; ++slice) {
    if (asked.question.metric === "cpu") {
      const at = Math.floor((slice * points) / rows.slices);
      rows.eachChange("cpu", slice, (row, used) => {
        if (line[row]! >= 0) spark[line[row]! * points + at]! += used;
      });
      continue;
    }
    rows.eachChange("live", slice, (row, change) => {
      if (line[row]! >= 0) live[line[row]!]! += change;
    });
    const part = Math.floor((slice * points) / rows.slices);
    for (let i = 0; i < many; ++i) {
      const at = i * points + part;
      if (live[i]! > spark[at]!) spark[at] = live[i]!;
    }
  }
  return { points, id, spark };
}

// The heaviest stacks of a site, innermost frame first.
export function stacksOf(asked: Asked, site: number): Stacks {
  const { rows, question, tree } = asked;
  const groups = asked.groups("site");
  const group = groups.id.indexOf(site);
  const value = rows.value(question.parts, question.range);
  const found: number[] = [];
  if (group >= 0)
    for (let row = 0; row < rows.count; ++row) if (groups.of[row] === group && value[row]! > 0) found.push(row);
  found.sort((a, b) => value[b]! - value[a]! || a - b);
  const frames = (row: number): Frame[] => {
    const path: Frame[] = [];
    for (let node = tree.nodeOfRow[row]!; node > 0; node = tree.parent[node]!) {
      if (tree.kind[node] === kOthers) path.push({ name: `(${rows.stacksOf(row)} light stacks, folded in this file)` });
      else if (path.length === 0 && siteIs(rows, row, tree.symbol[node]!)) path.push(groups.frames[group]!);
      else path.push(frameOf(rows, rows.symbols, tree.symbol[node]!, question.fullNames));
    }
    return path;
  };
  return {
    left_out: Math.max(0, found.length - mostStacks),
    stacks: found.slice(0, mostStacks).map((row) => ({
      value: value[row]!,
      ...(question.metric === "cpu"
        ? {}
        : {
            allocations: rows.amount("allocations", question.range)![row]!,
            live: rows.amount("live", question.range)![row]!,
            ...(question.range.whole ? { peak: rows.amount("peak", question.range)![row]! } : {}),
          }),
      frames: frames(row),
    })),
  };
}

// A site knows its line where a function may have several.
function siteIs(rows: FileRows, row: number, symbol: number): boolean {
  const site = rows.site[row]!;
  return site >= 0 && wholeName(rows.sites, site) === wholeName(rows.symbols, symbol);
}
