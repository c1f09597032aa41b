// SPDX-License-Identifier: Apache-2.0
// A self-contained file's data, made up: stacks with recursion, several processes, folded stacks and what
// each did in every slice; and the same stacks as plain lists, to count on the slow way.

import { gzipSync } from "node:zlib";
import { type Column, encodeColumns } from "../src/columns";
import { FileData } from "../src/file_data";
import { FileSource } from "../src/file_source";

export const amounts = [
  "allocations",
  "reallocations",
  "allocated",
  "live",
  "live_blocks",
  "peak",
  "temporary",
  "cpu",
] as const;
export type Amount = (typeof amounts)[number];

export interface Stack {
  functions: number[]; // Outermost first.
  folded: number; // How many stacks it stands for, if it is one that was folded.
  site: number; // -1: several.
  image: number;
  whole: Record<Amount, number>;
  slices: Record<Amount, number>[]; // Of what is live, the change.
}

export interface MadeUp {
  stacks: Stack[];
  symbols: { name: string; full: string }[];
  sites: { symbol: number; line: number; module: string; file: string }[];
  pids: number[];
  slices: number;
}

export function random(seed: number) {
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
}

export function madeUp(seed: number, count: number, slices: number): MadeUp {
  const next = random(seed);
  const below = (n: number) => Math.floor(next() * n);
  const symbols = Array.from({ length: 12 }, (_, i) => ({
    name: i % 3 === 0 ? `S${i}::run` : `s${i}`,
    full: i % 3 === 0 ? `S${i}<int>::run(char)` : "",
  }));
  const sites = Array.from({ length: 20 }, (_, i) => ({
    symbol: i % 12,
    line: i + 1,
    module: i % 4 === 0 ? "" : `/lib/lib${i % 3}.so`,
    file: i % 5 === 0 ? "" : `/src/f${i % 4}.cc`,
  }));
  const seen = new Set<string>(),
    stacks: Stack[] = [];
  while (stacks.length < count) {
    const folded = next() < 0.1 ? 2 + below(9) : 0;
    const functions = Array.from({ length: (folded ? 0 : 1) + below(7) }, () => below(12));
    const image = below(3);
    const key = JSON.stringify([functions, folded > 0, image]);
    // Others are one node below each parent, so a process has one row there.
    if (seen.has(key) || (folded && seen.has(JSON.stringify([functions, true])))) continue;
    seen.add(key);
    if (folded) seen.add(JSON.stringify([functions, true]));
    const inner = functions.at(-1);
    const fitting = sites.flatMap((s, i) => (s.symbol === inner ? [i] : []));
    const changes: Record<Amount, number>[] = [];
    const whole = Object.fromEntries(amounts.map((a) => [a, 0])) as Record<Amount, number>;
    for (let i = 0; i < slices; ++i) {
      const quiet = next() < 0.5;
      const change = Object.fromEntries(amounts.map((a) => [a, quiet ? 0 : below(50)])) as Record<Amount, number>;
      change.peak = 0;
      if (!quiet) change.live = Math.max(-whole.live, below(4000) - 1500);
      if (!quiet) change.live_blocks = Math.max(-whole.live_blocks, below(9) - 4);
      changes.push(change);
      for (const a of amounts) whole[a] += change[a];
    }
    whole.peak = below(5000);
    stacks.push({
      functions,
      folded,
      site: folded ? -1 : fitting[below(fitting.length)]!,
      image,
      whole,
      slices: changes,
    });
  }
  return { stacks, symbols, sites, pids: [100, 200, 100], slices };
}

export interface Parts {
  tree: ArrayBuffer;
  slices: ArrayBuffer;
}

export function partsOf(made: MadeUp): Parts {
  const parent = [0],
    symbol = [0],
    kind = [2];
  const nodes = new Map<string, number>();
  const child = (of: number, key: string, what: number, s: number) => {
    const known = nodes.get(`${of} ${key}`);
    if (known !== undefined) return known;
    parent.push(of);
    symbol.push(s);
    kind.push(what);
    nodes.set(`${of} ${key}`, parent.length - 1);
    return parent.length - 1;
  };
  const rowNode = made.stacks.map((stack) => {
    let node = 0;
    for (const f of stack.functions) node = child(node, String(f), 0, f);
    return stack.folded ? child(node, "others", 1, stack.folded) : node;
  });
  const f64 = (of: (stack: Stack) => number) => Float64Array.from(made.stacks, of);
  const whole: Record<string, Column> = {};
  for (const a of amounts) whole[a] = f64((stack) => stack.whole[a]);
  const tree = encodeColumns(
    {
      symbols: {
        id: made.symbols.map((_, i) => i),
        name: made.symbols.map((s) => s.name),
        full: made.symbols.map((s) => s.full),
        file: made.symbols.map(() => "/src/x.cc"),
        line: made.symbols.map(() => 0),
        module: made.symbols.map(() => "/lib/x.so"),
      },
      sites: {
        id: made.sites.map((_, i) => i),
        name: made.sites.map((s) => made.symbols[s.symbol]!.name),
        full: made.sites.map((s) => made.symbols[s.symbol]!.full),
        file: made.sites.map((s) => s.file),
        line: made.sites.map((s) => s.line),
        module: made.sites.map((s) => s.module),
      },
      images: made.pids,
    },
    {
      parent: Uint32Array.from(parent),
      symbol: Uint32Array.from(symbol),
      kind: Uint8Array.from(kind),
      row_node: Uint32Array.from(rowNode),
      row_site: Uint32Array.from(made.stacks, (s) => (s.site < 0 ? 0xffffffff : s.site)),
      row_image: Uint32Array.from(made.stacks, (s) => s.image),
      ...whole,
    },
  );
  const first = [0],
    entries: [row: number, change: Record<Amount, number>][] = [];
  for (let i = 0; i < made.slices; ++i) {
    made.stacks.forEach((stack, row) => {
      if (amounts.some((a) => stack.slices[i]![a] !== 0)) entries.push([row, stack.slices[i]!]);
    });
    first.push(entries.length);
  }
  const of = (a: Amount) => entries.map(([, change]) => change[a]);
  const slices = encodeColumns(
    {},
    {
      first: Uint32Array.from(first),
      row: Uint32Array.from(entries, ([row]) => row),
      allocations: Uint32Array.from(of("allocations")),
      reallocations: Uint32Array.from(of("reallocations")),
      temporary: Uint32Array.from(of("temporary")),
      late_row: new Uint32Array(),
      late_made: new Uint32Array(),
      late_freed: new Uint32Array(),
      late_blocks: new Uint32Array(),
      allocated: Float64Array.from(of("allocated")),
      live: Float64Array.from(of("live")),
      live_blocks: Int32Array.from(of("live_blocks")),
      cpu: Float64Array.from(of("cpu")),
    },
  );
  return { tree, slices };
}

export function packed(bytes: ArrayBuffer | string): string {
  return gzipSync(typeof bytes === "string" ? bytes : new Uint8Array(bytes)).toString("base64");
}

export function traceJson(made: MadeUp, more: Record<string, unknown> = {}): string {
  return JSON.stringify({
    state: "ready",
    name: "made.mscope",
    duration_ns: 1000,
    cuts_ns: Array.from({ length: 1001 }, (_, i) => i),
    metrics: ["peak", "live", "lifetime"],
    warnings: [{ kind: "cut", text: "It was cut." }],
    processes: made.pids.map((pid) => ({ pid, program: `p${pid}` })),
    has: { source: true },
    file: { slices: made.slices, rows: made.stacks.length, left_out: ["Light stacks were folded."] },
    ...more,
  });
}

export function fileSource(made: MadeUp, more: Record<string, string> = {}, without: string[] = []): FileSource {
  const parts = partsOf(made);
  const texts: Record<string, string> = {
    trace: packed(traceJson(made)),
    tree: packed(parts.tree),
    slices: packed(parts.slices),
    ...more,
  };
  for (const name of without) delete texts[name];
  return new FileSource(new FileData(new Map(Object.entries(texts).map(([name, text]) => [name, () => text]))));
}
