// SPDX-License-Identifier: Apache-2.0
// The flame graphs of a self-contained file against sums made the slow way, stack by stack, for every
// metric, filter, range and shape; and with few nodes, the same sums with the rest as others.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flame } from "../src/contract";
import { flameOf } from "../src/file_flame";
import { questionOf } from "../src/file_question";
import { FileRows } from "../src/file_rows";
import { meantRows, nodeValues, treeOf } from "../src/file_tree";
import { decodeColumns } from "../src/columns";
import { layOut } from "../src/flame_tree";
import { type Amount, type MadeUp, type Stack, fileSource, madeUp, partsOf } from "./file_made_up";

const others = -1;

// Outermost first; what is folded ends in others.
type Listed = { way: number[]; amount: number };

function amountOf(stack: Stack, metric: string, first: number, end: number): number {
  const parts: Amount[] = metric === "calls" ? ["allocations", "reallocations"] : [metric as Amount];
  const all = first === 0 && end === stack.slices.length;
  return parts.reduce(
    (sum, part) =>
      sum +
      (all
        ? stack.whole[part]
        : stack.slices.slice(part === "live" ? 0 : first, end).reduce((a, slice) => a + slice[part], 0)),
    0,
  );
}

function listed(made: MadeUp, metric: string, first: number, end: number): Listed[] {
  return made.stacks.map((stack) => ({
    way: stack.folded ? [...stack.functions, others] : stack.functions,
    amount: amountOf(stack, metric, first, end),
  }));
}

// Totals by way from the root.
function slowTotals(stacks: Listed[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { way, amount } of stacks)
    for (let n = 0; n <= way.length && amount > 0; ++n) {
      const key = way.slice(0, n).join(".");
      sums.set(key, (sums.get(key) ?? 0) + amount);
    }
  return sums;
}

function drawnTotals(flame: Flame): Map<string, number> {
  const ways: string[] = [],
    sums = new Map<string, number>();
  for (let i = 0; i < flame.parent.length; ++i) {
    const own = flame.kind[i] === 1 ? others : flame.symbols.id![flame.symbol[i]!]!;
    ways.push(i === 0 ? "" : [ways[flame.parent[i]!]!, String(own)].filter((w) => w !== "").join("."));
    assert.ok(!sums.has(ways[i]!) && (i === 0 || flame.parent[i]! < i));
    if (flame.total_of[i]! > 0 || i === 0) sums.set(ways[i]!, flame.total_of[i]!);
  }
  return sums;
}

function same(flame: Flame, stacks: Listed[]): void {
  const slow = slowTotals(stacks);
  if (slow.size === 0) slow.set("", 0);
  assert.deepEqual(new Map([...drawnTotals(flame)].sort()), new Map([...slow].sort()));
  // What a node has beyond its children is its own, and the page can lay it out.
  const rest = flame.total_of.slice();
  for (let i = 1; i < rest.length; ++i) rest[flame.parent[i]!]! -= flame.total_of[i]!;
  rest.forEach((own, i) => assert.equal(flame.kind[i] === 1 ? 0 : own, flame.self_of[i]));
  layOut(flame.parent, flame.symbol, flame.kind, flame.total_of);
  assert.equal(flame.total, flame.total_of[0]);
}

// From the function that asked outwards; who is folded is not known.
function inverted(stacks: Listed[]): Listed[] {
  return stacks.map(({ way, amount }) => ({ way: way.at(-1) === others ? [others] : [...way].reverse(), amount }));
}

const metrics = ["peak", "live", "allocated", "allocations", "calls", "temporary"];
const question = (text: string) => new URLSearchParams(text);

for (const seed of [1, 2, 3]) {
  const made = madeUp(seed, 120, 20),
    source = fileSource(made);

  test(`every metric adds up, inwards and outwards (${seed})`, async () => {
    for (const metric of metrics) {
      const stacks = listed(made, metric, 0, 20);
      same(await source.flame(question(`metric=${metric}`), {}), stacks);
      const out = await source.flame(question(`metric=${metric}`), { inverted: true });
      same(out, inverted(stacks));
      assert.equal(
        out.total,
        stacks.reduce((sum, s) => sum + s.amount, 0),
      );
      assert.equal(out.unfiltered, out.total);
    }
  });

  test(`ranges are sums of slices, to whose ends they grow (${seed})`, async () => {
    for (const metric of metrics.slice(1)) {
      same(await source.flame(question(`metric=${metric}&from=20%&to=45%`), {}), listed(made, metric, 4, 9));
      same(await source.flame(question(`metric=${metric}&from=21.3%&to=41%`), {}), listed(made, metric, 4, 9));
      same(await source.flame(question(`metric=${metric}&from=0%&to=100%`), {}), listed(made, metric, 0, 20));
    }
    same(await source.flame(question("metric=leaked&to=50%"), {}), listed(made, "live", 0, 10));
  });

  test(`a comparison has both (${seed})`, async () => {
    const flame = await source.flame(question("metric=allocated&from=50%&to=100%&before_from=0%&before_to=50%"), {});
    const sum = (stacks: Listed[]) => stacks.reduce((all, s) => all + s.amount, 0);
    assert.equal(flame.total, sum(listed(made, "allocated", 10, 20)));
    assert.equal(flame.total_before, sum(listed(made, "allocated", 0, 10)));
    const before = { ...flame, total_of: flame.before_of!, total: flame.total_before! };
    assert.deepEqual(
      new Map([...drawnTotals(before)].sort()),
      new Map([...slowTotals(listed(made, "allocated", 0, 10))].sort()),
    );
  });

  test(`filters leave what they mean (${seed})`, async () => {
    const full = (f: number) => made.symbols[f]!.full || made.symbols[f]!.name;
    const kept = (keep: (stack: Stack) => boolean) =>
      listed(made, "allocated", 0, 20).filter((_, i) => keep(made.stacks[i]!));
    const ask = (words: string) => source.flame(question(`metric=allocated&${words}`), {});
    same(
      await ask("where=s4 -S3"),
      kept((s) => s.functions.some((f) => full(f).includes("s4")) && !s.functions.some((f) => full(f).includes("S3"))),
    );
    same(
      await ask(`where=${encodeURIComponent("/^s1$/ or <int>::run")}`),
      kept((s) => s.functions.some((f) => full(f) === "s1" || full(f).includes("<int>::run"))),
    );
    same(
      await ask("process=100"),
      kept((s) => s.image !== 1),
    );
    same(
      await ask("process=image:2"),
      kept((s) => s.image === 1),
    );
    same(
      await ask("module=lib1"),
      kept((s) => s.site >= 0 && made.sites[s.site]!.module.includes("lib1")),
    );
    const filtered = await ask("where=s4");
    assert.equal(
      filtered.unfiltered,
      kept(() => true).reduce((sum, s) => sum + s.amount, 0),
    );
  });

  test(`hidden frames are left out, and what is outside (${seed})`, async () => {
    const hidden = made.symbols.length;
    const without = (way: number[], symbol: number) => {
      const shown = way.filter((f) => f !== symbol);
      return shown.length === 0 && way.length > 0 ? [hidden] : shown;
    };
    const stacks = listed(made, "live", 0, 20);
    same(
      await source.flame(question("metric=live&hide=^s4$"), {}),
      stacks.map((s) => ({ ...s, way: without(s.way, 4) })),
    );
    const under = stacks.filter((s) => s.way.includes(5)).map((s) => ({ ...s, way: s.way.slice(s.way.indexOf(5)) }));
    same(await source.flame(question("metric=live&under=^s5$"), {}), under);
    same(await source.flame(question("metric=live&under=^s5$"), { inverted: true }), inverted(under));
    const both = under.map((s) => ({ ...s, way: without(s.way, 4) }));
    same(await source.flame(question("metric=live&under=^s5$&hide=^s4$"), {}), both);
  });

  test(`callers and callees count a recursion once (${seed})`, async () => {
    const stacks = listed(made, "allocations", 0, 20);
    for (let f = 0; f < made.symbols.length; ++f) {
      const through = stacks.filter((s) => s.way.includes(f));
      const callees = through.map((s) => ({ ...s, way: s.way.slice(s.way.indexOf(f) + 1) }));
      const callers = through.map((s) => ({ ...s, way: s.way.slice(0, s.way.indexOf(f)).reverse() }));
      same(await source.flame(question("metric=allocations"), { callees_of: f }), callees);
      same(await source.flame(question("metric=allocations"), { callers_of: f }), callers);
    }
    await assert.rejects(source.flame(question(""), { callers_of: 99 }), /no such function/);
  });

  test(`a part of the picture is the same as in the whole (${seed})`, async () => {
    const whole = await source.flame(question("metric=live"), {});
    const heavy = [...whole.id.keys()].filter((i) => whole.kind[i] === 0 && whole.total_of[i]! > 0).slice(0, 40);
    for (const node of heavy) {
      const part = await source.flame(question("metric=live"), { root: whole.id[node]! });
      assert.equal(part.total, whole.total_of[node]);
      assert.equal(part.self_of[0], whole.self_of[node]);
      assert.equal(part.symbols.name[part.symbol[0]!], whole.symbols.name[whole.symbol[node]!]);
    }
    const out = await source.flame(question("metric=live"), { inverted: true });
    for (let node = 1; node < out.parent.length; ++node) {
      if (out.kind[node] !== 0 || out.total_of[node] === 0) continue;
      const way: number[] = [];
      for (let at = node; at > 0; at = out.parent[at]!) way.unshift(out.symbols.id![out.symbol[at]!]!);
      const part = await source.flame(question("metric=live"), { inverted: true, way: way.join(".") });
      assert.equal(part.total, out.total_of[node]);
      if (node > 60) break;
    }
    await assert.rejects(
      source.flame(question("metric=live"), { inverted: true, way: "1.2.3.4.5.6.7.8.9" }),
      /no such/,
    );
  });

  test(`with few nodes, the rest are others (${seed})`, () => {
    const parts = partsOf(made);
    const rows = new FileRows(decodeColumns(parts.tree), decodeColumns(parts.slices));
    const asked = questionOf(question("metric=allocated"), rows.slices, rows.images);
    const tree = treeOf(rows, asked);
    const values = nodeValues(tree, rows.value(asked.parts, asked.range), meantRows(rows, asked, tree));
    for (const shape of [{}, { inverted: true }, { calleesOf: 2 }, { callersOf: 2 }]) {
      const all = flameOf(tree, values, null, shape)!;
      for (const most of [1, 2, 10, 30]) {
        const few = flameOf(tree, values, null, { ...shape, most })!;
        assert.ok(few.kind.length <= Math.max(most, 2) && few.kind.length + 1 >= Math.min(most, all.kind.length));
        assert.equal(few.total_of[0], all.total_of[0]);
        const rest = few.total_of.slice();
        for (let i = 1; i < rest.length; ++i) rest[few.parent[i]!]! -= few.total_of[i]!;
        rest.forEach((own, i) => assert.equal(few.kind[i] === 1 ? 0 : own, few.self_of[i]));
        // What is drawn is heavier than all that is not.
        const lightest = Math.min(...[...few.total_of].filter((_, i) => few.kind[i] !== 1));
        const drawn = [...few.kind].filter((k) => k !== 1).length;
        assert.ok([...all.total_of].filter((t, i) => all.kind[i] !== 1 && t > lightest).length <= drawn);
      }
    }
  });
}

test("full names are shown when they are wanted", async () => {
  const made = madeUp(1, 120, 20),
    source = fileSource(made);
  const flame = await source.flame(question("metric=live&full_names=1"), {});
  assert.ok(flame.symbols.name.includes("S3<int>::run(char)"));
  assert.ok(!flame.symbols.name.includes("S3::run"));
});
