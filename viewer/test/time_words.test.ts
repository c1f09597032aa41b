// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Trace } from "../src/contract";
import { initial } from "../src/state";
import { leftByEnded } from "../src/time_words";

const trace = {
  duration_ns: 1000,
  cuts_ns: [],
  processes: [
    { pid: 1, end_ns: 400, live_bytes: 2048 },
    { pid: 2, end_ns: 500, live_bytes: 0 },
    { pid: 3, end_ns: 1000, live_bytes: 4096 },
  ],
} as unknown as Trace;

test("what ended processes have left is told of an instant, and not what the last one leaves", () => {
  const live = { ...initial, metric: "live" };
  assert.equal(leftByEnded(trace, { ...live, to: 300 }), "");
  assert.match(leftByEnded(trace, { ...live, to: 600 }), /; 2\.0 KiB of it were left by processes/);
  assert.match(leftByEnded(trace, live), /2\.0 KiB of it/);
  assert.match(leftByEnded(trace, { ...live, where: ["x"], to: 600 }), /some of it may have been left/);
  assert.equal(leftByEnded(trace, { ...live, process: "3", to: 600 }), "");
  assert.equal(leftByEnded(trace, { ...initial, metric: "allocated" }), "");
});
