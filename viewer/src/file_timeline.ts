// SPDX-License-Identifier: Apache-2.0
// How a part of the stacks went through the slices of the self-contained file, and how its processes or
// sites make that up. Only the ends of slices are known.

import type { Frame, Timeline, Trace } from "./contract";
import { type Asked, folded } from "./file_sites";
import { notHere } from "./file_question";
import { grouped } from "./format";
import { place } from "./safe_text";

const mostGroups = 12;

export function timelineOf(asked: Asked, by: string, trace: Trace): Timeline {
  const { rows, meant } = asked;
  const slices = rows.slices;
  if (slices === 0) throw notHere("How a part of the stacks went through the time");
  const flow = (name: "allocations" | "allocated" | "live" | "live_blocks") => {
    const sums = new Float64Array(slices);
    for (let i = 0; i < slices; ++i)
      rows.eachChange(name, i, (row, change) => {
        if (meant[row]) sums[i]! += change;
      });
    return sums;
  };
  const allocations = flow("allocations"),
    live = flow("live"),
    blocks = flow("live_blocks");
  // Blocks that realloc moves to other stacks are neither made nor freed, and are not in the file.
  const frees = trace.totals.reallocations ? new Float64Array() : allocations.map((made, i) => Math.max(0, made - blocks[i]!));
  for (let i = 1; i < slices; ++i) {
    live[i]! += live[i - 1]!;
    blocks[i]! += blocks[i - 1]!;
  }
  const wide = 1000 / slices;
  const cut = (tenths: number) => trace.cuts_ns[tenths] ?? (trace.duration_ns * tenths) / 1000;
  const layers = by === "none" ? { groups: [], group_live: new Float64Array() } : layersOf(asked, by, trace);
  const nothing = new Float64Array();
  return {
    slices,
    by,
    exact_max: false,
    time: Float64Array.from({ length: slices + 1 }, (_, i) => cut(i * wide)),
    live_max: live.map((now, i) => Math.max(now, live[i - 1] ?? 0)),
    live,
    blocks,
    running_blocks: blocks,
    allocations,
    allocated: flow("allocated"),
    frees,
    rss_time: nothing,
    rss: nothing,
    vm_time: nothing,
    vm_size: nothing,
    cpu: nothing, // Slices may be shorter than what a sample stands for.
    ...layers,
  };
}

// Names of sites; those that are of several have their line with them.
export function toldApart(frames: readonly Frame[]): string[] {
  const many = new Map<string, number>();
  const nameOf = (frame: Frame) => frame.name ?? "?";
  for (const frame of frames) many.set(nameOf(frame), (many.get(nameOf(frame)) ?? 0) + 1);
  return frames.map((frame) => {
    const where = many.get(nameOf(frame))! > 1 ? place(frame.file, frame.line) : "";
    return where ? `${nameOf(frame)} ${where}` : nameOf(frame);
  });
}

// The heaviest at their own highest, and the rest as one.
function layersOf(asked: Asked, by: string, trace: Trace): Pick<Timeline, "groups" | "group_live"> {
  const { rows, meant } = asked;
  let of: ArrayLike<number>,
    names: string[],
    last = -1; // What is folded, however heavy.
  if (by === "site") {
    const groups = asked.groups("site");
    of = groups.of;
    last = groups.id.indexOf(folded);
    names = toldApart(groups.frames);
  } else if (by === "process") {
    of = rows.image;
    names = rows.images.map((pid, i) => {
      const process = trace.processes[i]?.pid === pid ? trace.processes[i] : trace.processes.find((p) => p.pid === pid);
      return `${process?.program ?? "?"} (${pid})`;
    });
  } else {
    throw notHere(`How a part of the stacks went through the time by ${by}`);
  }
  const live = new Float64Array(names.length),
    highest = new Float64Array(names.length);
  const follow = (visit: (slice: number) => void) => {
    live.fill(0);
    for (let i = 0; i < rows.slices; ++i) {
      rows.eachChange("live", i, (row, change) => {
        const group = meant[row] ? of[row]! : -1;
        if (group >= 0 && group < live.length) live[group]! += change;
      });
      visit(i);
    }
  };
  follow(() => {
    for (let g = 0; g < live.length; ++g) if (live[g]! > highest[g]!) highest[g] = live[g]!;
  });
  const order = names.map((_, g) => g).filter((g) => highest[g]! > 0);
  order.sort((a, b) => Number(a === last) - Number(b === last) || highest[b]! - highest[a]! || a - b);
  const kept = order.length > mostGroups + 1 ? mostGroups : order.length;
  const groups = order.slice(0, kept).map((g) => ({ name: names[g]! }));
  if (order.length > kept) groups.push({ name: `${grouped(order.length - kept)} others` });
  const group_live = new Float64Array(groups.length * rows.slices);
  follow((slice) => {
    order.forEach((g, place) => (group_live[Math.min(place, kept) * rows.slices + slice]! += live[g]!));
  });
  return { groups, group_live };
}
