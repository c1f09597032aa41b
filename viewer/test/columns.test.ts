// SPDX-License-Identifier: Apache-2.0
// Columns come back as they were written, and a damaged answer is an error in words, never wrong numbers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeColumns, encodeColumns } from "../src/columns";

const some = () =>
  encodeColumns(
    { metric: "peak", odd: "\u00e4" },
    {
      total: Float64Array.of(1, 2 ** 53, 0.5),
      symbol: Uint32Array.of(7, 4294967295, 9),
      change: Int32Array.of(-5, 6),
      kind: Uint8Array.of(0, 1, 2, 1, 0),
    },
  );

test("what was written is read", () => {
  const { head, column, numbers, indices } = decodeColumns(some());
  assert.equal(head.metric, "peak");
  assert.equal(head.odd, "\u00e4");
  assert.deepEqual([...numbers("total")], [1, 2 ** 53, 0.5]);
  assert.deepEqual([...indices("symbol")], [7, 4294967295, 9]);
  assert.deepEqual([...column("change")!], [-5, 6]);
  assert.deepEqual([...column("kind")!], [0, 1, 2, 1, 0]);
  assert.equal(column("before"), null);
  assert.equal(numbers("before").length, 0);
});

test("columns are not copied", () => {
  const buffer = some();
  assert.equal(decodeColumns(buffer).numbers("total").buffer, buffer);
});

test("every shorter answer is refused", () => {
  const whole = some();
  // The last column ends in padding, which nobody misses.
  for (let length = 0; length < whole.byteLength - 3; ++length)
    assert.throws(() => decodeColumns(whole.slice(0, length)), /cannot be read/, `at ${length} bytes`);
});

test("an unknown kind of column is refused", () => {
  const text = new TextEncoder().encode(
    JSON.stringify({ columns: [{ name: "x", type: "f16", length: 1 }] }).padEnd(64),
  );
  const bytes = new Uint8Array(8 + 64 + 8);
  bytes.set([0x4d, 0x53, 0x43, 0x31, 64]);
  bytes.set(text, 8);
  assert.throws(() => decodeColumns(bytes.buffer), /column x/);
});
