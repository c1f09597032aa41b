// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuCurve } from "../src/cpu_curve";

const ms = 1e6;
const of = (slices: number, length: number, cpu: (i: number) => number) => ({
  time: Float64Array.from({ length: slices + 1 }, (_, i) => i * length),
  cpu: Float64Array.from({ length: slices }, (_, i) => cpu(i)),
});

test("long slices are drawn as they are", () => {
  const curve = cpuCurve(of(4, 100 * ms, (i) => i * 50 * ms))!;
  assert.deepEqual([...curve.busy], [0, 0.5, 1, 1.5]);
  assert.deepEqual([...curve.time], [0, 1, 2, 3, 4].map((i) => i * 100 * ms));
});

test("short ones are put together, and nothing is lost", () => {
  const given = of(10, 4 * ms, (i) => (i % 2 ? 8 * ms : 0)); // A thread that is told of every 8 ms.
  const curve = cpuCurve(given)!;
  assert.deepEqual([...curve.time], [0, 12, 24, 36, 40].map((t) => t * ms));
  const used = curve.busy.map((busy, i) => busy * (curve.time[i + 1]! - curve.time[i]!));
  assert.ok(Math.abs(used.reduce((a, b) => a + b) - given.cpu.reduce((a, b) => a + b)) < 1);
});

test("a recording without it has no curve, and one of no length no endless one", () => {
  assert.equal(cpuCurve({ time: Float64Array.of(0, 1), cpu: new Float64Array() }), null);
  assert.deepEqual([...cpuCurve(of(3, 0, () => 5))!.busy], [15]);
});
