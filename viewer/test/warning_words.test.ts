// SPDX-License-Identifier: Apache-2.0
// Many modules without names are one warning; one alone stays a sentence.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Warning } from "../src/contract";
import { foldedWarnings } from "../src/warning_words";

const names = (text: string): Warning => ({ kind: "names", text });
const cut: Warning = { kind: "cut", text: "The trace is not complete." };
const stripped = names("libz3.so.4 is stripped: only the functions it exports have names.");
const rebuilt = names("program has been rebuilt since the recording; its functions are shown as addresses.");
const gone = names("/opt/x/liba.so cannot be read (no such file); its functions are shown as addresses.");

test("modules without names are folded, other warnings are not", () => {
  const { others, unnamed, modules } = foldedWarnings([stripped, cut, rebuilt, gone]);
  assert.deepEqual([others, unnamed, modules], [[cut, rebuilt], [stripped, gone], ["libz3.so.4", "liba.so"]]);
});

test("one is a sentence of its own", () => {
  assert.deepEqual(foldedWarnings([cut, stripped]), { others: [cut, stripped], unnamed: [], modules: [] });
});
