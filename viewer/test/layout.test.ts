// SPDX-License-Identifier: Apache-2.0
// Areas add up and do not overlap; bars of blocks never share a row at the same time.

import assert from "node:assert/strict";
import { test } from "node:test";
import { lanesOf } from "../src/block_lanes";
import { squarify } from "../src/squarify";

test("areas fill the rectangle, each by its amount", () => {
  const amounts = Array.from({ length: 60 }, (_, i) => 1000 / (i + 1));
  const whole = amounts.reduce((a, b) => a + b, 0);
  const boxes = squarify(amounts, { x: 10, y: 20, w: 800, h: 300 });
  boxes.forEach((b, i) => {
    assert.ok(Math.abs((b.w * b.h) / (800 * 300) - amounts[i]! / whole) < 1e-9);
    assert.ok(b.x >= 10 - 1e-6 && b.y >= 20 - 1e-6 && b.x + b.w <= 810 + 1e-6 && b.y + b.h <= 320 + 1e-6);
    for (const o of boxes.slice(i + 1))
      assert.ok(
        o.x + o.w <= b.x + 1e-6 || b.x + b.w <= o.x + 1e-6 || o.y + o.h <= b.y + 1e-6 || b.y + b.h <= o.y + 1e-6,
      );
  });
});

test("rows of blocks are as many as live at once", () => {
  let seed = 1;
  const next = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const born = Float64Array.from({ length: 400 }, () => Math.floor(next() * 1000)),
    died = born.map((b) => b + 1 + Math.floor(next() * 100));
  const { lane, count } = lanesOf(born, died);
  let most = 0;
  for (const t of born) most = Math.max(most, born.filter((b, i) => b <= t && died[i]! > t).length);
  assert.equal(count, most);
  for (let i = 0; i < born.length; ++i)
    for (let k = i + 1; k < born.length; ++k)
      if (lane[i] === lane[k]) assert.ok(died[i]! <= born[k]! || died[k]! <= born[i]!);
});
