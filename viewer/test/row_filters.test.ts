// SPDX-License-Identifier: Apache-2.0
// Rows of tables are the filters that they look like.

import assert from "node:assert/strict";
import { test } from "node:test";
import { filterOf, isInForce, sizesOf, without } from "../src/row_filters";
import { initial } from "../src/state";

test("a class of sizes is from a power of two to before the next", () => {
  assert.deepEqual(sizesOf("64 - 127 B"), [64, 127]);
  assert.deepEqual(sizesOf("1 - 2 KiB"), [1024, 2047]);
  assert.deepEqual(sizesOf("512 - 1023 B"), [512, 1023]);
  assert.deepEqual(sizesOf("512 KiB - 1 MiB"), [2 ** 19, 2 ** 20 - 1]);
  assert.deepEqual(sizesOf("1 B"), [1, 1]);
  assert.deepEqual(sizesOf("0 B"), [0, 0]);
  assert.equal(sizesOf("others"), null);
});

test("a row is a filter, if it is about something", () => {
  assert.deepEqual(filterOf("thread", "leak (12125)"), { thread: ["12125"] });
  assert.equal(filterOf("thread", "no thread"), null);
  assert.deepEqual(filterOf("size", "64 - 127 B"), { min_size: 64, max_size: 127 });
  assert.deepEqual(filterOf("type", "int[]"), { type: ["^int\\[\\]$"] });
  assert.equal(filterOf("type", "(unknown)"), null);
  assert.deepEqual(filterOf("module", "/usr/lib/libstdc++.so.6"), { module: ["libstdc\\+\\+\\.so\\.6"] });
  assert.equal(filterOf("function", "main"), null);
});

test("chosen again it is let go", () => {
  const filter = filterOf("size", "64 - 127 B")!;
  assert.equal(isInForce(initial, filter), false);
  assert.equal(isInForce({ ...initial, ...filter }, filter), true);
  assert.deepEqual({ ...initial, ...filter, ...without(filter) }, initial);
});
