// SPDX-License-Identifier: Apache-2.0
// The tree of functions as a question wants it: without the frames that are hidden, or only below some
// functions; which rows the question means; and what each node has of them.

import { kFunction, kOthers, kRoot } from "./contract";
import { type FileQuestion, isAboutAllRows, isProcess } from "./file_question";
import { type FileRows, wholeName } from "./file_rows";
import { matchesAny } from "./pattern";

export interface CallTree {
  parent: Uint32Array; // Smaller than its own number, but for the root.
  symbol: Uint32Array; // Of others: how many stacks they stand for.
  kind: Uint8Array;
  nodeOfRow: Int32Array; // -1: it is not in the tree.
  symbols: number; // The last one is hiddenSymbol's.
  firstChild: Uint32Array; // In `children`; one more at the end.
  children: Uint32Array;
}

// Stands where all frames of a stack are hidden.
export function hiddenSymbol(rows: FileRows): number {
  return rows.symbols.name.length;
}

export function treeOf(rows: FileRows, question: FileQuestion): CallTree {
  const { hide, under } = question;
  const count = rows.parent.length;
  if (hide.length === 0 && under.length === 0)
    return withChildren(hiddenSymbol(rows), rows.parent, rows.symbol, rows.kind, Int32Array.from(rows.node));
  const names = rows.symbols.name.map((_, i) => wholeName(rows.symbols, i));
  const hidden = Uint8Array.from(names, (name) => (matchesAny(hide, name) ? 1 : 0));
  const opens = Uint8Array.from(names, (name) => (matchesAny(under, name) ? 1 : 0));
  const parent: number[] = [0],
    symbol: number[] = [0],
    kind: number[] = [kRoot];
  const inside = new Uint8Array(count);
  inside[0] = under.length === 0 ? 1 : 0;
  const at = new Int32Array(count).fill(-1); // By node: where it is in the new tree.
  if (inside[0]) at[0] = 0;
  const below = new Map<number, number>(); // By parent and symbol.
  const child = (of: number, s: number): number => {
    const key = of * (rows.symbols.name.length + 1) + s;
    let node = below.get(key);
    if (node === undefined) {
      node = parent.length;
      below.set(key, node);
      parent.push(of);
      symbol.push(s);
      kind.push(kFunction);
    }
    return node;
  };
  const others = new Map<number, number>(); // By parent.
  for (let i = 1; i < count; ++i) {
    const p = rows.parent[i]!,
      s = rows.symbol[i]!;
    if (rows.kind[i] === kOthers) {
      if (!inside[p]) continue;
      const known = others.get(at[p]!);
      if (known !== undefined) {
        at[i] = known;
        symbol[known]! += s;
        continue;
      }
      at[i] = parent.length;
      others.set(at[p]!, at[i]!);
      parent.push(at[p]!);
      symbol.push(s);
      kind.push(kOthers);
      continue;
    }
    inside[i] = inside[p]! | opens[s]!;
    if (!inside[i]) continue;
    const outer = inside[p] ? at[p]! : 0;
    at[i] = hidden[s] ? outer : child(outer, s);
  }
  const nodeOfRow = Int32Array.from(rows.node, (node) => (at[node] === 0 ? child(0, hiddenSymbol(rows)) : at[node]!));
  return withChildren(
    hiddenSymbol(rows),
    Uint32Array.from(parent),
    Uint32Array.from(symbol),
    Uint8Array.from(kind),
    nodeOfRow,
  );
}

// `names`: how many functions there are.
export function withChildren(
  names: number,
  parent: Uint32Array,
  symbol: Uint32Array,
  kind: Uint8Array,
  nodeOfRow: Int32Array,
): CallTree {
  const count = parent.length,
    firstChild = new Uint32Array(count + 1),
    children = new Uint32Array(count - 1);
  for (let i = 1; i < count; ++i) ++firstChild[parent[i]! + 1]!;
  for (let i = 0; i < count; ++i) firstChild[i + 1]! += firstChild[i]!;
  const next = firstChild.slice();
  for (let i = 1; i < count; ++i) children[next[parent[i]!]!++] = i;
  return { parent, symbol, kind, nodeOfRow, symbols: names + 1, firstChild, children };
}

// By row, 1 if the question means it. Of stacks that are folded, what is known decides.
export function meantRows(rows: FileRows, question: FileQuestion, tree: CallTree): Uint8Array {
  const meant = new Uint8Array(rows.count).fill(1);
  if (isAboutAllRows(question)) return meant;
  const { where, modules, process, under } = question;
  const inProcess = rows.images.map((_, i) => !process || isProcess(process, rows.images, i));
  const inModule = (rows.sites.module ?? []).map((module) => matchesAny(modules, module ?? ""));
  const words = where ? wordsByNode(rows, question) : null;
  for (let row = 0; row < rows.count; ++row) {
    const node = rows.node[row]!;
    if (
      !(inProcess[rows.image[row]!] ?? !process) ||
      (modules.length > 0 && !inModule[rows.site[row]!]) ||
      (words && !where!.holds(words.low[node]!, words.high[node]!)) ||
      (under.length > 0 && tree.nodeOfRow[row]! < 0)
    )
      meant[row] = 0;
  }
  return meant;
}

function wordsByNode(rows: FileRows, question: FileQuestion): { low: Int32Array; high: Int32Array } {
  const of = rows.symbols.name.map((_, i) => question.where!.wordsIn(wholeName(rows.symbols, i)));
  const low = new Int32Array(rows.parent.length),
    high = new Int32Array(rows.parent.length);
  for (let i = 1; i < low.length; ++i) {
    const [l, h] = rows.kind[i] === kFunction ? of[rows.symbol[i]!]! : [0, 0];
    low[i] = low[rows.parent[i]!]! | l;
    high[i] = high[rows.parent[i]!]! | h;
  }
  return { low, high };
}

// What there is at the nodes, of one metric: itself, and with all below it; and how many stacks that is.
export interface NodeValues {
  self: Float64Array;
  total: Float64Array;
  stacks: Uint32Array;
}

export function nodeValues(tree: CallTree, byRow: Float64Array, meant: Uint8Array): NodeValues {
  const count = tree.parent.length,
    self = new Float64Array(count),
    stacks = new Uint32Array(count);
  for (let row = 0; row < byRow.length; ++row) {
    const node = tree.nodeOfRow[row]!;
    if (node >= 0 && meant[row]) self[node]! += byRow[row]!;
  }
  const total = self.slice();
  for (let i = count - 1; i > 0; --i) {
    if (self[i]! > 0) stacks[i]! += tree.kind[i] === kOthers ? tree.symbol[i]! : 1;
    total[tree.parent[i]!]! += total[i]!;
    stacks[tree.parent[i]!]! += stacks[i]!;
  }
  return { self, total, stacks };
}
