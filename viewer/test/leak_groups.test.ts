// SPDX-License-Identifier: Apache-2.0
// Leaks by site are the sums of the stacks that leak there, and none is lost.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { AnswerTable } from "../src/contract";
import { bySite, byStack } from "../src/leak_groups";

const columns = ["bytes", "share", "blocks", "when", "first_ns", "last_ns", "frame", "stack"].map((key) => ({
  key,
  title: key,
  kind: "text" as const,
}));
const row = (bytes: number, blocks: number, when: string, first: number, last: number, name: string, line: number) => {
  const frame = { name, full: `${name}()`, file: "a.cc", line, module: "a" };
  return { cells: [bytes, { part: bytes, whole: 1000 }, blocks, when, first, last, frame, [frame]] };
};
const table: AnswerTable = {
  key: "leaks",
  title: "",
  columns,
  rows: [
    row(100, 4, "once", 7, 9, "f", 3),
    row(300, 1, "again 2/10", 2, 4, "f", 3),
    row(500, 1, "once", 5, 5, "f", 4),
    row(20, 2, "again 3/10", 6, 8, "f", 3),
    row(80, 2, "growing 9/10", 1, 9, "g", 3),
  ],
};

test("what is not listed is in the sums all the same", () => {
  const keys = ["bytes", "share", "blocks", "when", "first_ns", "last_ns", "stacks", "frame"];
  const more = (bytes: number, stacks: number, name: string, line: number) => {
    const { cells } = row(bytes, stacks, "once", 3, 12, name, line);
    return { cells: [...cells.slice(0, 6), stacks, cells[6]!] };
  };
  const rest: AnswerTable = {
    key: "rest",
    title: "",
    columns: keys.map((key) => ({ key, title: key, kind: "text" as const })),
    rows: [more(50, 10, "f", 3), more(7, 2, "h", 9)],
  };
  const { table: made, rowsOf } = bySite(table, rest);
  const shown = made.rows.map(({ cells }) => [cells[0], cells[2], cells[5], cells.at(-1)]);
  assert.deepEqual(shown, [
    [80, 2, 9, 1],
    [500, 1, 5, 1],
    [470, 17, 12, 13],
    [7, 2, 12, 2],
  ]);
  assert.deepEqual(rowsOf, [[4], [2], [0, 1, 3], []]);
});

test("stacks of one place are one row", () => {
  const { table: made, rowsOf } = bySite(table);
  const shown = made.rows.map(({ cells }) => cells.filter((_, i) => i !== 6 && i !== 7));
  assert.deepEqual(shown, [
    [80, { part: 80, whole: 1000 }, 2, "growing 9/10", 1, 9, 1],
    [500, { part: 500, whole: 1000 }, 1, "once", 5, 5, 1],
    [420, { part: 420, whole: 1000 }, 7, "again 3/10", 2, 9, 3],
  ]);
  assert.deepEqual(rowsOf, [[4], [2], [0, 1, 3]]);
  assert.equal(made.columns.at(-1)!.key, "stacks");
});

test("by stack they are as they came", () => {
  assert.equal(byStack(table).table, table);
  assert.deepEqual(byStack(table).rowsOf, [[0], [1], [2], [3], [4]]);
});

test("places that differ in anything are rows of their own", () => {
  const of = (frame: object, main = true) => ({ ...row(1, 1, "once", 1, 1, "f", 3), main, frame });
  const rows = [of({}), of({ module: "b" }), of({ full: "f(int)" }), of({ file: "b.cc" }), of({}, false)].map(
    ({ frame, ...made }) => ({ ...made, cells: made.cells.map((cell, i) => (i === 6 ? { ...(cell as object), ...frame } : cell)) }),
  );
  assert.deepEqual(bySite({ ...table, rows }).rowsOf.flat().sort(), [0, 1, 2, 3, 4]);
  assert.equal(bySite({ ...table, rows }).rowsOf.length, 5);
});

test("what grows is worse than what comes again, however often", () => {
  for (const words of [["again 9/10", "growing 2/10", "once"], ["once", "growing 2/10", "again 9/10"]]) {
    const rows = words.map((when) => row(1, 1, when, 1, 1, "f", 3));
    assert.equal(bySite({ ...table, rows }).table.rows[0]!.cells[3], "growing 2/10");
  }
});
