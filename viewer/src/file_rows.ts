// SPDX-License-Identifier: Apache-2.0
// The stacks of the self-contained file, a row for each, and what they did in any range of its slices.
// Stacks that were too light for the file are in it together, as rows of kind "others".

import type { Columns } from "./columns";
import { type Names, kFunction, kOthers } from "./contract";
import { damaged } from "./file_data";
import { type AmountName, type Range, amountNames } from "./file_question";

const sums = 24; // That are kept.

export class FileRows {
  readonly symbols: Names;
  readonly sites: Names;
  readonly images: number[];
  // By node. A parent comes before its children.
  readonly parent: Uint32Array;
  readonly symbol: Uint32Array; // Of others: how many stacks they stand for.
  readonly kind: Uint8Array;
  // By row.
  readonly node: Uint32Array;
  readonly site: Int32Array; // Place in sites; -1: several.
  readonly image: Uint32Array;
  readonly slices: number; // 0: the file knows only the whole time.
  private whole = new Map<AmountName, Float64Array>();
  private first: Uint32Array = new Uint32Array(); // Where a slice's entries begin.
  // Temporary blocks that were freed in a later slice than they were made in: row, made, freed.
  private late: Uint32Array[] = [];
  private row: Uint32Array = new Uint32Array(); // By entry.
  private change = new Map<AmountName, ArrayLike<number>>(); // By entry.
  private kept = new Map<string, Float64Array>();

  constructor(tree: Columns, slices: Columns | null) {
    const bad = (why: string) => damaged("tree", why);
    this.symbols = namesOf(tree.head.symbols);
    this.sites = namesOf(tree.head.sites);
    this.images = Array.isArray(tree.head.images) ? tree.head.images.map(Number) : [];
    this.parent = tree.indices("parent");
    this.symbol = tree.indices("symbol");
    this.kind = Uint8Array.from(tree.column("kind") ?? []);
    const nodes = this.parent.length;
    if (nodes === 0 || this.symbol.length !== nodes || this.kind.length !== nodes) throw bad("nodes are missing");
    for (let i = 1; i < nodes; ++i) {
      if (this.parent[i]! >= i || this.kind[this.parent[i]!] === kOthers) throw bad("it is not a tree");
      if (this.kind[i] === kOthers) continue;
      if (this.kind[i] !== kFunction || this.symbol[i]! >= this.symbols.name.length) throw bad("a function is missing");
    }
    this.node = tree.indices("row_node");
    this.image = tree.indices("row_image");
    const sites = tree.indices("row_site"),
      rows = this.node.length;
    if (sites.length !== rows || this.image.length !== rows) throw bad("rows are missing");
    if (this.node.some((n) => n >= nodes)) throw bad("a row is at no node");
    const places = new Map((this.sites.id ?? []).map((id, place) => [id, place]));
    this.site = Int32Array.from(sites, (id) => places.get(id) ?? -1);
    for (const name of amountNames) {
      if (name === "cpu" && !tree.column(name)) continue;
      const amounts = tree.numbers(name);
      if (amounts.length !== rows || !amounts.every(Number.isFinite)) throw bad(`amounts of ${name} are missing`);
      this.whole.set(name, amounts);
    }
    this.slices = slices ? this.readSlices(slices) : 0;
  }

  get count(): number {
    return this.node.length;
  }

  private readSlices(slices: Columns): number {
    const bad = (why: string) => damaged("slices", why);
    this.first = slices.indices("first");
    this.row = slices.indices("row");
    const count = this.first.length - 1,
      entries = this.row.length;
    if (count < 1 || 1000 % count !== 0) throw bad("they do not divide the time");
    for (let i = 0; i < count; ++i) if (this.first[i]! > this.first[i + 1]!) throw bad("they are not in order");
    if (this.first[0] !== 0 || this.first[count] !== entries) throw bad("entries are missing");
    if (this.row.some((row) => row >= this.count)) throw bad("an entry is of no row");
    for (const name of amountNames) {
      if (name === "peak" || !this.whole.has(name)) continue;
      const column = slices.column(name);
      if (column?.length !== entries) throw bad(`changes of ${name} are missing`);
      if (column instanceof Float64Array && !column.every(Number.isFinite)) throw bad(`${name} has no number`);
      this.change.set(name, column);
    }
    this.late = ["late_row", "late_made", "late_freed", "late_blocks"].map((name) => slices.indices(name));
    if (this.late.some((column) => column.length !== this.late[0]!.length)) throw bad("late blocks are missing");
    if (this.late[0]!.some((row) => row >= this.count)) throw bad("a late block is of no row");
    return count;
  }

  // A range that begins after a temporary block was made does not count it as one.
  private withoutLate(sum: Float64Array, range: Range): void {
    const [row, made, freed, blocks] = this.late;
    for (let i = 0; i < row!.length; ++i)
      if (made![i]! < range.first && freed![i]! >= range.first && freed![i]! < range.end)
        sum[row![i]!]! -= blocks![i]!;
  }

  // By row: what happened in the range; what is live, at its end. The peak is known of the whole time only,
  // CPU time if it was recorded.
  amount(name: AmountName, range: Range): Float64Array | null {
    if (range.whole) return this.whole.get(name) ?? null;
    const changes = this.change.get(name);
    if (!changes) return null;
    const first = name === "live" || name === "live_blocks" ? 0 : range.first;
    const key = `${name} ${first} ${range.end}`;
    let sum = this.kept.get(key);
    if (!sum) {
      sum = new Float64Array(this.count);
      const end = this.first[range.end]!;
      for (let i = this.first[first]!; i < end; ++i) sum[this.row[i]!]! += changes[i]!;
      if (name === "temporary") this.withoutLate(sum, range);
      if (this.kept.size >= sums) this.kept.delete(this.kept.keys().next().value!);
    } else {
      this.kept.delete(key);
    }
    this.kept.set(key, sum);
    return sum;
  }

  // By row, of a metric that may have several parts.
  value(parts: AmountName[], range: Range): Float64Array {
    const [one, ...more] = parts.map((part) => this.amount(part, range) ?? new Float64Array(this.count));
    return more.length === 0 ? one! : one!.map((v, row) => more.reduce((sum, m) => sum + m[row]!, v));
  }

  // Every change of a slice, for whoever follows the time.
  eachChange(name: AmountName, slice: number, visit: (row: number, change: number) => void): void {
    const changes = this.change.get(name) ?? [];
    for (let i = this.first[slice]!; i < this.first[slice + 1]!; ++i) visit(this.row[i]!, changes[i] ?? 0);
  }

  // How many stacks a row stands for.
  stacksOf(row: number): number {
    const node = this.node[row]!;
    return this.kind[node] === kOthers ? this.symbol[node]! : 1;
  }
}

function namesOf(names: unknown): Names {
  const given = (typeof names === "object" && names !== null ? names : {}) as Record<string, unknown>;
  const texts = (key: string) => (Array.isArray(given[key]) ? given[key].map((v) => String(v ?? "")) : []);
  const numbers = (key: string) => (Array.isArray(given[key]) ? given[key].map((v) => Number(v) || 0) : []);
  const name = texts("name"),
    id = numbers("id");
  return {
    id: id.length === name.length ? id : name.map((_, i) => i),
    name,
    full: texts("full"),
    file: texts("file"),
    line: numbers("line"),
    module: texts("module"),
  };
}

// What filters look at.
export function wholeName(names: Names, place: number): string {
  return names.full?.[place] || (names.name[place] ?? "");
}
