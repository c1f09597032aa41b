// SPDX-License-Identifier: Apache-2.0
// The heaviest nodes of a tree, as many as can be drawn; src/analyze/flame.cc tells how and why. A node of
// the picture stands for places in the tree (its members), each with a weight; below it are the members'
// children, or their parents, put together by function. The heaviest that is not yet open is opened next, as
// long as there is room for it and for what is left below it.
// What the file has folded already is never opened: it is "others" wherever it is met. There may be some
// hundred thousand nodes and members, so they lie in columns.

import { type Flame, kFunction, kOthers, kRoot } from "./contract";
import type { CallTree, NodeValues } from "./file_tree";
import type { FlameHow } from "./source";

export interface FlameShape {
  inverted?: boolean;
  callersOf?: number | null; // Symbols are places in the file's names.
  calleesOf?: number | null;
  root?: number; // A node; only from main inwards.
  way?: number[]; // Symbols from the root on; in all other shapes.
  most?: number;
}

// As the page asks for it; `place` finds a symbol by its id.
export function shapeAsked(how: FlameHow, root: number, place: (id: number) => number): FlameShape {
  return {
    inverted: how.inverted ?? false,
    root,
    way: how.way ? how.way.split(".").map((id) => place(Number(id))) : [],
    callersOf: how.callers_of == null ? null : place(how.callers_of),
    calleesOf: how.callees_of == null ? null : place(how.callees_of),
  };
}

export type FlameArrays = Pick<Flame, "parent" | "symbol" | "kind" | "total_of" | "self_of" | "id" | "before_of"> & {
  others: { stacks: number; amount: number };
};

// Nodes of the picture, drawn or not; those below one are next to each other.
class Opens {
  count = 0;
  kind = new Uint8Array(room);
  drawn = new Uint8Array(room);
  symbol = new Uint32Array(room);
  id = new Uint32Array(room);
  parent = new Uint32Array(room);
  stacks = new Uint32Array(room);
  member = new Int32Array(room); // The last of its members, -1: none.
  firstChild = new Uint32Array(room);
  endChild = new Uint32Array(room);
  undrawn = new Uint32Array(room); // Of its children.
  total = new Float64Array(room);
  before = new Float64Array(room);
  self = new Float64Array(room);

  push(kind: number, symbol: number, id: number): number {
    if (this.count === this.kind.length) this.grow();
    const at = this.count++;
    this.kind[at] = kind;
    this.symbol[at] = symbol;
    this.id[at] = id;
    this.member[at] = -1;
    return at;
  }

  weight(at: number): number {
    const is = this.total[at]!,
      was = this.before[at]!;
    return is > was ? is : was;
  }

  private grow(): void {
    this.kind = doubled(this.kind, new Uint8Array(2 * this.count));
    this.drawn = doubled(this.drawn, new Uint8Array(2 * this.count));
    for (const key of ["symbol", "id", "parent", "stacks", "firstChild", "endChild", "undrawn"] as const)
      this[key] = doubled(this[key], new Uint32Array(2 * this.count));
    this.member = doubled(this.member, new Int32Array(2 * this.count));
    for (const key of ["total", "before", "self"] as const)
      this[key] = doubled(this[key], new Float64Array(2 * this.count));
  }
}

// Their members.
class Members {
  count = 0;
  node = new Uint32Array(room); // Where it is in the tree.
  of = new Uint32Array(room); // The open that has it.
  next = new Int32Array(room); // Of the same open; -1: none.
  // Outwards, what it brings along.
  total = new Float64Array(room);
  before = new Float64Array(room);
  stacks = new Uint32Array(room);

  push(node: number, of: number, next: number): number {
    if (this.count === this.node.length) this.grow();
    const at = this.count++;
    this.node[at] = node;
    this.of[at] = of;
    this.next[at] = next;
    return at;
  }

  private grow(): void {
    for (const key of ["node", "of", "stacks"] as const)
      this[key] = doubled(this[key], new Uint32Array(2 * this.count));
    this.next = doubled(this.next, new Int32Array(2 * this.count));
    for (const key of ["total", "before"] as const) this[key] = doubled(this[key], new Float64Array(2 * this.count));
  }
}

const room = 1 << 16;

function doubled<T extends { set(from: T): void }>(from: T, to: T): T {
  to.set(from);
  return to;
}

// Null if there is no such node.
export function flameOf(
  tree: CallTree,
  values: NodeValues,
  before: NodeValues | null,
  shape: FlameShape,
): FlameArrays | null {
  return new Painter(tree, values, before, shape).paint();
}

class Painter {
  private inwards: boolean;
  private atStart = false; // Outwards: the members are the root's children.
  private opens = new Opens();
  private members = new Members();
  private placeOf: Uint32Array; // By symbol: where it may be among the children, + 1.
  private memberAt: Uint32Array; // By node, outwards: where it may be among an open's members, + 1.

  constructor(
    private tree: CallTree,
    private values: NodeValues,
    private before: NodeValues | null,
    private shape: FlameShape,
  ) {
    this.inwards = shape.calleesOf != null || (shape.callersOf == null && !shape.inverted);
    this.placeOf = new Uint32Array(tree.symbols);
    this.memberAt = new Uint32Array(this.inwards ? 0 : tree.parent.length);
  }

  paint(): FlameArrays | null {
    let root = this.begin();
    for (const step of this.shape.way ?? []) {
      if (root < 0) return null;
      const { opens } = this;
      this.open(root);
      let next = opens.firstChild[root]!;
      const end = opens.endChild[root]!;
      while (next < end && (opens.kind[next] !== kFunction || opens.symbol[next] !== step)) ++next;
      root = next < end ? next : -1;
    }
    if (root < 0) return null;
    this.grow(root);
    return this.walk(root);
  }

  // The root, or -1.
  private begin(): number {
    const { tree, values, before, shape, opens } = this;
    const count = tree.parent.length;
    const symbol = shape.calleesOf ?? shape.callersOf ?? null;
    if (symbol !== null) {
      if (symbol >= tree.symbols) return -1;
      const root = opens.push(kFunction, symbol, 0);
      // Where the function is called, but not below another call of it.
      const inside = new Uint8Array(count);
      for (let i = 1; i < count; ++i) {
        const here = tree.kind[i] === kFunction && tree.symbol[i] === symbol ? 1 : 0,
          outside = !inside[tree.parent[i]!];
        if (here && outside && this.counts(i)) this.addWhole(root, i);
        inside[i] = here || !outside ? 1 : 0;
      }
      return root;
    }
    if (shape.inverted) {
      const root = opens.push(kRoot, 0, 0);
      this.atStart = true;
      for (let i = 0; i < count; ++i) {
        const is = values.self[i]!,
          was = before ? before.self[i]! : 0;
        if (is > 0 || was > 0) this.add(root, i, is, was, is <= 0 ? 0 : tree.kind[i] === kOthers ? tree.symbol[i]! : 1);
      }
      return root;
    }
    const at = shape.root ?? 0;
    if (at >= count || tree.kind[at] === kOthers) return -1;
    const root = opens.push(at === 0 ? kRoot : kFunction, tree.symbol[at]!, at);
    this.addWhole(root, at);
    return root;
  }

  private counts(node: number): boolean {
    return this.values.total[node]! > 0 || (this.before !== null && this.before.total[node]! > 0);
  }

  private addWhole(open: number, node: number): void {
    const { values, before } = this;
    this.add(open, node, values.total[node]!, before ? before.total[node]! : 0, values.stacks[node]!);
    if (this.inwards) this.opens.self[open]! += values.self[node]!;
  }

  private add(open: number, node: number, total: number, before: number, stacks: number): void {
    const { opens, members } = this;
    opens.total[open]! += total;
    opens.before[open]! += before;
    opens.stacks[open]! += stacks;
    if (opens.kind[open] === kOthers) return;
    if (this.inwards) {
      opens.member[open] = members.push(node, open, opens.member[open]!);
      return;
    }
    // Ways that meet further out go on as one.
    let at = this.memberAt[node]! - 1;
    if (at < 0 || members.of[at] !== open) {
      at = members.push(node, open, opens.member[open]!);
      opens.member[open] = at;
      this.memberAt[node] = at + 1;
    }
    members.total[at]! += total;
    members.before[at]! += before;
    members.stacks[at]! += stacks;
  }

  // Puts what is below an open behind all others, by function. What of an outward node goes no further
  // out is its own.
  private open(parent: number): void {
    const { tree, opens, members } = this;
    const begin = opens.count;
    let others = -1;
    const atStart = this.atStart;
    this.atStart = false;
    const placed = (node: number): number => {
      if (tree.kind[node] === kOthers) return others < 0 ? (others = opens.push(kOthers, 0, node)) : others;
      const symbol = tree.symbol[node]!;
      let at = this.placeOf[symbol]! - 1;
      if (at < begin) {
        at = opens.push(kFunction, symbol, node);
        this.placeOf[symbol] = at + 1;
      }
      return at;
    };
    for (let m = opens.member[parent]!; m >= 0; m = members.next[m]!) {
      const node = members.node[m]!;
      if (this.inwards) {
        const end = tree.firstChild[node + 1]!;
        for (let c = tree.firstChild[node]!; c < end; ++c) {
          const child = tree.children[c]!;
          if (this.counts(child)) this.addWhole(placed(child), child);
        }
        continue;
      }
      const outer = atStart ? node : tree.parent[node]!;
      if (outer === 0) opens.self[parent]! += members.total[m]!;
      else this.add(placed(outer), outer, members.total[m]!, members.before[m]!, members.stacks[m]!);
    }
    opens.firstChild[parent] = begin;
    opens.endChild[parent] = opens.count;
    for (let child = begin; child < opens.count; ++child) opens.parent[child] = parent;
  }

  private grow(root: number): void {
    const { opens } = this;
    const most = this.shape.most ?? 50_000;
    const next = new Heap(opens);
    next.push(root);
    let nodes = 0; // Drawn ones, and "others" below them.
    while (next.size > 0) {
      const at = next.pop();
      if (opens.endChild[at] === 0) this.open(at);
      opens.undrawn[at] = opens.endChild[at]! - opens.firstChild[at]!;
      let more = opens.undrawn[at] === 0 ? 1 : 2;
      if (at !== root) {
        const above = opens.parent[at]!;
        if (opens.undrawn[above] === 1) --more; // Nothing is left to be one of the others.
        if (nodes + more > most) break;
        --opens.undrawn[above]!;
      }
      nodes += more;
      opens.drawn[at] = 1;
      for (let child = opens.firstChild[at]!; child < opens.endChild[at]!; ++child)
        if (opens.kind[child] !== kOthers) next.push(child);
    }
  }

  // What was drawn, children heaviest first; what was not, as one node behind them.
  private walk(root: number): FlameArrays {
    const { opens } = this;
    const listed: number[] = [],
      parent: number[] = [];
    const others = { stacks: 0, amount: 0 };
    const visits = [root],
      above = [0];
    while (visits.length > 0) {
      const at = visits.pop()!,
        here = listed.push(at) - 1;
      parent.push(above.pop()!);
      if (!opens.drawn[at]) {
        opens.kind[at] = kOthers;
        opens.symbol[at] = opens.stacks[at]!;
        opens.self[at] = 0;
        others.stacks += opens.stacks[at]!;
        others.amount += opens.total[at]!;
        continue;
      }
      const drawn: number[] = [];
      let rest = -1;
      for (let child = opens.firstChild[at]!; child < opens.endChild[at]!; ++child) {
        if (opens.drawn[child]) {
          drawn.push(child);
        } else if (rest < 0) {
          rest = child;
        } else {
          opens.total[rest]! += opens.total[child]!;
          opens.before[rest]! += opens.before[child]!;
          opens.stacks[rest]! += opens.stacks[child]!;
        }
      }
      if (drawn.length > 1) drawn.sort((a, b) => opens.weight(b) - opens.weight(a) || a - b);
      if (rest >= 0) visits.push(rest);
      for (let i = drawn.length - 1; i >= 0; --i) visits.push(drawn[i]!);
      for (let i = above.length; i < visits.length; ++i) above.push(here);
    }
    const column = <T extends Float64Array | Uint32Array | Uint8Array>(from: T, to: T): T => {
      for (let i = 0; i < listed.length; ++i) to[i] = from[listed[i]!]!;
      return to;
    };
    const count = listed.length;
    return {
      parent: Uint32Array.from(parent),
      symbol: column(opens.symbol, new Uint32Array(count)),
      kind: column(opens.kind, new Uint8Array(count)),
      total_of: column(opens.total, new Float64Array(count)),
      self_of: column(opens.self, new Float64Array(count)),
      id: column(opens.id, new Uint32Array(count)),
      before_of: this.before ? column(opens.before, new Float64Array(count)) : null,
      others,
    };
  }
}

// The heaviest first, of equals the first.
class Heap {
  private list: number[] = [];
  constructor(private opens: Opens) {}

  get size(): number {
    return this.list.length;
  }

  private above(a: number, b: number): boolean {
    const x = this.opens.weight(a),
      y = this.opens.weight(b);
    return x !== y ? x > y : a < b;
  }

  push(item: number): void {
    const { list } = this;
    let at = list.push(item) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (!this.above(item, list[up]!)) break;
      list[at] = list[up]!;
      at = up;
    }
    list[at] = item;
  }

  pop(): number {
    const { list } = this;
    const top = list[0]!,
      item = list.pop()!;
    if (list.length === 0) return top;
    let at = 0;
    for (;;) {
      let down = 2 * at + 1;
      if (down >= list.length) break;
      if (down + 1 < list.length && this.above(list[down + 1]!, list[down]!)) ++down;
      if (!this.above(list[down]!, item)) break;
      list[at] = list[down]!;
      at = down;
    }
    list[at] = item;
    return top;
  }
}
