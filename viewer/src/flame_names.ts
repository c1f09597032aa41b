// SPDX-License-Identifier: Apache-2.0
// Flame graphs as answers: which of their functions a text matches, what a node is called, and the layout
// of one, made once.

import { type Flame, type Names, kOthers } from "./contract";
import { type FlameTree, layOut } from "./flame_tree";
import { literally, shown } from "./safe_text";

export function matching(symbols: Names, text: string): Uint8Array | null {
  const regex = /^\/(.*)\/$/.exec(text);
  let matches: (name: string) => boolean;
  try {
    const pattern = new RegExp(regex ? regex[1]! : literally(text), regex ? "u" : "iu");
    matches = (name) => pattern.test(name);
  } catch {
    return null;
  }
  return Uint8Array.from(symbols.name, (name, i) => (matches(name) || matches(symbols.full?.[i] ?? "") ? 1 : 0));
}

const trees = new WeakMap<Flame, { after?: FlameTree; before?: FlameTree }>();
export function treeOf(flame: Flame, by: "after" | "before"): FlameTree {
  let made = trees.get(flame);
  if (!made) trees.set(flame, (made = {}));
  return (made[by] ??= layOut(
    flame.parent,
    flame.symbol,
    flame.kind,
    by === "before" && flame.before_of ? flame.before_of : flame.total_of,
  ));
}

export function nodeName(flame: Flame, node: number): string {
  if (flame.kind[node] === kOthers) return "others";
  if (flame.kind[node] !== 0) return "all";
  return shown(flame.symbols.name[flame.symbol[node]!] ?? "?");
}
