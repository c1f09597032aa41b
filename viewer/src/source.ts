// SPDX-License-Identifier: Apache-2.0
// Where answers come from. The page knows only this; behind it is a server (server_source.ts) or, in
// the self-contained file, the answers that were written into it.

import type { Columns } from "./columns";
import * as c from "./contract";

export interface Source {
  trace(signal?: AbortSignal): Promise<c.TraceHead | c.Trace>;
  progress(signal?: AbortSignal): Promise<c.Job[]>;
  timeline(question: URLSearchParams, by: string, signal?: AbortSignal): Promise<c.Timeline>;
  // The part from one cut to another in finer slices; where it is not there, nobody knows them.
  detail?(question: URLSearchParams, from: number, to: number, signal?: AbortSignal): Promise<c.Timeline>;
  flame(question: URLSearchParams, how: FlameHow, signal?: AbortSignal): Promise<c.Flame>;
  sites(question: URLSearchParams, by: string, most: number | null, signal?: AbortSignal): Promise<c.Sites>;
  sparks(question: URLSearchParams, signal?: AbortSignal): Promise<c.Sparks>;
  stacks(question: URLSearchParams, site: number, signal?: AbortSignal): Promise<c.Stacks>;
  answer(name: string, question: URLSearchParams, signal?: AbortSignal): Promise<c.Answer>;
  // With `each`, blocks are told apart however long that takes.
  blocks(question: URLSearchParams, site: number, each: boolean, signal?: AbortSignal): Promise<c.Blocks>;
  sourceLines(file: string, line: number, signal?: AbortSignal): Promise<c.SourceLines>;
  replay(signal?: AbortSignal): Promise<c.Replay>;
  // Why a word of the question, or one of its values, is of no use here, as a sentence; null if it is of use.
  // Also asked of "group" and "by" (how sites and curves are put together), "site" (its blocks), "answer",
  // "range" (a metric of a part of the time) and "part" (a view, under filters).
  refusal(word: string, value?: string): string | null;
  // What the answers to this question are about instead, if that is not quite what was asked.
  remark(question: URLSearchParams): string | null;
}

export interface FlameHow {
  inverted?: boolean;
  root?: number | null;
  way?: string | null; // Symbols from the root on, where nodes have no id of their own.
  callers_of?: number | null;
  callees_of?: number | null;
}

// From JSON and columns to the answers' own types; the same for every source.
export function traceOf(json: Record<string, any>): c.TraceHead | c.Trace {
  if (json.state !== "ready") return json as c.TraceHead;
  return {
    command: "",
    duration_ns: 0,
    cuts_ns: [],
    totals: {},
    processes: [],
    threads: [],
    modules: [],
    metrics: ["peak"],
    warnings: [],
    overview: [],
    peak_time_ns: json.totals?.peak_bytes ? json.totals.peak_time_ns : undefined, // Nothing is never highest.
    ...json,
  } as unknown as c.Trace;
}

// Gives stacks their frames, in place; a second time it does nothing.
export function answerOf(answer: c.CompactAnswer): c.Answer {
  const frames = answer.frames;
  if (!frames) return answer;
  delete answer.frames;
  for (const table of answer.tables) {
    const stack = table.columns.findIndex((column) => column.kind === "stack");
    if (stack < 0) continue;
    for (const { cells } of table.rows)
      if (Array.isArray(cells[stack]))
        cells[stack] = (cells[stack] as unknown as number[]).flatMap((place) => frames[place] ?? []);
  }
  return answer;
}

export function timelineOf(columns: Columns): c.Timeline {
  const { head, numbers } = columns;
  const time = numbers("time");
  return {
    slices: head.slices ?? Math.max(0, time.length - 1),
    by: head.by ?? "none",
    exact_max: head.exact_max !== false,
    groups: head.groups ?? [],
    time,
    live_max: numbers("live_max"),
    live: numbers("live"),
    blocks: numbers("blocks"),
    running_blocks: numbers("running_blocks"),
    allocations: numbers("allocations"),
    allocated: numbers("allocated"),
    // Of a part of the stacks a slice can have a number below zero that went around.
    frees: numbers("frees").map((n) => (n > Number.MAX_SAFE_INTEGER ? 0 : n)),
    rss_time: numbers("rss_time"),
    rss: numbers("rss"),
    vm_time: numbers("vm_time"),
    vm_size: numbers("vm_size"),
    cpu: numbers("cpu"),
    group_live: numbers("group_live"),
  };
}

export function flameOf(columns: Columns): c.Flame {
  const { head, numbers, indices, column } = columns;
  const parent = indices("parent");
  return {
    metric: head.metric,
    unit: head.unit ?? "count",
    total: head.total ?? 0,
    unfiltered: head.unfiltered,
    nodes_of_all: head.nodes_of_all,
    others: head.others,
    total_before: head.total_before,
    symbols: { id: [], name: [], ...head.symbols },
    parent,
    symbol: indices("symbol"),
    kind: Uint8Array.from(column("kind") ?? new Uint8Array(parent.length)),
    total_of: numbers("total"),
    self_of: numbers("self"),
    id: indices("id"),
    before_of: column("before") ? numbers("before") : null,
  };
}

export function sitesOf(answer: Columns): c.Sites {
  const { head, numbers, indices, column } = answer;
  const columns = new Map<string, Float64Array>();
  for (const name of [...c.siteNumbers, "cumulative", "before"]) if (column(name)) columns.set(name, numbers(name));
  return {
    metric: head.metric,
    unit: head.unit ?? "count",
    rows: head.rows ?? columns.get("value")?.length ?? 0,
    left_out: head.left_out ?? 0,
    names: { name: [], ...head.names },
    total: head.total,
    totals: head.totals,
    peak_time_ns: head.peak_time_ns,
    id: indices("id"),
    columns,
  };
}

export function sparksOf(columns: Columns): c.Sparks {
  const { head, numbers, indices } = columns;
  return { points: head.points ?? 64, id: indices("id"), spark: numbers("spark") };
}

export function blocksOf(columns: Columns): c.Blocks {
  const { head, numbers, indices, column } = columns;
  const born = numbers("born");
  return {
    blocks: head.blocks ?? born.length,
    bars: head.bars ?? born.length,
    coarse: head.coarse === true,
    bytes_min: head.bytes_min ?? 0,
    bytes_max: head.bytes_max ?? 0,
    end_ns: head.end_ns ?? Infinity,
    born,
    died: numbers("died"),
    size: numbers("size"),
    stands_for: indices("stands_for"),
    tid: column("tid") ? indices("tid") : null,
    site: head.site ?? null,
  };
}
