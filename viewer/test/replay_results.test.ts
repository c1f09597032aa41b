// SPDX-License-Identifier: Apache-2.0
// Runs are put together by set-up, means are weighted by calls, and what was not timed stays unknown.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  byTime,
  cyclesBySize,
  figures,
  fragmentationLimit,
  median,
  momentsOf,
  setupsOf,
  spreadText,
  timedCalls,
} from "../src/replay_results";

const run = (allocator: string, repeat: number, tunables = "") => ({ allocator, tunables, repeat });
const cost = (allocator: string, repeat: number, call: string, from: number, calls: number, mean: number | null) => ({
  ...run(allocator, repeat),
  call,
  from_bytes: from,
  to_bytes: 2 * from - 1,
  calls,
  mean_cycles: mean,
});
const replay = {
  runs: [run("glibc", 1), run("glibc", 2), run("other", 1), run("glibc", 1, "a=1")],
  over_time: [
    { ...run("glibc", 2), time_ns: 5 },
    { ...run("glibc", 2), time_ns: 6 },
    { ...run("glibc", 3), time_ns: 7 },
    { ...run("glibc", 1, "a=1"), time_ns: 8 },
  ],
  cycles_by_size: [
    cost("glibc", 1, "malloc", 64, 100, 20),
    cost("glibc", 2, "malloc", 64, 300, 40),
    cost("glibc", 1, "malloc", 32, 10, 7),
    cost("other", 1, "malloc", 64, 50, null),
    cost("other", 1, "free", 32, 50, 9),
  ],
};

test("a set-up is an allocator with its tunables", () => {
  const setups = setupsOf(replay);
  assert.deepEqual(
    setups.map((s) => [s.name, s.runs.length]),
    [
      ["glibc", 2],
      ["other", 1],
      ["glibc a=1", 1],
    ],
  );
  // The first run that has any, and no other's.
  assert.deepEqual(
    setups.map((s) => momentsOf(replay, s).map((x) => x.time_ns)),
    [[5, 6], [], [8]],
  );
});

test("means are weighted by calls, in the order of sizes", () => {
  const setups = setupsOf(replay);
  assert.deepEqual(timedCalls(replay), ["malloc", "free"]);
  const classes = cyclesBySize(replay, setups, "malloc");
  assert.deepEqual(
    classes.map((c) => [c.from, c.to]),
    [
      [32, 63],
      [64, 127],
    ],
  );
  assert.deepEqual(classes[1]!.cycles, [35, NaN, NaN]);
  assert.deepEqual(classes[1]!.calls, [200, NaN, NaN]);
});

test("medians leave out what is not known", () => {
  assert.equal(median([3, NaN, 1, 2]), 2);
  assert.equal(median([4, 1]), 4); // As the command line.
  assert.equal(median([4, 1, 3, 2]), 3);
  assert.ok(Number.isNaN(median([])));
});

test("a spread is half the way between the outermost", () => {
  assert.equal(spreadText([100, 120, 90]), "+-15 %");
  assert.equal(spreadText([8_077_899, 6_249_804]), "+-11 %");
  assert.equal(spreadText([5]), "");
  assert.equal(spreadText([0, 0]), "+-0 %");
});

test("the fastest comes first, what failed last and uncounted", () => {
  const timed = (allocator: string, ns: number, error: string | null = null) => ({ ...run(allocator, 1), allocator_ns: ns, error });
  const replay = { runs: [timed("slow", 9), timed("broken", 1, "it crashed"), timed("fast", 2), timed("slow", 7)] };
  assert.deepEqual(byTime(setupsOf(replay)).map((s) => s.name), ["fast", "slow", "broken"]);
  assert.deepEqual(figures(replay.runs.slice(0, 2), (r) => r.allocator_ns), [9]);
});

test("an axis of fragmentation ends where enough is live", () => {
  const moments = [
    { ideal_bytes: 1, fragmentation: 5000 },
    { ideal_bytes: 0, fragmentation: null },
    { ideal_bytes: 1000, fragmentation: 1.5 },
    { ideal_bytes: 300, fragmentation: 2.5 },
  ];
  assert.equal(fragmentationLimit(moments), 2.5);
});
