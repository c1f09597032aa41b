// SPDX-License-Identifier: Apache-2.0
// Allocations and frees a second, in steps that are a few pixels wide: in finer ones calls come in bursts, and two
// such curves cannot be told apart.

import type { Timeline } from "./contract";

const mostSteps = 250;

export interface CallRates {
  time: Float64Array; // The cuts between steps.
  allocations: Float64Array;
  frees: Float64Array;
}

export function callRates({ time, allocations, frees, slices }: Timeline): CallRates {
  const together = Math.max(1, Math.ceil(slices / mostSteps)),
    steps = Math.ceil(slices / together);
  const cut = (step: number) => Math.min(slices, step * together);
  const times = Float64Array.from({ length: steps + 1 }, (_, step) => time[cut(step)]!);
  const rates = (counts: Float64Array) =>
    Float64Array.from({ length: steps }, (_, step) => {
      const sum = counts.subarray(cut(step), cut(step + 1)).reduce((a, b) => a + b, 0);
      return sum / Math.max(1e-9, (times[step + 1]! - times[step]!) / 1e9);
    });
  return { time: times, allocations: rates(allocations), frees: rates(frees) };
}
