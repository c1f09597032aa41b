// SPDX-License-Identifier: Apache-2.0
// The program's phases as bands above a chart: which lie below each other, which are drawn as one because
// they are too near to be told apart, and what is said of a moment.

import type { Mark, Phase } from "./contract";
import { grouped } from "./format";

// Those that lie inside or beside each other, on rows of their own; what has no room is on the last.
export function phaseLanes(phases: readonly Phase[], most: number): Phase[][] {
  const lanes: Phase[][] = [],
    until: number[] = [];
  const order = [...phases].sort((a, b) => a.from_ns - b.from_ns || b.to_ns - a.to_ns);
  for (const phase of order) {
    let lane = until.findIndex((end) => end <= phase.from_ns);
    if (lane < 0) lane = Math.min(lanes.length, most - 1);
    (lanes[lane] ??= []).push(phase);
    until[lane] = phase.to_ns;
  }
  return lanes;
}

export interface Band {
  names: string[]; // Each once.
  times: number;
  left: number;
  right: number;
}

// The bands of a lane in pixels. Those of one name that all but touch are one; so are those that are too
// narrow to be seen beside each other, whatever their names.
export function bandsOf(lane: readonly Phase[], x: (ns: number) => number, near: number): Band[] {
  const bands: Band[] = [];
  for (const phase of lane) {
    const left = x(phase.from_ns),
      right = Math.max(left, x(phase.to_ns));
    const last = bands[bands.length - 1];
    const same = last?.names.length === 1 && last.names[0] === phase.name;
    const tiny = last !== undefined && right - left < near && (last.names.length > 1 || last.right - last.left < near);
    if (last && left - last.right < near && (same || tiny)) {
      last.right = Math.max(last.right, right);
      last.times += phase.times;
      if (!last.names.includes(phase.name)) last.names.push(phase.name);
    } else {
      bands.push({ names: [phase.name], times: phase.times, left, right });
    }
  }
  return bands;
}

// "load", "event \u00d7 3,000", "read, parse and 3 more".
export function bandText(band: Band): string {
  if (band.names.length > 1) return listed(band.names);
  return band.times > 1 ? `${band.names[0]} \u00d7 ${grouped(band.times)}` : band.names[0]!;
}

function listed(names: string[]): string {
  const few = names.slice(0, 3).join(", ");
  return names.length > 3 ? `${few} and ${grouped(names.length - 3)} more` : few;
}

// What the program itself says of a slice of time; "" if nothing.
export function saidOf(phases: readonly Phase[], marks: readonly Mark[], from: number, to: number): string {
  const within = new Set(phases.filter((p) => p.from_ns < to && p.to_ns >= from).map((p) => p.name));
  const set = new Set(marks.filter((m) => m.time_ns >= from && m.time_ns < to).map((m) => m.name));
  return [
    within.size > 0 ? `${within.size > 1 ? "phases" : "phase"} ${listed([...within])}` : "",
    set.size > 0 ? `${set.size > 1 ? "marks" : "mark"} ${listed([...set])}` : "",
  ]
    .filter(Boolean)
    .join("; ");
}
