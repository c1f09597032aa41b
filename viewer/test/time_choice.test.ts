// SPDX-License-Identifier: Apache-2.0
// An instant sets the metric and gives it back; a zoom survives the address; and words say which time
// numbers are of.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Trace } from "../src/contract";
import { peakTime } from "../src/page";
import type { Source } from "../src/source";
import { changed, initial } from "../src/state";
import { chosenInstant, chosenRange, wholeTime, windowOf, zoomOf } from "../src/time_choice";
import { comparedWords, endWords, isInstant, metricColumn, metricTitle, peakWords } from "../src/time_words";

const trace = {
  duration_ns: 1e9,
  cuts_ns: Array.from({ length: 1001 }, (_, i) => i * 1e6),
} as unknown as Trace;
const server = { refusal: () => null } as unknown as Source;
const file = {
  refusal: (word: string, value: string) => (word === "range" && value === "peak" ? "not here." : null),
} as unknown as Source;

test("after an instant comes the metric that was", () => {
  const start = { ...initial, metric: "allocations" };
  const instant = changed(start, chosenInstant(start, 300));
  assert.deepEqual([instant.metric, instant.from, instant.to], ["live", null, 300]);
  const another = changed(instant, chosenInstant(instant, 400));
  assert.equal(changed(another, wholeTime(another)).metric, "allocations");
  const range = changed(another, chosenRange(another, server, 100, 200));
  assert.deepEqual([range.metric, range.metric_was, range.from, range.to], ["allocations", "", 100, 200]);
  const byHand = changed(instant, { metric: "live" });
  assert.equal(changed(byHand, wholeTime(byHand)).metric, "live");
});

test("a file has no peak of a range", () => {
  const range = changed(initial, chosenRange(initial, file, 100, 200));
  assert.deepEqual([range.metric, range.metric_was], ["allocated", "peak"]);
  const moved = changed(range, chosenRange(range, file, 100, 300));
  assert.deepEqual([moved.metric, moved.metric_was, moved.to], ["allocated", "peak", 300]);
  assert.equal(changed(moved, wholeTime(moved)).metric, "peak");
  assert.equal(chosenRange(initial, file, 0, 1000).metric, "peak");
});

test("an instant is the newer one of what was compared", () => {
  const ranges = { ...initial, metric: "allocated", before_from: 0, before_to: 500, from: 500, to: 1000 };
  assert.equal(comparedWords(trace, ranges), "Since before (0 us to 500 ms), after (500 ms to 1 s) has:");
  const instant = changed(ranges, chosenInstant(ranges, 700));
  assert.equal(comparedWords(trace, instant), "Since before (at 500 ms), after (at 700 ms) has:");
  const again = changed(instant, chosenRange(instant, server, 600, 800));
  assert.equal(comparedWords(trace, again), "Since before (0 us to 500 ms), after (600 ms to 800 ms) has:");
});

test("a zoom is in the address", () => {
  assert.equal(zoomOf(trace, [125e6, 400e6]), "12.5-40");
  assert.deepEqual(windowOf(trace, "12.5-40"), [125e6, 400e6]);
  assert.equal(zoomOf(trace, null), "");
  for (const junk of ["", "40-12", "a-b", "0-100", "0-1e9", "-5-10"]) assert.equal(windowOf(trace, junk), null, junk);
});

test("words say when", () => {
  const at = { metric: "live", from: null, to: 328 };
  assert.equal(metricTitle(trace, at), "Live at 328 ms");
  assert.equal(metricColumn(trace, at), "at 328 ms");
  assert.equal(isInstant(at), true);
  assert.equal(metricTitle(trace, initial), "Live at the peak");
  assert.equal(metricTitle(trace, { metric: "peak", from: 100, to: 200 }), "Live at the peak of 100 ms to 200 ms");
  assert.equal(metricTitle(trace, { metric: "allocated", from: 100, to: 200 }), "Bytes allocated from 100 ms to 200 ms");
  assert.equal(
    metricTitle(trace, { metric: "leaked", from: null, to: null }),
    "Leaked (allocated in the recording and still live at its end)",
  );
  assert.equal(endWords(trace, { to: null }), "at the end");
});

test("the peak of a part of the time is headed as such", () => {
  for (const [from, to, words] of [
    [null, null, "at peak"],
    [0, 1000, "at peak"],
    [null, 328, "at peak until 328 ms"],
    [100, 328, "at peak of the range"],
    [100, null, "at peak of the range"],
  ] as const) {
    assert.equal(peakWords(trace, { from, to }), words);
    assert.equal(metricColumn(trace, { metric: "peak", from, to }), words);
  }
});

test("the peak of all is marked, but not for that of one of several processes", () => {
  const of = (processes: number, process: string) =>
    peakTime({ ...trace, peak_time_ns: 7, processes: Array(processes).fill({ pid: 1 }) }, { process });
  assert.deepEqual([of(2, ""), of(2, "1"), of(1, "1"), of(1, "")], [7, null, 7, 7]);
  assert.equal(peakTime({ ...trace, peak_time_ns: undefined, processes: [] }, initial), null);
});
