// SPDX-License-Identifier: Apache-2.0
// The comparison with another recording in a self-contained file: of the one picture that is in it, every
// other shape is made as it would be from the stacks themselves.

import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeColumns } from "../src/columns";
import type { Flame, Sites } from "../src/contract";
import type { FlameHow } from "../src/source";
import { fileSource, madeUp, packed } from "./file_made_up";

const made = madeUp(7, 150, 10);
// Two ranges stand for two recordings.
const ranges = new URLSearchParams({ metric: "allocated", from: "50%", to: "100%", before_from: "0%", before_to: "40%" });
const since = new URLSearchParams({ metric: "allocated", base: "1" });

// The parts of a file that are a comparison.
async function partsOf(source: ReturnType<typeof fileSource>): Promise<Record<string, string>> {
  const { parent, symbol, kind, total_of, self_of, id, before_of, ...head }: Flame = await source.flame(ranges, {});
  const { columns, id: sites, ...names }: Sites = await source.sites(ranges, "site", null);
  const flame = { parent, symbol, kind, total: total_of, self: self_of, id, before: before_of! };
  return {
    "base-flame-allocated": packed(encodeColumns(head as never, flame)),
    "base-sites-allocated": packed(encodeColumns(names as never, { id: sites, ...Object.fromEntries(columns) })),
    "base-sites-peak": packed(encodeColumns({}, {})),
  };
}

// Amounts now and then by way from the root; what is own, too.
function amounts(flame: Flame): Map<string, number[]> {
  const ways: string[] = [];
  return new Map(
    Array.from(flame.parent, (parent, i) => {
      const own = flame.kind[i] === 1 ? "others" : (flame.symbols.name[flame.symbol[i]!] ?? "");
      ways.push(i === 0 ? "" : `${ways[parent]}/${own}`);
      return [ways[i]!, [flame.total_of[i]!, flame.before_of![i]!, flame.kind[i] === 1 ? 0 : flame.self_of[i]!]];
    }),
  );
}

test("every shape of a comparison is as from the stacks", async () => {
  const stacks = fileSource(made);
  const file = fileSource(made, await partsOf(stacks));
  const whole = await stacks.flame(ranges, {});
  const shapes: FlameHow[] = [{}, { inverted: true }, { root: whole.id[1]! }];
  for (const id of whole.symbols.id!.slice(0, 5)) shapes.push({ callers_of: id }, { callees_of: id });
  shapes.push({ inverted: true, way: String(whole.symbols.id![0]) });
  for (const how of shapes)
    assert.deepEqual(amounts(await file.flame(since, how)), amounts(await stacks.flame(ranges, how)), JSON.stringify(how));
});

test("sites of a comparison are as they were written", async () => {
  const stacks = fileSource(made);
  const file = fileSource(made, await partsOf(stacks));
  assert.deepEqual((await file.sites(since, "site", null)).columns, (await stacks.sites(ranges, "site", null)).columns);
});

test("what a comparison cannot know is said, and why", async () => {
  const stacks = fileSource(made);
  const file = fileSource(made, await partsOf(stacks));
  const refused = (more: Record<string, string>) =>
    assert.rejects(file.sites(new URLSearchParams([...since, ...Object.entries(more)]), "site", null), /malloscope view/);
  await refused({ where: "s1" });
  await refused({ from: "10%" });
  await refused({ process: "100" });
  await file.sites(new URLSearchParams([...since, ["from", "0%"], ["to", "100%"]]), "site", null);
  await assert.rejects(file.sites(new URLSearchParams({ metric: "lifetime", base: "1" }), "site", null), /lifetime/);
  await assert.rejects(file.sites(since, "function", null), /malloscope view/);
  await assert.rejects(file.stacks(since, 2 ** 31 + 1), /only the other recording/);
  await file.stacks(since, made.stacks.find((s) => s.site >= 0)!.site);
  assert.equal(file.refusal("base"), null);
  assert.match(file.refusal("base", "where") ?? "", /under filters/);
  assert.match(stacks.refusal("base") ?? "", /another recording/);
  await assert.rejects(stacks.sites(since, "site", null), /another recording/);
});
