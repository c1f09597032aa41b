// SPDX-License-Identifier: Apache-2.0
// A flame graph of a million nodes, laid out once and then cut out for each frame.
//
// Nodes are numbered in the order of a walk, so a node's subtree is the numbers from itself to end[node],
// and the places where nodes begin never decrease. A frame therefore walks the numbers upwards, leaves out
// a subtree in one step when it is outside the window, below the last visible row or too narrow to see,
// and stops at the first node to the right of the window. Neighbours in a row that are too narrow are
// drawn as one. If there would still be more rectangles than a frame can paint, narrow means more.

import { kOthers } from "./contract";

export interface FlameTree {
  count: number;
  parent: Uint32Array;
  symbol: Uint32Array;
  kind: Uint8Array;
  width: Float64Array; // The amount that a node is as wide as.
  start: Float64Array; // Where it begins, in amounts from the left.
  end: Uint32Array; // The first node behind its subtree.
  depth: Uint16Array;
  rows: Uint32Array; // All nodes, row by row, from left to right.
  rowBegin: Uint32Array; // Where each row begins in `rows`; one more at the end.
}

export function layOut(parent: Uint32Array, symbol: Uint32Array, kind: Uint8Array, width: Float64Array): FlameTree {
  const count = parent.length;
  const start = new Float64Array(count),
    filled = new Float64Array(count);
  const end = new Uint32Array(count),
    depth = new Uint16Array(count);
  let deepest = 0;
  for (let i = 0; i < count; ++i) {
    const p = parent[i]!;
    if (i > 0) {
      if (p >= i) throw new Error("The server's flame graph is not in the order of a walk.");
      depth[i] = Math.min(depth[p]! + 1, 65534);
      start[i] = filled[p]!;
      filled[p]! += width[i]!;
    }
    filled[i] = start[i]!;
    if (depth[i]! > deepest) deepest = depth[i]!;
    end[i] = i + 1;
  }
  for (let i = count - 1; i > 0; --i) if (end[i]! > end[parent[i]!]!) end[parent[i]!] = end[i]!;

  const rowBegin = new Uint32Array(deepest + 2),
    rows = new Uint32Array(count);
  for (let i = 0; i < count; ++i) ++rowBegin[depth[i]! + 1]!;
  for (let d = 0; d <= deepest; ++d) rowBegin[d + 1]! += rowBegin[d]!;
  const at = rowBegin.slice();
  for (let i = 0; i < count; ++i) rows[at[depth[i]!]!++] = i;
  return { count, parent, symbol, kind, width, start, end, depth, rows, rowBegin };
}

export function rowCount(tree: FlameTree): number {
  return tree.rowBegin.length - 1;
}

// The rectangles of one frame, in pixels; reused from frame to frame.
export class Cut {
  count = 0;
  walked = 0;
  readonly node: Uint32Array;
  readonly stands: Uint32Array; // For how many nodes of its row: 1, or a run of narrow ones.
  readonly left: Float32Array;
  readonly right: Float32Array;
  readonly row: Uint16Array;
  readonly marked: Uint8Array; // A run in which, or below which, there is a mark.

  constructor(readonly most: number) {
    const room = most + 4096;
    this.node = new Uint32Array(room);
    this.stands = new Uint32Array(room);
    this.left = new Float32Array(room);
    this.right = new Float32Array(room);
    this.row = new Uint16Array(room);
    this.marked = new Uint8Array(room);
  }
}

export interface Window {
  from: number; // Amounts.
  to: number;
  pixels: number;
  firstRow: number;
  lastRow: number;
}

// `marks` are of nodes that have a mark on them or below them.
export function cutOut(tree: FlameTree, window: Window, cut: Cut, marks: Uint8Array | null = null, narrow = 1): void {
  while (!fill(tree, window, cut, marks, narrow)) narrow *= 2;
}

function fill(
  tree: FlameTree,
  { from, to, pixels, firstRow, lastRow }: Window,
  cut: Cut,
  marks: Uint8Array | null,
  narrow: number,
): boolean {
  const { start, width, end, depth, count } = tree;
  const scale = pixels / (to - from);
  const visible = lastRow - firstRow + 1;
  const runLeft = new Float32Array(visible),
    runRight = new Float32Array(visible);
  const runNode = new Uint32Array(visible),
    runStands = new Uint32Array(visible),
    runMarked = new Uint8Array(visible);
  let n = 0,
    walked = 0;
  const flush = (r: number) => {
    cut.node[n] = runNode[r]!;
    cut.stands[n] = runStands[r]!;
    cut.left[n] = runLeft[r]!;
    cut.right[n] = runRight[r]!;
    cut.marked[n] = runMarked[r]!;
    cut.row[n++] = r + firstRow;
    runStands[r] = 0;
    runMarked[r] = 0;
  };
  let i = 0;
  while (i < count) {
    const begins = start[i]!;
    if (begins >= to) break;
    ++walked;
    const wide = width[i]!;
    const row = depth[i]!;
    if (begins + wide <= from || row > lastRow || wide <= 0) {
      i = end[i]!;
      continue;
    }
    const w = wide * scale;
    const r = row - firstRow;
    if (w < narrow) {
      if (r >= 0) {
        const x = (begins - from) * scale;
        if (runStands[r]! > 0 && x - runRight[r]! < 1) {
          runRight[r] = x + w;
          ++runStands[r]!;
        } else {
          if (runStands[r]! > 0) flush(r);
          runLeft[r] = x;
          runRight[r] = x + w;
          runNode[r] = i;
          runStands[r] = 1;
        }
        if (marks && marks[i]) runMarked[r] = 1;
        if (n > cut.most) return false;
      }
      i = end[i]!;
      continue;
    }
    if (r >= 0) {
      if (runStands[r]! > 0) flush(r);
      const x = (begins - from) * scale;
      cut.node[n] = i;
      cut.stands[n] = 1;
      cut.left[n] = x < -1 ? -1 : x;
      cut.right[n] = x + w > pixels + 1 ? pixels + 1 : x + w;
      cut.marked[n] = 0;
      cut.row[n++] = row;
      if (n > cut.most) return false;
    }
    i = row === lastRow ? end[i]! : i + 1;
  }
  for (let r = 0; r < visible; ++r) if (runStands[r]! > 0) flush(r);
  cut.count = n;
  cut.walked = walked;
  return true;
}

// The node that covers an amount in a row, or -1.
export function nodeAt(tree: FlameTree, row: number, amount: number): number {
  if (row < 0 || row >= rowCount(tree)) return -1;
  const place = lastAtOrBefore(tree, row, amount);
  if (place < 0) return -1;
  const node = tree.rows[place]!;
  return amount < tree.start[node]! + tree.width[node]! ? node : -1;
}

function lastAtOrBefore(tree: FlameTree, row: number, amount: number): number {
  const first = tree.rowBegin[row]!;
  let low = first,
    high = tree.rowBegin[row + 1]!;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tree.start[tree.rows[middle]!]! <= amount) low = middle + 1;
    else high = middle;
  }
  return low - 1 >= first ? low - 1 : -1;
}

// The next node of the same row that has a width, to the left (-1) or right (+1).
export function neighbour(tree: FlameTree, node: number, step: -1 | 1): number {
  const row = tree.depth[node]!;
  let place = lastAtOrBefore(tree, row, tree.start[node]!);
  while (place > tree.rowBegin[row]! && tree.rows[place]! > node) --place;
  for (place += step; place >= tree.rowBegin[row]! && place < tree.rowBegin[row + 1]!; place += step)
    if (tree.width[tree.rows[place]!]! > 0) return tree.rows[place]!;
  return node;
}

export function widestChild(tree: FlameTree, node: number): number {
  let best = -1;
  for (let i = node + 1; i < tree.end[node]!; i = tree.end[i]!)
    if (best < 0 || tree.width[i]! > tree.width[best]!) best = i;
  return best;
}

export function hasOthers(tree: FlameTree, node: number): boolean {
  for (let i = node; i < tree.end[node]!; ++i) if (tree.kind[i] === kOthers) return true;
  return false;
}

// What all nodes of matching functions hold together; what is below a match counts once.
export function sumOfMatches(tree: FlameTree, matches: Uint8Array): { amount: number; nodes: number } {
  let amount = 0,
    nodes = 0;
  for (let i = 0; i < tree.count;) {
    if (tree.kind[i] === 0 && matches[tree.symbol[i]!]) {
      amount += tree.width[i]!;
      ++nodes;
      i = tree.end[i]!;
    } else {
      ++i;
    }
  }
  return { amount, nodes };
}

// Which nodes match or have a match below them.
export function markedNodes(tree: FlameTree, matches: Uint8Array): Uint8Array {
  const marks = new Uint8Array(tree.count);
  for (let i = tree.count - 1; i >= 0; --i) {
    if (tree.kind[i] === 0 && matches[tree.symbol[i]!]) marks[i] = 1;
    if (marks[i]) marks[tree.parent[i]!] = 1;
  }
  return marks;
}

// From a node to the root.
export function pathOf(tree: FlameTree, node: number): number[] {
  const path = [node];
  while (node > 0) path.push((node = tree.parent[node]!));
  return path;
}
