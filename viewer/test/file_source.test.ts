// SPDX-License-Identifier: Apache-2.0
// What else a self-contained file answers: tables, curves and stacks whose sums hold; what it cannot
// answer, said in a sentence; and files that somebody broke, or made to break something.

import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeColumns, encodeColumns } from "../src/columns";
import type { Trace } from "../src/contract";
import { FileData } from "../src/file_data";
import { FileSource } from "../src/file_source";
import { type Amount, type Stack, amounts, fileSource, madeUp, packed, partsOf, traceJson } from "./file_made_up";

const question = (text: string) => new URLSearchParams(text);
const made = madeUp(7, 150, 20),
  source = fileSource(made);

const sum = (values: Iterable<number>) => [...values].reduce((a, b) => a + b, 0);
const inRange = (stack: Stack, amount: Amount, first: number, end: number) =>
  sum(stack.slices.slice(amount.startsWith("live") ? 0 : first, end).map((slice) => slice[amount]));
const whole = (stack: Stack, amount: Amount) => stack.whole[amount];

test("tables add up, however they are grouped", async () => {
  for (const by of ["site", "function", "file", "module"])
    for (const most of [null, 3]) {
      const sites = await source.sites(question("metric=live"), by, most);
      for (const amount of amounts.filter((a) => a !== "cpu")) {
        // A group without any of the metric has no row.
        if (amount === "live")
          assert.equal(sum(sites.columns.get(amount)!), sum(made.stacks.map((s) => whole(s, amount))));
        assert.equal(sites.columns.get(amount)!.length, sites.rows);
      }
      assert.equal(sites.total, sum(sites.columns.get("value")!));
      assert.equal(
        sum(sites.columns.get("stacks")!),
        sum(made.stacks.map((s) => (s.whole.live > 0 ? s.folded || 1 : 0))),
      );
      if (most) assert.deepEqual([sites.rows, sites.names.name.at(-1), sites.id.at(-1)], [4, "others", 0xffffffff]);
      const listed = (_: number, r: number) => sites.id[r]! < 0xfffffffe; // What is folded comes last.
      const values = [...sites.columns.get("value")!].filter(listed);
      assert.deepEqual(
        values,
        [...values].sort((a, b) => b - a),
      );
    }
});

test("each site has what its stacks have, in any range and under any filter", async () => {
  const sites = await source.sites(question("metric=allocated&from=25%&to=60%&where=s4"), "site", null);
  assert.ok(!sites.columns.has("peak"));
  for (let r = 0; r < sites.rows; ++r) {
    const of = made.stacks.filter(
      (s) =>
        (s.site < 0 ? 0xfffffffe : s.site) === sites.id[r] && s.functions.some((f) => made.symbols[f]!.name === "s4"),
    );
    for (const amount of amounts)
      if (amount !== "peak" && amount !== "cpu")
        assert.equal(sites.columns.get(amount)![r], sum(of.map((s) => inRange(s, amount, 5, 12))), amount);
  }
});

test("functions know what they have with callees, once", async () => {
  const sites = await source.sites(question("metric=live"), "function", null);
  for (let f = 0; f < made.symbols.length; ++f) {
    const row = sites.id.indexOf(f);
    const all = sum(made.stacks.filter((s) => s.functions.includes(f)).map((s) => s.whole.live));
    assert.equal(row < 0 ? 0 : sites.columns.get("cumulative")![row], all);
    const own = made.stacks.filter((s) => !s.folded && s.functions.at(-1) === f).map((s) => s.whole.live);
    assert.equal(row < 0 ? 0 : sites.columns.get("value")![row], sum(own));
  }
});

test("a site whose function is hidden is its caller's", async () => {
  const sites = await source.sites(question("metric=live&hide=^s4$"), "site", null);
  assert.ok(!sites.names.name.includes("s4"));
  assert.equal(sum(sites.columns.get("value")!), sum(made.stacks.map((s) => s.whole.live)));
});

test("a comparison has what was before", async () => {
  const sites = await source.sites(question("metric=live&to=100%&before_to=50%"), "site", null);
  assert.equal(sum(sites.columns.get("before")!), sum(made.stacks.map((s) => inRange(s, "live", 0, 10))));
});

test("sparks are live bytes at the ends of slices", async () => {
  const sparks = await source.sparks(question("metric=live"));
  assert.equal(sparks.points, 20);
  sparks.id.forEach((id, i) => {
    const of = made.stacks.filter((s) => (s.site < 0 ? 0xfffffffe : s.site) === id);
    for (let p = 0; p < 20; ++p)
      assert.equal(sparks.spark[i * 20 + p], sum(of.map((s) => inRange(s, "live", 0, p + 1))));
  });
});

test("CPU time is told of the whole, of ranges and over time, and of no blocks", async () => {
  const cpu = (s: Stack) => s.whole.cpu;
  assert.equal((await source.flame(question("metric=cpu"), {})).total, sum(made.stacks.map(cpu)));
  assert.equal((await source.flame(question("metric=cpu"), {})).unit, "ns");
  const part = await source.sites(question("metric=cpu&from=25%&to=60%&before_from=0%&before_to=25%"), "site", null);
  assert.equal(sum(part.columns.get("value")!), sum(made.stacks.map((s) => inRange(s, "cpu", 5, 12))));
  assert.equal(sum(part.columns.get("before")!), sum(made.stacks.map((s) => inRange(s, "cpu", 0, 5))));
  assert.deepEqual([...part.columns.keys()].sort(), ["before", "stacks", "value"]);
  const sparks = await source.sparks(question("metric=cpu"));
  sparks.id.forEach((id, i) => {
    const of = made.stacks.filter((s) => (s.site < 0 ? 0xfffffffe : s.site) === id);
    for (let p = 0; p < 20; ++p) assert.equal(sparks.spark[i * 20 + p], sum(of.map((s) => s.slices[p]!.cpu)));
  });
  const { stacks } = await source.stacks(question("metric=cpu"), sparks.id[0]!);
  assert.ok(stacks.length > 0 && stacks.every((s) => s.allocations === undefined && s.live === undefined));
});

test("a file of a recording without CPU time is read as well", async () => {
  const without = partsOf(made);
  const strip = (bytes: ArrayBuffer) => {
    const columns = decodeColumns(bytes, "it");
    const { columns: listed, ...head } = columns.head;
    const kept = (listed as { name: string }[]).filter(({ name }) => name !== "cpu");
    return encodeColumns(head, Object.fromEntries(kept.map(({ name }) => [name, columns.column(name)!])));
  };
  const plain = fileSource(made, { tree: packed(strip(without.tree)), slices: packed(strip(without.slices)) });
  assert.ok((await plain.flame(question("metric=live"), {})).total > 0);
  assert.equal((await plain.flame(question("metric=cpu"), {})).total, 0);
  assert.equal((await plain.flame(question("metric=cpu&from=25%"), {})).total, 0);
});

test("stacks of a site are told from the inside out", async () => {
  const sites = await source.sites(question("metric=peak"), "site", null);
  const { stacks, left_out } = await source.stacks(question("metric=peak"), sites.id[0]!);
  assert.equal(left_out, 0);
  assert.equal(sum(stacks.map((s) => s.value)), sites.columns.get("value")![0]);
  for (const stack of stacks) {
    const like = made.stacks.find((s) => s.whole.peak === stack.value && s.functions.length === stack.frames.length);
    if (!like || like.folded) continue;
    assert.deepEqual(
      stack.frames.map((f) => f.name),
      [...like.functions].reverse().map((f) => made.symbols[f]!.name),
    );
  }
  assert.deepEqual((await source.stacks(question("metric=peak"), 12345)).stacks, []);
});

test("a curve of a part follows its stacks", async () => {
  const curve = await source.timeline(question("where=s4"), "none");
  const of = made.stacks.filter((s) => s.functions.some((f) => made.symbols[f]!.name === "s4"));
  assert.deepEqual([curve.slices, curve.exact_max, curve.time.length, curve.time[20]], [20, false, 21, 1000]);
  for (let i = 0; i < 20; ++i) {
    assert.equal(curve.live[i], sum(of.map((s) => inRange(s, "live", 0, i + 1))));
    assert.equal(curve.blocks[i], sum(of.map((s) => inRange(s, "live_blocks", 0, i + 1))));
    assert.equal(curve.allocated[i], sum(of.map((s) => s.slices[i]!.allocated)));
  }
  for (const by of ["site", "process"]) {
    const layers = await source.timeline(question("where=s4"), by);
    assert.ok(layers.groups.length > 1 && layers.groups.length <= 13);
    for (let i = 0; i < 20; ++i)
      assert.equal(sum(layers.groups.map((_, g) => layers.group_live[g * 20 + i]!)), layers.live[i]);
  }
});

test("the curve of all is as it was written", async () => {
  const timeline = packed(
    encodeColumns({ slices: 2 }, { time: Float64Array.of(0, 5, 9), live: Float64Array.of(1, 2) }),
  );
  const with_curve = fileSource(made, { timeline });
  assert.deepEqual([...(await with_curve.timeline(question(""), "none")).live], [1, 2]);
  await assert.rejects(with_curve.timeline(question(""), "thread"), /by thread .*malloscope view TRACE/);
});

test("what the file cannot know is said in a sentence", async () => {
  const refuses = (asked: Promise<unknown>, what: RegExp) =>
    assert.rejects(asked, (error: Error) => {
      assert.match(error.message, what);
      assert.match(error.message, /^[A-Z].*`malloscope view TRACE` for it\.$/);
      return true;
    });
  for (const words of ["thread=main", "type=int", "min_size=8", "max_size=64", "base=1"])
    await refuses(source.sites(question(`metric=live&${words}`), "site", null), /cannot be told from this file/);
  for (const metric of ["lifetime", "overhead", "allocator-time", "nonsense"])
    await refuses(source.flame(question(`metric=${metric}`), {}), new RegExp(metric));
  await refuses(source.flame(question("metric=peak&from=10%"), {}), /peak of a part of the time/);
  await refuses(source.flame(question("metric=peak&process=200"), {}), /peak of one process/);
  await refuses(source.flame(question("metric=leaked&from=10%"), {}), /leaked in a part/);
  await refuses(source.sites(question(""), "thread", null), /by thread/);
  await refuses(source.timeline(question("where=s4"), "thread"), /by thread/);
  await refuses(source.answer("leaks", question("")), /leaks/);
  await refuses(source.blocks(question(""), 3), /blocks/);
  await refuses(source.replay(), /replay/);
  await refuses(source.sourceLines(), /source/);
  const timeless = fileSource(made, {}, ["slices"]);
  await refuses(timeless.flame(question("metric=live&to=50%"), {}), /part of the time/);
  await refuses(timeless.timeline(question("where=s4"), "none"), /through the time/);
  assert.equal((await timeless.sparks(question("metric=live"))).id.length, 0);
  assert.ok((await timeless.flame(question("metric=live"), {})).total > 0);
  assert.match(source.refusal("thread")!, /view TRACE/);
  assert.equal(source.refusal("where"), null);
  assert.equal(source.refusal("metric", "leaked"), null);
});

test("what is wrong with a question is said as on the command line", async () => {
  await assert.rejects(source.flame(question("where=(a"), {}), /--where '\(a': a '\(' has no '\)'/);
  await assert.rejects(source.flame(question("hide=("), {}), /--hide '\(' is not a regular expression/);
  await assert.rejects(source.flame(question("process=x"), {}), /--process: x is neither/);
});

test("answers and blocks are as they were written, of the whole", async () => {
  const blocks = (bars: number, count: number) =>
    packed(
      encodeColumns(
        { blocks: count, bars, bytes_min: 1, bytes_max: 9, end_ns: 1000 },
        {
          born: Float64Array.of(0, 500),
          died: Float64Array.of(100, 1001),
          size: Float64Array.of(1, 9),
          stands_for: Uint32Array.of(1, count - 1),
          tid: Uint32Array.of(0, 0),
        },
      ),
    );
  const more = fileSource(made, {
    "answer-leaks": packed(JSON.stringify({ headline: "None.", tables: [] })),
    "blocks-3": blocks(2, 2),
    "blocks-4": blocks(2, 5),
  });
  assert.equal((await more.answer("leaks", question("metric=live&from=0%&to=100%&full_names=1"))).headline, "None.");
  await assert.rejects(more.answer("leaks", question("where=x")), /under filters/);
  await assert.rejects(more.answer("leaks", question("to=50%")), /part of the time/);
  assert.equal((await more.blocks(question(""), 3)).blocks, 2);
  assert.deepEqual([...(await more.blocks(question("from=30%&to=60%"), 3)).size], [9]);
  assert.equal((await more.blocks(question("from=5%&to=60%"), 3)).end_ns, 600); // Of a range, what is live at its end.
  assert.equal((await more.blocks(question(""), 4)).blocks, 5);
  await assert.rejects(more.blocks(question("from=30%"), 4), /merged/);
  await assert.rejects(more.blocks(question("where=x"), 3), /filters/);
  assert.equal(more.refusal("site", "3"), null);
  assert.match(more.refusal("site", "5")!, /none of the heaviest/);
});

test("what was left out is a warning, and a range that grew is told", async () => {
  assert.equal(source.remark(question("")), null);
  const trace = await source.trace();
  assert.deepEqual(
    trace.warnings.map((w) => w.kind),
    ["cut", "left out"],
  );
  assert.deepEqual([trace.has!.source, trace.has!.replay], [false, false]);
  assert.equal(source.remark(question("metric=live&from=20%&to=45%")), null);
  assert.match(source.remark(question("metric=allocated&from=21%&to=44%"))!, /200 ns to 450 ns/);
  assert.match(source.remark(question("metric=live&to=44%"))!, /of 450 ns/);
});

test("a broken file is an error in words", async () => {
  const parts = partsOf(made);
  const asks = async (more: Record<string, string>) => {
    const broken = fileSource(made, more);
    await broken.trace();
    await broken.flame(question("metric=live&to=50%"), {});
  };
  const sentence = /^This file is damaged: its part "(tree|slices|trace)" cannot be read: .*\.$/;
  const fails = (more: Record<string, string>) =>
    assert.rejects(asks(more), (error: Error) => (assert.match(error.message, sentence), true));
  await fails({ tree: "!!!" });
  await fails({ tree: "" });
  await fails({ tree: Buffer.from("no gzip").toString("base64") });
  await fails({ tree: packed("no columns") });
  await fails({ tree: packed(parts.tree).slice(0, 400) });
  await fails({ trace: packed("{") });
  await fails({ trace: packed("null") });
  await fails({ trace: packed('{"state": "loading"}') });
  await fails({ slices: packed(parts.tree) });
  // One number of one column made wrong.
  const hurt = (buffer: ArrayBuffer, name: string, change: (column: any) => void) => {
    const copy = buffer.slice(0);
    change(decodeColumns(copy).column(name));
    return packed(copy);
  };
  await fails({ tree: hurt(parts.tree, "parent", (c) => (c[5] = 77)) });
  await fails({ tree: hurt(parts.tree, "symbol", (c) => (c[1] = 4e9)) });
  await fails({ tree: hurt(parts.tree, "kind", (c) => (c[1] = 9)) });
  await fails({ tree: hurt(parts.tree, "row_node", (c) => (c[0] = 4e9)) });
  await fails({ tree: hurt(parts.tree, "live", (c) => (c[0] = NaN)) });
  await fails({ slices: hurt(parts.slices, "first", (c) => (c[1] = 4e9)) });
  await fails({ slices: hurt(parts.slices, "row", (c) => (c[0] = 4e9)) });
  await fails({ slices: hurt(parts.slices, "allocated", (c) => (c[0] = Infinity)) });
  // A site or a process that is not there hurts nobody.
  await asks({ tree: hurt(parts.tree, "row_site", (c) => (c[0] = 4e9)) });
  await asks({ tree: hurt(parts.tree, "row_image", (c) => (c[0] = 4e9)) });
});

test("a trace of odd kinds is shown without what is odd", async () => {
  const odd = fileSource(made, { trace: packed(traceJson(made, { warnings: "x", file: { left_out: 5 }, has: null })) });
  assert.deepEqual(((await odd.trace()) as Trace).warnings, []);
});

test("a part is read once, and only when asked for", async () => {
  const parts = partsOf(made),
    reads: string[] = [];
  const texts = { trace: packed(traceJson(made)), tree: packed(parts.tree), slices: packed(parts.slices), replay: "" };
  const data = new FileData(
    new Map(Object.entries(texts).map(([name, text]) => [name, () => (reads.push(name), text)])),
  );
  const lazy = new FileSource(data);
  await lazy.trace();
  assert.deepEqual(reads, ["trace"]);
  await Promise.all([lazy.flame(question(""), {}), lazy.sites(question(""), "site", 6), lazy.trace()]);
  assert.deepEqual(reads.sort(), ["slices", "trace", "tree"]);
});
