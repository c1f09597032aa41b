// SPDX-License-Identifier: Apache-2.0
// Modules in sight are told apart by their colours, the heaviest first, and keep them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { moduleColours, palette } from "../src/colors";

const clang = "/usr/lib/llvm-19/bin/clang",
  llvm = "/usr/lib/llvm-19/lib/libLLVM.so.19.1";

test("heavy modules differ as long as there are colours", () => {
  const colours = moduleColours([[clang, 50], [llvm, 90], ["/lib/libc.so.6", 99]], "/usr/bin/clang-19");
  assert.notEqual(colours.get(clang), colours.get(llvm));
  assert.equal(colours.get("/lib/libc.so.6"), -1);
  const many = Array.from({ length: 20 }, (_, i): [string, number] => [`/lib/lib${i}.so`, i]);
  const all = moduleColours(many, "");
  const others = palette("light").modules.length - 1;
  assert.equal(new Set(many.slice(-others).map(([m]) => all.get(m))).size, others);
  assert.ok([...all.values()].every((c) => c >= 1 && c <= others));
});

test("the heaviest keeps the colour of its name", () => {
  const alone = moduleColours([[llvm, 1]], "").get(llvm);
  assert.equal(moduleColours([[clang, 50], [llvm, 90]], "").get(llvm), alone);
  assert.equal(moduleColours([[clang, 50], [llvm, 90]], "/bin/clang").get(clang), 0);
});

test("the palettes are as long as each other", () => {
  assert.equal(palette("light").modules.length, palette("dark").modules.length);
});
