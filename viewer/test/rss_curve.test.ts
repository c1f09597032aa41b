// SPDX-License-Identifier: Apache-2.0
// The resident size does not press the heap flat, unless somebody wants it there.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Timeline } from "../src/contract";
import { drawsRss, rssBetweenSamples } from "../src/rss_curve";
import { fromHash, initial, toHash } from "../src/state";

const of = (live: number, rss: number) =>
  ({ live_max: Float64Array.of(0, live), rss: Float64Array.of(rss, 1) }) as unknown as Timeline;

test("the strip is the heap's where RSS dwarfs it", () => {
  assert.equal(drawsRss({ rss: "" }, of(4, 100), true), false);
  assert.equal(drawsRss({ rss: "" }, of(6, 100), true), true);
  assert.equal(drawsRss({ rss: "" }, of(4, 100), false), true);
  assert.equal(drawsRss({ rss: "1" }, of(4, 100), true), true);
  for (const strip of [true, false]) assert.equal(drawsRss({ rss: "0" }, of(60, 100), strip), false);
});

test("which curves are drawn is in the address", () => {
  const state = { ...initial, rss: "0", vm: true };
  assert.deepEqual(fromHash(toHash(state)), state);
});

test("what lies between two samples is told", () => {
  const rss = Float64Array.of(1 << 20, 3 << 20);
  assert.match(rssBetweenSamples(5 << 20, rss), /up to 5.0 MiB$/);
  assert.equal(rssBetweenSamples(3 << 20, rss), "");
  assert.equal(rssBetweenSamples(undefined, rss), "");
  assert.equal(rssBetweenSamples(5 << 20, new Float64Array()), "");
});
