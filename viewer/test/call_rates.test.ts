// SPDX-License-Identifier: Apache-2.0
// Bursts of calls are rates of a step that can be seen, and no call is lost.

import assert from "node:assert/strict";
import { test } from "node:test";
import { callRates } from "../src/call_rates";
import type { Timeline } from "../src/contract";

const of = (slices: number) =>
  ({
    slices,
    time: Float64Array.from({ length: slices + 1 }, (_, i) => i * 1e6),
    allocations: Float64Array.from({ length: slices }, (_, i) => (i % 2 ? 0 : 10)),
    frees: new Float64Array(slices).fill(1),
  }) as unknown as Timeline;

test("four slices of a thousand are a step", () => {
  const rates = callRates(of(1000));
  assert.deepEqual([rates.allocations.length, rates.time.length, rates.time[1]], [250, 251, 4e6]);
  assert.ok(rates.allocations.every((rate) => Math.abs(rate - 5000) < 1e-6) && rates.frees.every((rate) => Math.abs(rate - 1000) < 1e-6));
});

test("few slices stay as they are, the last step may be short", () => {
  assert.equal(callRates(of(10)).allocations[0], 10_000);
  const rates = callRates(of(1001));
  assert.equal(rates.time.at(-1), 1001e6);
  const calls = rates.frees.reduce((sum, rate, i) => sum + (rate * (rates.time[i + 1]! - rates.time[i]!)) / 1e9, 0);
  assert.ok(Math.abs(calls - 1001) < 1e-6);
});
