// SPDX-License-Identifier: Apache-2.0
// How many CPUs the program used over time. A sample stands for some milliseconds; in shorter steps a
// thread that computes all the time would look like one that starts and stops.

import type { Timeline } from "./contract";

const shortest = 10e6; // Of a step, ns.

export interface CpuCurve {
  time: Float64Array; // The cuts, one more than there are values.
  busy: Float64Array;
}

// Several slices together where they are short. Nothing if the recording does not tell.
export function cpuCurve({ time, cpu }: Pick<Timeline, "time" | "cpu">): CpuCurve | null {
  const slices = cpu.length;
  if (slices === 0 || time.length !== slices + 1) return null;
  const length = (time[slices]! - time[0]!) / slices;
  const many = Math.min(slices, Math.max(1, Math.ceil(shortest / Math.max(length, 1))));
  const cuts = Array.from({ length: Math.ceil(slices / many) }, (_, i) => i * many).concat(slices);
  const busy = Float64Array.from({ length: cuts.length - 1 }, (_, i) => {
    const used = cpu.subarray(cuts[i]!, cuts[i + 1]!).reduce((a, b) => a + b, 0);
    return used / Math.max(1, time[cuts[i + 1]!]! - time[cuts[i]!]!);
  });
  return { time: Float64Array.from(cuts, (cut) => time[cut]!), busy };
}
