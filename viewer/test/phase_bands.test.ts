// SPDX-License-Identifier: Apache-2.0
// Phases above a chart: none is lost, and what cannot be told apart is one band that says so.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Phase } from "../src/contract";
import { bandText, bandsOf, phaseLanes, saidOf } from "../src/phase_bands";
import { type Taken, placeOf } from "../src/widgets/time_chart_marks";

const phase = (name: string, from_ns: number, to_ns: number, times = 1): Phase => ({ name, pid: 1, from_ns, to_ns, times });
const same = (ns: number) => ns;

test("what lies inside another is below it", () => {
  const lanes = phaseLanes([phase("in", 10, 20), phase("out", 0, 100), phase("next", 100, 120)], 3);
  assert.deepEqual(
    lanes.map((lane) => lane.map((p) => p.name)),
    [["out", "next"], ["in"]],
  );
  const deep = phaseLanes(Array.from({ length: 9 }, (_, i) => phase(`p${i}`, i, 100)), 3);
  assert.equal(deep.length, 3);
  assert.equal(deep.flat().length, 9);
  assert.deepEqual(phaseLanes([], 3), []);
  const [above, below] = phaseLanes([phase("short", 0, 10), phase("long", 0, 100)], 3);
  assert.deepEqual([above![0]!.name, below![0]!.name], ["long", "short"]);
});

test("bands", () => {
  const texts = (...phases: Phase[]) => bandsOf(phases, same, 3).map(bandText);
  assert.deepEqual(texts(phase("load", 0, 50), phase("run", 50, 90)), ["load", "run"]);
  assert.deepEqual(texts(phase("event", 0, 10), phase("event", 11, 20), phase("event", 40, 50, 5)), ["event × 2", "event × 5"]);
  assert.deepEqual(texts(phase("a", 0, 1), phase("b", 1, 2), phase("a", 2, 3)), ["a, b"]);
  assert.deepEqual(texts(phase("load", 0, 50), phase("b", 50, 51)), ["load", "b"]);
  assert.deepEqual(texts(phase("a", 0, 1), phase("load", 1, 50)), ["a", "load"]);
  // What is wide is told apart from a band of many, also if that begins with its name.
  assert.deepEqual(texts(phase("a", 0, 1), phase("b", 1, 2), phase("a", 2, 50)), ["a, b", "a"]);
  assert.deepEqual(texts(..."abcde".split("").map((n, i) => phase(n, i, i + 1))), ["a, b, c and 2 more"]);
  assert.deepEqual(texts(phase("event", 0, 10), phase("event", 13, 20)), ["event", "event"]);
  assert.deepEqual(texts(phase("event", 0, 10, 2000), phase("event", 11, 20, 1000)), ["event × 3,000"]);
});

test("a band reaches as far as what is in it", () => {
  const ends = (...phases: Phase[]) => bandsOf(phases, same, 3).map(({ left, right }) => [left, right]);
  assert.deepEqual(ends(phase("event", 0, 10), phase("event", 11, 20)), [[0, 20]]);
  assert.deepEqual(ends(phase("event", 0, 30), phase("event", 5, 10)), [[0, 30]]);
  assert.deepEqual(ends(phase("odd", 9, 5)), [[9, 9]]);
});

test("three are named, of more how many", () => {
  const said = (names: string) => bandText({ names: names.split(""), times: 1, left: 0, right: 1 });
  assert.deepEqual(["a", "ab", "abc", "abcd"].map(said), ["a", "a, b", "a, b, c", "a, b, c and 1 more"]);
});

test("what is said of a moment", () => {
  const phases = [phase("load", 0, 50), phase("run", 50, 90)],
    marks = [{ name: "here", pid: 1, time_ns: 60, times: 1 }];
  assert.equal(saidOf(phases, marks, 10, 20), "phase load");
  assert.equal(saidOf(phases, marks, 40, 70), "phases load, run; mark here");
  assert.equal(saidOf(phases, marks, 95, 99), "");
  // A slice has its begin, and not its end.
  assert.equal(saidOf(phases, marks, 40, 50), "phase load");
  assert.equal(saidOf([phase("dot", 20, 20)], [], 20, 30), "phase dot");
  assert.deepEqual([saidOf([], marks, 60, 70), saidOf([], marks, 50, 60)], ["mark here", ""]);
  assert.equal(saidOf("abcde".split("").map((n) => phase(n, 0, 9)), [], 1, 2), "phases a, b, c and 2 more");
});

test("names of marks stand beside their lines, and not on each other", () => {
  const taken: Taken = [];
  assert.equal(placeOf(100, 40, [0, 500], taken, true), 100);
  assert.equal(placeOf(110, 40, [0, 500], taken, true), 70 - 70 + 140); // Left and right are taken: behind.
  assert.equal(placeOf(60, 30, [0, 500], taken, false), 60);
  assert.equal(placeOf(62, 30, [0, 500], taken, false), null);
  assert.equal(placeOf(490, 40, [0, 500], taken, false), 450); // At the edge, to the left.
});
