// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Timeline, Trace } from "../src/contract";
import { cutsAround, refined } from "../src/refined_timeline";

function timeline(time: number[], values: number[]): Timeline {
  const column = () => Float64Array.from(values);
  return {
    slices: values.length,
    by: "none",
    exact_max: true,
    groups: [],
    time: Float64Array.from(time),
    live: column(),
    live_max: column(),
    blocks: column(),
    running_blocks: column(),
    allocations: column(),
    allocated: column(),
    frees: column(),
    rss_time: new Float64Array(),
    rss: new Float64Array(),
    vm_time: new Float64Array(),
    vm_size: new Float64Array(),
    cpu: new Float64Array(),
    group_live: new Float64Array(),
  };
}

const coarse = timeline([0, 10, 20, 30, 40], [1, 2, 3, 4]);

test("finer slices take the place of the coarse ones that they are in", () => {
  assert.equal(refined({ ...coarse, frees: new Float64Array() }, timeline([10, 15, 20], [20, 21])).frees.length, 0);
  const found = refined(coarse, timeline([10, 15, 20, 25, 30], [20, 21, 30, 31]));
  assert.deepEqual([...found.time], [0, 10, 15, 20, 25, 30, 40]);
  assert.deepEqual([...found.live_max], [1, 20, 21, 30, 31, 4]);
  assert.deepEqual([...found.frees], [1, 20, 21, 30, 31, 4]);
  assert.equal(found.slices, 6);
});

test("the same at both ends, and of the whole", () => {
  assert.deepEqual([...refined(coarse, timeline([0, 5, 10], [7, 8])).live], [7, 8, 2, 3, 4]);
  assert.deepEqual([...refined(coarse, timeline([30, 35, 40], [7, 8])).live], [1, 2, 3, 7, 8]);
  const all = refined(coarse, timeline([0, 20, 40], [7, 8]));
  assert.deepEqual([[...all.time], [...all.live]], [[0, 20, 40], [7, 8]]);
});

test("a part is asked for from cut to cut, and only if it is small", () => {
  const trace = { cuts_ns: Array.from({ length: 1001 }, (_, i) => i * 10) } as unknown as Trace;
  assert.equal(cutsAround(trace, null), null);
  assert.equal(cutsAround(trace, [0, 9000]), null);
  assert.deepEqual(cutsAround(trace, [105, 295]), [10, 30]);
  assert.deepEqual(cutsAround(trace, [100, 300]), [10, 30]);
  assert.deepEqual(cutsAround(trace, [0, 15]), [0, 2]);
  assert.deepEqual(cutsAround(trace, [9_985, 10_000]), [998, 1000]);
});
