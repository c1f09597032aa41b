// SPDX-License-Identifier: Apache-2.0
// A link carries the whole state, whatever is in it; junk in a link does no harm.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  changed,
  curveQuestion,
  fromHash,
  fromWords,
  initial,
  isCompared,
  isFiltered,
  leavesOut,
  noFilters,
  notUnderstood,
  question,
  toHash,
} from "../src/state";

const odd = {
  ...initial,
  view: "flame",
  metric: "live",
  from: 123,
  to: 413,
  where: "parse and not (std:: or /^Json::.*Value/) & #=%+",
  hide: ["^a b$", "x&y"],
  under: ["main"],
  thread: ["worker 1"],
  process: "4711",
  module: ["libfoo"],
  type: ["std::string"],
  min_size: 64,
  max_size: 4095,
  full_names: true,
  before_from: 0,
  before_to: 500,
  base: false,
  site: 12,
  root: 0,
  way: "21.14",
  sandwich: 7,
  inverted: true,
  find: "/\u202e/",
  sort: "-live",
};

test("a state survives its address", () => {
  assert.deepEqual(fromHash(toHash(odd)), odd);
  assert.equal(toHash(initial), "#");
  assert.deepEqual(fromHash(""), initial);
});

test("junk in an address is left out", () => {
  const state = fromHash(
    "#view=flame&from=abc&to=999%25&site=-1&nonsense=1&__proto__=1&constructor=2&full_names=maybe&min_size=1e9",
  );
  assert.deepEqual(state, { ...initial, view: "flame" });
});

test("and is told", () => {
  assert.deepEqual(notUnderstood("#view=flame&from=abc&to=999%25&site=-1&nonsense=1&full_names=maybe&process="), [
    ...["from=abc", "to=999%", "site=-1", "nonsense=1", "full_names=maybe"],
  ]);
  assert.deepEqual(notUnderstood(toHash(odd)), []);
});

test("the question has the words of the contract", () => {
  assert.equal(question(odd).get("from"), "12.3%");
  assert.equal(question(odd).get("before_to"), "50%");
  assert.deepEqual(question(odd).getAll("hide"), ["^a b$", "x&y"]);
  assert.equal(question(odd).get("full_names"), "1");
  for (const word of ["view", "site", "root", "find", "sort", "inverted"])
    assert.equal(question(odd).has(word), false, word);
  assert.equal(question(initial).toString(), "metric=peak");
});

test("a curve is of the filters alone, and of hidden frames only where sites are told apart", () => {
  for (const by of ["none", "process", "thread", "phase", "site"]) {
    const asked = curveQuestion(odd, by);
    for (const word of ["from", "to", "metric", "before_to", "full_names"]) assert.equal(asked.has(word), false, word);
    for (const word of ["where", "under", "thread", "process", "module", "type", "min_size", "max_size"])
      assert.deepEqual(asked.getAll(word), question(odd).getAll(word), word);
    assert.equal(asked.has("hide"), by === "site", by);
  }
  assert.equal(leavesOut({ ...initial, hide: ["a"] }), false);
  assert.equal(leavesOut({ ...initial, hide: ["a"], under: ["b"] }), true);
});

test("what the overview points to is a state", () => {
  assert.deepEqual(
    fromWords({ view: "sites", metric: "temporary", hide: ["a", "b"], to: "41.3%", site: 3, inverted: true, x: null }),
    { ...initial, view: "sites", metric: "temporary", hide: ["a", "b"], to: 413, site: 3, inverted: true },
  );
});

test("a new question forgets places in the old answer", () => {
  assert.equal(changed(odd, { where: "other" }).root, null);
  assert.equal(changed(odd, { where: "other" }).sandwich, null);
  assert.equal(changed(odd, { find: "x" }).root, 0);
  assert.equal(changed(odd, { where: "other", root: 5 }).root, 5);
  assert.equal(changed(odd, { view: "sites" }).sort, "");
  // A node of the tree is the same node, whatever is counted of it and when.
  assert.deepEqual([changed(odd, { metric: "calls" }).root, changed(odd, { metric: "calls" }).way], [0, "21.14"]);
  assert.equal(changed(odd, { from: 5 }).root, 0);
  assert.equal(changed(odd, { hide: [] }).root, null);
  assert.equal(changed({ ...odd, row: 3 }, { metric: "calls" }).row, null);
});

test("clearing leaves nothing in force", () => {
  const clear = changed(odd, noFilters);
  assert.equal(isFiltered(clear) || isCompared(clear) || clear.from !== null || clear.to !== null, false);
  assert.equal(clear.view, "flame");
});
