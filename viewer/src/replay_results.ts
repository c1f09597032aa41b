// SPDX-License-Identifier: Apache-2.0
// What `malloscope replay` left (docs/replay.md), put together by set-up: an allocator with its tunables,
// of which there is a run for each repeat.

import type { Replay } from "./contract";
import { fixed } from "./format";

export type Row = Record<string, any>;

export interface Setup {
  name: string;
  runs: Row[];
}

export function setupsOf(replay: Replay): Setup[] {
  const setups = new Map<string, Setup>();
  for (const run of replay.runs ?? []) {
    const name = nameOf(run);
    if (!setups.has(name)) setups.set(name, { name, runs: [] });
    setups.get(name)!.runs.push(run);
  }
  return [...setups.values()];
}

function nameOf(row: Row): string {
  return row.tunables ? `${row.allocator} ${row.tunables}` : String(row.allocator);
}

// As src/replay/compare.cc has it, so that the table is the command line's: the middle one; of an even number,
// the upper of the two in the middle. NaN if none is known.
export function median(values: number[]): number {
  const sorted = known(values);
  return sorted.length ? sorted[sorted.length >> 1]! : NaN;
}

// Half the distance between the outermost, by the middle: "+-4 %". Of a single run nobody knows it.
export function spreadText(values: number[]): string {
  const sorted = known(values),
    middle = median(values);
  if (sorted.length < 2) return "";
  return `+-${middle > 0 ? fixed(((sorted.at(-1)! - sorted[0]!) / 2 / middle) * 100, 0) : 0} %`;
}

function known(values: number[]): number[] {
  return values.filter(Number.isFinite).sort((a, b) => a - b);
}

// The one with the least allocator time first, as the command line lists them; those that failed last.
export function byTime(setups: Setup[]): Setup[] {
  const time = ({ runs }: Setup) => median(figures(runs, (run) => run.allocator_ns));
  return setups
    .map((setup) => [setup, time(setup)] as const)
    .sort(([, a], [, b]) => (Number.isNaN(a) ? Infinity : a) - (Number.isNaN(b) ? Infinity : b) || 0)
    .map(([setup]) => setup);
}

// Of the runs without an error.
export function figures(runs: Row[], what: (run: Row) => number): number[] {
  return runs.filter((run) => !run.error).map(what);
}

export function callsOf(run: Row): number {
  return Object.values(run.calls ?? {}).reduce((sum: number, n) => sum + Number(n), 0);
}

// The moments of a set-up's first run that came to something.
export function momentsOf(replay: Replay, setup: Setup): Row[] {
  const points = (replay.over_time ?? []).filter((x) => nameOf(x) === setup.name);
  const repeat = points.length ? Math.min(...points.map((x) => x.repeat ?? 1)) : 0;
  return points.filter((x) => (x.repeat ?? 1) === repeat);
}

// In the order in which they are asked about most.
const kinds = ["malloc", "free", "realloc", "calloc", "memalign"];

export function timedCalls(replay: Replay): string[] {
  const there = new Set((replay.cycles_by_size ?? []).map((x) => String(x.call)));
  return [...kinds.filter((k) => there.has(k)), ...[...there].filter((k) => !kinds.includes(k))];
}

export interface SizeClass {
  from: number;
  to: number;
  // By set-up: what a call takes on average over all runs, and how many there were in one. NaN: none.
  cycles: number[];
  calls: number[];
}

// What one kind of call costs in each power of two of sizes.
export function cyclesBySize(replay: Replay, setups: Setup[], call: string): SizeClass[] {
  const classes = new Map<number, SizeClass & { sums: number[]; weights: number[] }>();
  const index = new Map(setups.map((s, i) => [s.name, i]));
  for (const row of replay.cycles_by_size ?? []) {
    const i = index.get(nameOf(row));
    if (row.call !== call || i === undefined || !Number.isFinite(row.mean_cycles) || !(row.calls > 0)) continue;
    let c = classes.get(row.from_bytes);
    if (!c) {
      const zeros = () => setups.map(() => 0);
      c = { from: row.from_bytes, to: row.to_bytes, cycles: [], calls: [], sums: zeros(), weights: zeros() };
      classes.set(row.from_bytes, c);
    }
    c.sums[i]! += row.mean_cycles * row.calls;
    c.weights[i]! += row.calls;
  }
  return [...classes.values()]
    .sort((a, b) => a.from - b.from)
    .map((c) => ({
      from: c.from,
      to: c.to,
      cycles: c.sums.map((sum, i) => (c.weights[i]! > 0 ? sum / c.weights[i]! : NaN)),
      calls: c.weights.map((n, i) => (n > 0 ? n / setups[i]!.runs.length : NaN)),
    }));
}

// Where to cut an axis of fragmentation: while next to nothing is live, any heap is a hundred times the ideal.
export function fragmentationLimit(moments: Row[]): number {
  const highest = moments.reduce((m, x) => Math.max(m, x.ideal_bytes ?? 0), 0);
  const telling = moments.filter((x) => (x.ideal_bytes ?? 0) >= highest / 10 && Number.isFinite(x.fragmentation));
  return telling.reduce((m, x) => Math.max(m, x.fragmentation), 1.2);
}
