// SPDX-License-Identifier: Apache-2.0
// A timeline of which a part is known in finer slices: what zooming in shows.

import type { Timeline, Trace } from "./contract";

const fewSlices = 250; // With more of them in view, finer ones would hardly be seen.

// The cuts around what is in view, if finer slices are worth asking for.
export function cutsAround(trace: Trace, window: [number, number] | null): [number, number] | null {
  if (!window || trace.cuts_ns.length < 2) return null;
  const cuts = trace.cuts_ns;
  let from = 0,
    to = cuts.length - 1;
  while (from + 1 < cuts.length && cuts[from + 1]! <= window[0]) ++from;
  while (to > from + 1 && cuts[to - 1]! >= window[1]) --to;
  return to - from <= fewSlices ? [from, to] : null;
}

type Series = "live" | "live_max" | "blocks" | "running_blocks" | "allocations" | "allocated" | "frees";

// `detail` begins and ends where slices of `coarse` do.
export function refined(coarse: Timeline, detail: Timeline): Timeline {
  const from = detail.time[0]!,
    to = detail.time[detail.time.length - 1]!;
  let before = 0,
    behind = coarse.slices;
  while (before < coarse.slices && coarse.time[before + 1]! <= from) ++before;
  while (behind > before && coarse.time[behind - 1]! >= to) --behind;
  const joined = (name: Series) =>
    Float64Array.from([...coarse[name].slice(0, before), ...detail[name], ...coarse[name].slice(behind)]);
  const time = Float64Array.from([...coarse.time.slice(0, before), ...detail.time, ...coarse.time.slice(behind + 1)]);
  return {
    ...coarse,
    slices: time.length - 1,
    time,
    live: joined("live"),
    live_max: joined("live_max"),
    blocks: joined("blocks"),
    running_blocks: joined("running_blocks"),
    allocations: joined("allocations"),
    allocated: joined("allocated"),
    frees: coarse.frees.length > 0 ? joined("frees") : coarse.frees,
  };
}
