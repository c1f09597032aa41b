// SPDX-License-Identifier: Apache-2.0
// A name that is offered can be chosen, whatever signs are in it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { patternsOf, typedText } from "../src/typed_list";

const known = ["libstdc++.so.6", "int[]", "std::pair<int, int>"];

test("what is known means itself", () => {
  for (const value of known) {
    const [pattern, ...more] = patternsOf(value, known);
    assert.deepEqual(more, []);
    assert.equal(new RegExp(pattern!).test(value), true);
    assert.equal(typedText([pattern!]), value);
  }
  assert.deepEqual(patternsOf("int[], libc", known), ["int\\[\\]", "libc"]);
});

test("the rest are expressions, if they are", () => {
  assert.deepEqual(patternsOf("lib.*, ^std::"), ["lib.*", "^std::"]);
  assert.equal(typedText(["lib.*", "^std::"]), "lib.*, ^std::");
  assert.deepEqual(patternsOf("stdc++"), ["stdc\\+\\+"]);
  assert.deepEqual(patternsOf(" , "), []);
});
