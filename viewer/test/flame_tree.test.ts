// SPDX-License-Identifier: Apache-2.0
// The layout of a flame graph against a slow and plain one, on made-up trees; and that a frame of a
// million nodes has few rectangles, and covers what a full drawing would.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Cut,
  type FlameTree,
  cutOut,
  layOut,
  markedNodes,
  neighbour,
  nodeAt,
  pathOf,
  rowCount,
  sumOfMatches,
  widestChild,
} from "../src/flame_tree";

function random(seed: number) {
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
}

// A walk: each node is a child of the last one or of one of its callers.
function madeUp(count: number, seed: number, bushy: number): FlameTree {
  const next = random(seed);
  const parent = new Uint32Array(count),
    self = new Float64Array(count),
    depth = new Uint32Array(count);
  for (let i = 1; i < count; ++i) {
    let p = i - 1;
    while (p > 0 && (next() < bushy || depth[p]! > 60)) p = parent[p]!;
    parent[i] = p;
    depth[i] = depth[p]! + 1;
    self[i] = Math.floor(next() ** 6 * 1000);
  }
  const total = self.slice();
  for (let i = count - 1; i > 0; --i) total[parent[i]!]! += total[i]!;
  const symbol = Uint32Array.from({ length: count }, () => Math.floor(next() * 50));
  const kind = new Uint8Array(count);
  kind[0] = 2;
  return layOut(parent, symbol, kind, total);
}

test("children lie side by side inside their parents", () => {
  const tree = madeUp(3000, 1, 0.5);
  const filled = new Float64Array(tree.count);
  for (let i = 1; i < tree.count; ++i) {
    const p = tree.parent[i]!;
    assert.equal(tree.depth[i], tree.depth[p]! + 1);
    assert.equal(tree.start[i], tree.start[p]! + filled[p]!);
    filled[p]! += tree.width[i]!;
    assert.ok(filled[p]! <= tree.width[p]!);
    assert.ok(i < tree.end[i]! && tree.end[i]! <= tree.end[p]!);
  }
  assert.equal(tree.end[0], tree.count);
});

test("rows have all nodes from left to right", () => {
  const tree = madeUp(3000, 2, 0.5);
  assert.equal(tree.rowBegin[rowCount(tree)], tree.count);
  for (let row = 0; row < rowCount(tree); ++row)
    for (let k = tree.rowBegin[row]!; k < tree.rowBegin[row + 1]!; ++k) {
      assert.equal(tree.depth[tree.rows[k]!], row);
      if (k > tree.rowBegin[row]!) assert.ok(tree.start[tree.rows[k - 1]!]! <= tree.start[tree.rows[k]!]!);
    }
});

test("the node below the pointer is found", () => {
  const tree = madeUp(2000, 3, 0.45),
    next = random(9);
  for (let n = 0; n < 3000; ++n) {
    const row = Math.floor(next() * rowCount(tree)),
      amount = next() * tree.width[0]!;
    let slow = -1;
    for (let i = 0; i < tree.count; ++i)
      if (tree.depth[i] === row && tree.start[i]! <= amount && amount < tree.start[i]! + tree.width[i]!) slow = i;
    assert.equal(nodeAt(tree, row, amount), slow);
  }
  assert.equal(nodeAt(tree, -1, 0), -1);
  assert.equal(nodeAt(tree, rowCount(tree), 0), -1);
});

test("the keys find neighbours, children and the root", () => {
  const tree = madeUp(500, 4, 0.5);
  for (let i = 1; i < tree.count; ++i) {
    if (tree.width[i] === 0) continue;
    const right = neighbour(tree, i, 1);
    if (right !== i) assert.equal(neighbour(tree, right, -1), i);
    const child = widestChild(tree, i);
    if (child >= 0) assert.equal(tree.parent[child], i);
    assert.equal(pathOf(tree, i).at(-1), 0);
  }
});

test("matches are summed once", () => {
  // all(10) -> a(10) -> b(6) -> a(6), c(4); a matches.
  const tree = layOut(
    Uint32Array.of(0, 0, 1, 2, 1),
    Uint32Array.of(9, 0, 1, 0, 2),
    Uint8Array.of(2, 0, 0, 0, 0),
    Float64Array.of(10, 10, 6, 6, 4),
  );
  assert.deepEqual(sumOfMatches(tree, Uint8Array.of(1, 0, 0)), { amount: 10, nodes: 1 });
  assert.deepEqual(sumOfMatches(tree, Uint8Array.of(0, 1, 1)), { amount: 10, nodes: 2 });
  assert.deepEqual([...markedNodes(tree, Uint8Array.of(0, 0, 1))], [1, 1, 0, 0, 1]);
});

test("a frame shows every place that a full drawing would", () => {
  const tree = madeUp(20000, 5, 0.5),
    cut = new Cut(5000),
    next = random(3);
  for (let n = 0; n < 40; ++n) {
    const from = next() * tree.width[0]! * 0.9,
      to = from + (tree.width[0]! - from) * next() + 1;
    const firstRow = Math.floor(next() * 5),
      lastRow = firstRow + 12;
    cutOut(tree, { from, to, pixels: 1000, firstRow, lastRow }, cut);
    // The middle of what is drawn for a node alone lies on that node.
    let covered = 0;
    for (let k = 0; k < cut.count; ++k) {
      assert.ok(cut.row[k]! >= firstRow && cut.row[k]! <= lastRow);
      assert.ok(cut.right[k]! > 0 && cut.left[k]! < 1000);
      if (cut.stands[k] !== 1) continue;
      ++covered;
      const node = cut.node[k]!;
      assert.equal(tree.depth[node], cut.row[k]);
      const left = ((tree.start[node]! - from) / (to - from)) * 1000;
      assert.ok(Math.abs(Math.max(-1, left) - cut.left[k]!) < 0.01);
    }
    // And every node that is wide enough is there.
    let wide = 0;
    for (let i = 0; i < tree.count; ++i) {
      const pixels = (tree.width[i]! / (to - from)) * 1000;
      if (
        pixels >= 1 &&
        tree.depth[i]! >= firstRow &&
        tree.depth[i]! <= lastRow &&
        tree.start[i]! < to &&
        tree.start[i]! + tree.width[i]! > from
      )
        ++wide;
    }
    assert.ok(covered >= wide, `${covered} of ${wide}`);
  }
});

test("a run of narrow nodes says that a match is in it", () => {
  // 1,000 children of the same width on 100 pixels.
  const count = 1001,
    parent = new Uint32Array(count),
    width = new Float64Array(count).fill(1);
  width[0] = 1000;
  const symbol = new Uint32Array(count),
    kind = new Uint8Array(count);
  symbol[500] = 1;
  const tree = layOut(parent, symbol, kind, width),
    cut = new Cut(100);
  const marks = markedNodes(tree, Uint8Array.of(0, 1));
  cutOut(tree, { from: 0, to: 1000, pixels: 100, firstRow: 0, lastRow: 1 }, cut, marks);
  assert.equal(cut.count, 2);
  assert.deepEqual([cut.stands[1], cut.marked[1]], [1000, 1]);
  assert.deepEqual([cut.left[1], Math.round(cut.right[1]!)], [0, 100]);
});

test("a million nodes are laid out at once and drawn with few rectangles", () => {
  const began = performance.now();
  const tree = madeUp(1_000_000, 6, 0.55);
  const cut = new Cut(5000),
    next = random(4);
  const laid = performance.now();
  let worst = 0;
  for (let n = 0; n < 60; ++n) {
    const share = 0.9 ** n,
      from = tree.width[0]! * (1 - share) * next();
    const start = performance.now();
    cutOut(tree, { from, to: from + tree.width[0]! * share, pixels: 1600, firstRow: 0, lastRow: 40 }, cut);
    worst = Math.max(worst, performance.now() - start);
    assert.ok(cut.count <= 5000 + 41, `${cut.count} rectangles`);
  }
  // Generous: other things run on this machine too.
  assert.ok(worst < 250, `a frame took ${worst} ms`);
  console.log(
    `made and laid out in ${Math.round(laid - began)} ms; the slowest of 60 frames took ${worst.toFixed(1)} ms`,
  );
});

test("what is not in the order of a walk is refused", () => {
  assert.throws(
    () => layOut(Uint32Array.of(0, 2, 0), new Uint32Array(3), new Uint8Array(3), new Float64Array(3)),
    /order of a walk/,
  );
});
