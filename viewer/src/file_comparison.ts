// SPDX-License-Identifier: Apache-2.0
// What changed since another recording, out of the self-contained file: the answers about the two whole
// recordings, one of each metric, as `malloscope view --base` gives them. A flame graph is one of them; its
// other shapes (outwards, callers, callees, a part) are made of it here.

import type * as c from "./contract";
import type { FileData } from "./file_data";
import { flameOf as shapeOf, shapeAsked } from "./file_flame";
import { notHere } from "./file_question";
import { type CallTree, type NodeValues, withChildren } from "./file_tree";
import { type FlameHow, flameOf, sitesOf } from "./source";

export class FileComparison {
  constructor(private data: FileData) {}

  // Why there is none, or none with this word of the question or this grouping of sites; null if there is.
  refusal(value = ""): string | null {
    if (!this.data.has("base-sites-peak")) return notHere("What changed since another recording").message;
    if (["", "1", "site"].includes(value)) return null;
    return notHere("What changed since another recording under filters, in a part of the time or by other than site").message;
  }

  async sites(asked: URLSearchParams, by: string): Promise<c.Sites> {
    if (by !== "site") this.refuse(by);
    const sites = sitesOf(await this.data.columns(`base-sites-${this.metricOf(asked)}`));
    return { ...sites, names: named(sites.names, asked) };
  }

  async flame(asked: URLSearchParams, how: FlameHow): Promise<c.Flame> {
    const whole = flameOf(await this.data.columns(`base-flame-${this.metricOf(asked)}`));
    const symbols = named(whole.symbols, asked);
    const { tree, values, before } = valuesOf(whole);
    const place = (id: number) => symbols.id!.indexOf(id);
    const arrays = shapeOf(
      tree,
      values,
      before,
      shapeAsked(how, how.root == null ? 0 : whole.id.indexOf(how.root), place),
    );
    if (!arrays) throw new Error("There is no such node in this tree.");
    const { others, ...columns } = arrays;
    return {
      ...whole,
      ...columns,
      id: columns.id.map((node) => whole.id[node] ?? 0),
      total: columns.total_of[0] ?? 0,
      total_before: columns.before_of?.[0] ?? 0,
      others: { stacks: others.stacks, amount: others.amount },
      symbols,
    };
  }

  // Of the whole recordings, or an error in words.
  private metricOf(asked: URLSearchParams): string {
    this.refuse("");
    for (const [word, value] of asked)
      if (value && !["metric", "base", "full_names"].includes(word) && !isWhole(word, value)) this.refuse(word);
    const metric = asked.get("metric") || "peak";
    const kept = metric === "leaked" ? "live" : metric;
    if (!this.data.has(`base-sites-${kept}`)) throw notHere(`What changed by the metric "${metric}"`);
    return kept;
  }

  private refuse(value: string): void {
    const refusal = this.refusal(value);
    if (refusal) throw new Error(refusal);
  }
}

function isWhole(word: string, value: string): boolean {
  return (word === "from" && parseFloat(value) === 0) || (word === "to" && parseFloat(value) === 100);
}

function named(names: c.Names, asked: URLSearchParams): c.Names {
  if (asked.get("full_names") !== "1") return names;
  return { ...names, name: names.name.map((name, i) => names.full?.[i] || name), full: names.name.map(() => "") };
}

// The picture as a tree whose nodes have what they had in it.
function valuesOf(flame: c.Flame): { tree: CallTree; values: NodeValues; before: NodeValues } {
  const count = flame.parent.length;
  const tree = withChildren(flame.symbols.name.length, flame.parent, flame.symbol, flame.kind, new Int32Array());
  const was = flame.before_of ?? new Float64Array(count);
  const ownBefore = was.slice(),
    stacks = new Uint32Array(count),
    own = flame.self_of.slice();
  for (let i = count - 1; i > 0; --i) {
    ownBefore[flame.parent[i]!]! -= was[i]!;
    const others = flame.kind[i] === 1;
    if (others) own[i] = flame.total_of[i]!; // What is folded is nobody's own in a picture.
    if (own[i]! > 0) stacks[i]! += others ? flame.symbol[i]! : 1;
    stacks[flame.parent[i]!]! += stacks[i]!;
  }
  return {
    tree,
    values: { self: own, total: flame.total_of, stacks },
    before: { self: ownBefore, total: was, stacks },
  };
}
