// SPDX-License-Identifier: Apache-2.0
// An empty answer says why it is, and what there is instead; only where there is nothing at all the filters are blamed.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Trace } from "../src/contract";
import { emptiness } from "../src/empty_words";
import { initial } from "../src/state";

const trace = { duration_ns: 1e9, cuts_ns: Array.from({ length: 1001 }, (_, i) => i * 1e6) } as unknown as Trace;
const filtered = { ...initial, where: "parse" };
const said = (state: typeof initial, metric: string, totals: object) => {
  const { why, matches, instead } = emptiness(trace, state, metric, totals);
  return [why, matches, instead.map((i) => `${i.metric}: ${i.title}`)];
};

test("what was not live at the peak was allocated all the same", () => {
  assert.deepEqual(said(filtered, "peak", { allocations: 30000, live_bytes: 5, peak_bytes: 0 }), [
    "None of it was live at the peak.",
    "30,000 allocations match:",
    ["allocated: what was allocated", "live: what is left at the end"],
  ]);
  assert.deepEqual(said({ ...initial, to: 300, metric: "live" }, "live", { allocations: 1, peak_bytes: 7 }), [
    "None of it is live at 300 ms.",
    "1 allocation matches:",
    ["allocated: what was allocated", "peak: what was live at the peak of 0 us to 300 ms"],
  ]);
});

test("what was there before a range is no allocation in it", () => {
  assert.deepEqual(said({ ...initial, from: 100, to: 300 }, "allocated", { allocations: 0, live_bytes: 2048, peak_bytes: 2048 }), [
    "None of it was allocated from 100 ms to 300 ms.",
    "2.0 KiB from before match:",
    ["live: what is live at 300 ms", "peak: what was live at the peak of 100 ms to 300 ms"],
  ]);
});

test("filters are blamed only where nothing matches", () => {
  assert.deepEqual(said(filtered, "peak", { allocations: 0 }), ["Nothing matches these filters.", "", []]);
  assert.deepEqual(said(initial, "peak", {}), ["Nothing of this metric was recorded.", "", []]);
  assert.deepEqual(said(initial, "temporary", { allocations: 3 }), [
    "Nothing of this metric was recorded.",
    "3 allocations match:",
    ["allocated: what was allocated"],
  ]);
});
