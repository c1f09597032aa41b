// SPDX-License-Identifier: Apache-2.0
// The grey curve behind a site's own is made as that is: no peak is lost, and its end is the end. Each is
// drawn from edge to edge and to its own height.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Sparkline, highestOf } from "../src/widgets/sparkline";

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

// The paths of the drawing, by their class.
function drawn(values: Float64Array, all: Float64Array | null): Record<string, string> {
  const paths = [Sparkline({ values, all, width: 22, height: 12 }).props.children].flat().filter(Boolean) as any[];
  return Object.fromEntries(paths.map(({ props }) => [props.class, props.d]));
}

test("a curve goes from edge to edge, and its highest to the top", () => {
  assert.deepEqual(drawn(of(0, 8, 4), null), { "spark-own": "M1.0 11.0L11.0 1.0L21.0 6.0" });
  assert.deepEqual(drawn(of(2, 1), of(0, 50)), {
    "spark-all": "M1.0 11.0L21.0 1.0L21 12L1 12Z",
    "spark-own": "M1.0 1.0L21.0 6.0",
  });
});

test("nothing is no line", () => {
  assert.deepEqual(drawn(of(0, 0, 0), null), { "spark-own": "" });
  assert.deepEqual(drawn(of(5), of()), { "spark-all": "", "spark-own": "" });
});
