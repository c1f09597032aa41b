// SPDX-License-Identifier: Apache-2.0
// The grey curve behind a site's own is made as that is: no peak is lost, and its end is the end.

import assert from "node:assert/strict";
import { test } from "node:test";
import { highestOf } from "../src/widgets/sparkline";

const of = (...values: number[]) => Float64Array.from(values);

test("each part has its highest value", () => {
  assert.deepEqual(highestOf(2, of(1, 9, 2, 3)), of(9, 3));
  assert.deepEqual(highestOf(3, of(1, 2, 3, 4, 5, 6, 7)), of(2, 4, 7));
  assert.deepEqual(highestOf(4, of(5, 6)), of(5, 5, 6, 6));
  assert.deepEqual(highestOf(2, of()), of(0, 0));
});

test("what an ended process leaves is not lost", () => {
  assert.deepEqual(highestOf(2, of(8, 9, 0, 0), of(7, 8, 8, 8)), of(9, 8));
});
