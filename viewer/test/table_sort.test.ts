// SPDX-License-Identifier: Apache-2.0
// The first click on a heading lists what people want first: the highest number, or words from A.

import assert from "node:assert/strict";
import { test } from "node:test";
import { nextSort } from "../src/widgets/virtual_table";

test("numbers from the highest, words from A to Z", () => {
  const numbers = { key: "bytes", sort: (r: number) => r },
    words = { key: "site", sort: (r: number) => `f${r}` };
  assert.deepEqual(["", "-bytes", "bytes"].map((sort) => nextSort(numbers, sort)), ["-bytes", "bytes", ""]);
  assert.deepEqual(["", "site", "-site"].map((sort) => nextSort(words, sort)), ["site", "-site", ""]);
  assert.equal(nextSort(words, "-bytes"), "site");
});
