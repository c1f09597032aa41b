// SPDX-License-Identifier: Apache-2.0
// No option of the command line is named on the page, unless with its whole command.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pageError, pageNote } from "../src/command_words";

test("errors are about fields", () => {
  for (const [said, wanted] of [
    ["min-size 2000 is more than --max-size 1000", "The size from is more than the size to."],
    ["--min-size 2000 is more than --max-size 1000", "The size from is more than the size to."],
    ["where '(': a word is missing", "stack text '(': a word is missing"],
    ["--where '(': a word is missing", "stack text '(': a word is missing"],
    ["from the beginning", "from the beginning"],
    [
      "--view leaks is not about single blocks; --min-size and --max-size have no meaning there",
      "this view is not about single blocks; the size from and the size to have no meaning there",
    ],
  ])
    assert.equal(pageError(said!), wanted);
});

test("notes name whole commands", () => {
  assert.equal(
    pageNote("Ignored: 71.7 KiB in 2 blocks; --show-suppressed lists them."),
    "Ignored: 71.7 KiB in 2 blocks; `malloscope leaks TRACE --show-suppressed` lists them.",
  );
  assert.equal(pageNote("--stacks shows how the program got there."), null);
  assert.equal(pageNote("again 3/10: it leaked"), "again 3/10: it leaked");
});
