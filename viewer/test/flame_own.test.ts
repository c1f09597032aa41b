// SPDX-License-Identifier: Apache-2.0
// From the allocation outwards, what allocates holds everything itself, and its callers nothing.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flame } from "../src/contract";
import { ownAmounts, sumsBySymbol } from "../src/flame_own";

const flame = {
  parent: Uint32Array.of(0, 0, 1, 0, 3),
  kind: Uint8Array.of(2, 0, 0, 0, 0),
  symbol: Uint32Array.of(0, 1, 0, 1, 2),
  symbols: { name: ["leaf", "middle", "other"] },
  total_of: Float64Array.of(10, 7, 7, 3, 2),
  self_of: Float64Array.of(0, 0, 7, 1, 2),
} as unknown as Flame;

test("what allocates holds it", () => {
  assert.deepEqual([...ownAmounts(flame, true)], [0, 7, 0, 3, 0]);
  assert.equal(ownAmounts(flame, false), flame.self_of);
  assert.deepEqual([...ownAmounts(flame, true, 1)], [10, 0, 0, 0, 0]);
  assert.deepEqual([...ownAmounts(flame, true, 2)], [0, 0, 0, 0, 0]);
});

test("a function is the sum of its nodes, without all and others", () => {
  assert.deepEqual([...sumsBySymbol(flame, flame.total_of)], [7, 10, 2]);
  const folded = { ...flame, kind: Uint8Array.of(2, 0, 0, 0, 1) };
  assert.deepEqual([...sumsBySymbol(folded, flame.total_of)], [7, 10, 0]);
});
