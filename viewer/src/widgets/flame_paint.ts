// SPDX-License-Identifier: Apache-2.0
// Paints one frame of a flame graph onto a canvas. Rectangles of one colour are painted one after the
// other, on whole pixels; names only where there is room, and no more than can be read.

import { type Cut, type FlameTree, type Window, cutOut } from "../flame_tree";
import type { Labels } from "../labels";

export const rowHeight = 19;
export const font = '12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const mostLabels = 420;

export interface Paint {
  fills: string[]; // By colour's number; the last is of runs that stand for several nodes.
  inks: string[];
  background: string;
  outline: string;
  colour: Uint8Array; // Of each node.
  marks: Uint8Array | null; // Nodes with a match on or below them.
  mark: number; // The colour of a match.
  labels: Labels;
  others: (node: number) => string; // What is written on a node that stands for what was left out.
}

export function paint(
  context: CanvasRenderingContext2D,
  tree: FlameTree,
  window: Window,
  how: Paint,
  cut: Cut,
  yOf: (row: number) => number,
  height: number,
): void {
  cutOut(tree, window, cut, how.marks);
  context.fillStyle = how.background;
  context.fillRect(0, 0, window.pixels, height);

  // Rectangles by colour, as chains.
  const runs = how.fills.length - 1;
  const first = new Int32Array(how.fills.length).fill(-1),
    next = new Int32Array(cut.count);
  for (let k = cut.count - 1; k >= 0; --k) {
    const colour = cut.marked[k] ? how.mark : cut.stands[k]! > 1 ? runs : how.colour[cut.node[k]!]!;
    next[k] = first[colour]!;
    first[colour] = k;
  }
  for (let colour = 0; colour < first.length; ++colour) {
    if (first[colour]! < 0) continue;
    context.fillStyle = how.fills[colour]!;
    for (let k = first[colour]!; k >= 0; k = next[k]!) {
      const left = Math.round(cut.left[k]!),
        right = Math.round(cut.right[k]!);
      const wide = right - left;
      context.fillRect(left, yOf(cut.row[k]!), wide > 3 ? wide - 1 : Math.max(wide, 1), rowHeight - 1);
    }
  }
  write(context, tree, window, how, cut, yOf);
}

function write(
  context: CanvasRenderingContext2D,
  tree: FlameTree,
  window: Window,
  how: Paint,
  cut: Cut,
  yOf: (row: number) => number,
): void {
  // As many as can be read: if there are too many, the narrowest go without.
  let least = 26;
  for (;;) {
    let wanted = 0;
    for (let k = 0; k < cut.count; ++k) if (cut.right[k]! - cut.left[k]! >= least) ++wanted;
    if (wanted <= mostLabels) break;
    least *= 1.4;
  }
  context.font = font;
  context.textBaseline = "middle";
  let ink = "";
  for (let k = 0; k < cut.count; ++k) {
    if (cut.right[k]! - cut.left[k]! < least || cut.stands[k]! > 1) continue;
    const node = cut.node[k]!;
    const left = Math.max(cut.left[k]!, 0),
      room = Math.min(cut.right[k]!, window.pixels) - left - 8;
    if (room < 14) continue;
    let text: string;
    if (tree.kind[node] === 0) {
      text = how.labels.fitting(tree.symbol[node]!, room);
    } else {
      text = how.others(node);
      const letters = Math.floor(room / 6.2);
      if (text.length > letters) text = letters > 6 ? `${text.slice(0, letters - 1)}\u2026` : "";
    }
    if (!text) continue;
    const wanted = how.inks[how.colour[node]!]!;
    if (wanted !== ink) context.fillStyle = ink = wanted;
    context.fillText(text, Math.round(left) + 4, yOf(cut.row[k]!) + rowHeight / 2);
  }
}
