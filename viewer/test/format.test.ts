// SPDX-License-Identifier: Apache-2.0
// The same words and rounding as src/analyze/numbers.cc; the pairs are what the command line prints.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  axisBytes,
  axisTime,
  bytesText,
  changeText,
  countText,
  durationText,
  grouped,
  parseBytes,
  percentText,
  rateText,
  roundStep,
  shortCount,
  threeDigits,
  typedBytes,
  withinSentence,
} from "../src/format";

function says<T extends unknown[]>(text: (...args: T) => string, pairs: [T, string][]) {
  for (const [args, want] of pairs) assert.equal(text(...args), want, JSON.stringify(args));
}

test("counts", () => {
  says(grouped, [
    [[0], "0"],
    [[999], "999"],
    [[1000], "1,000"],
    [[1234567], "1,234,567"],
    [[-1234], "-1,234"],
  ]);
  says(countText, [
    [[1, "block", "blocks"], "1 block"],
    [[2345, "block", "blocks"], "2,345 blocks"],
  ]);
});

test("bytes", () =>
  says(bytesText, [
    [[0], "0 B"],
    [[12], "12 B"],
    [[1023], "1023 B"],
    [[1024], "1.0 KiB"],
    [[1536], "1.5 KiB"],
    [[1280], "1.2 KiB"],
    [[1792], "1.8 KiB"],
    [[1075], "1.0 KiB"],
    [[1077], "1.1 KiB"],
    [[1048524], "1023.9 KiB"],
    [[1048525], "1.0 MiB"],
    [[72143910], "68.8 MiB"],
    [[519112970893], "483.5 GiB"],
    [[-1536], "-1.5 KiB"],
  ]));

test("durations", () =>
  says(durationText, [
    [[0], "0 us"],
    [[120], "120 ns"],
    [[999], "999 ns"],
    [[1000], "1 us"],
    [[850999], "850 us"],
    [[1000000], "1 ms"],
    [[12345678], "12.3 ms"],
    [[500000000], "500 ms"],
    [[999499999], "999 ms"],
    [[999500000], "1 s"],
    [[4561000000], "4.56 s"],
    [[20200000000], "20.2 s"],
    [[99949000000], "99.9 s"],
    [[200e9], "3 min 20 s"],
    [[7500e9], "2 h 05 min"],
    [[1.74e9], "1.74 s"],
    [[100e6], "100 ms"],
    [[99.96e9], "1 min 39 s"],
  ]));

test("shares", () =>
  says(percentText, [
    [[0, 10], "0 %"],
    [[5, 0], "0 %"],
    [[1, 10000], "< 0.1 %"],
    [[4, 1000], "0.4 %"],
    [[8, 100], "8.0 %"],
    [[994, 10000], "9.9 %"],
    [[995, 10000], "10 %"],
    [[105, 1000], "10 %"],
    [[115, 1000], "12 %"],
    [[1, 80], "1.2 %"],
    [[96, 100], "96 %"],
    [[999, 1000], "> 99 %"],
    [[1000, 1000], "100 %"],
  ]));

test("numbers with a fraction", () => {
  says(threeDigits, [
    [[0], "0"],
    [[12.34], "12.3"],
    [[0.01234], "0.0123"],
    [[500], "500"],
    [[999.6], "1000"],
    [[1.5], "1.5"],
    [[12.25], "12.2"],
    [[12.75], "12.8"],
  ]);
  says(rateText, [
    [[99.5], "99.5"],
    [[1234.4], "1,234"],
    [[0.0123], "0.0123"],
  ]);
  says(changeText, [
    [[1536, "bytes"], "+1.5 KiB"],
    [[-2, "count"], "-2"],
    [[0, "bytes"], "0 B"],
  ]);
});

test("times on an axis have as many digits as their steps need", () =>
  says(axisTime, [
    [[0, 1e9], "0"],
    [[5e9, 5e9], "5 s"],
    [[2.5e9, 0.5e9], "2.5 s"],
    [[20e6, 5e6], "20 ms"],
    [[150e9, 30e9], "2:30"],
    [[7265e9, 60e9], "2:01:05"],
    [[200.25e9, 0.25e9], "3:20.25"],
    [[125e9, 2.5e9], "2:05.0"],
    [[3.0000001e9, 100], "3.0000001 s"],
  ]));

// What is equally far apart must look so.
test("labels of an axis have as many digits as its steps", () => {
  const axis = (text: (v: number, step: number) => string, step: number, from: number, many: number) =>
    Array.from({ length: many }, (_, i) => text(from + i * step, step));
  assert.deepEqual(axis(axisTime, 250e6, 0.75e9, 4), ["750 ms", "1.00 s", "1.25 s", "1.50 s"]);
  assert.deepEqual(axis(axisTime, 2.5e6, 427.5e6, 3), ["427.5 ms", "430.0 ms", "432.5 ms"]);
  assert.deepEqual(axis(axisTime, 25e3, 50e3, 2), ["50 us", "75 us"]);
  assert.deepEqual(axis(axisTime, 0.2e9, 1e9, 2), ["1.0 s", "1.2 s"]);
  assert.deepEqual(axis(axisBytes, 2 ** 18, 0, 7), [
    ...["0 B", "256 KiB", "512 KiB", "768 KiB"],
    ...["1.00 MiB", "1.25 MiB", "1.50 MiB"],
  ]);
  assert.deepEqual(axis(axisBytes, 2 ** 25, 0, 3), ["0 B", "32 MiB", "64 MiB"]);
});

test("counts where there is little room", () =>
  says(shortCount, [
    [[9_999], "9,999"],
    [[182_400], "182k"],
    [[999_499], "999k"],
    [[999_500], "1.0M"],
    [[1_824_000], "1.8M"],
    [[12_400_000], "12M"],
  ]));

test("sizes as people type them", () => {
  for (const [text, bytes] of [
    ["4096", 4096],
    ["64K", 65536],
    ["1.5M", 1572864],
    ["2GiB", 2 ** 31],
    ["1 kB", 1024],
    ["0", 0],
  ] as const)
    assert.equal(parseBytes(text), bytes, text);
  for (const text of ["", "x", "1X", "-1", "1e3", "K"]) assert.equal(parseBytes(text), null, text);
  for (const text of ["64K", "100", "3G"]) assert.equal(typedBytes(parseBytes(text)!), text);
});

test("marks on an axis are at round numbers", () => {
  for (const [range, many, step] of [
    [100, 10, 10],
    [3.2e9, 12, 5e8],
    [75, 12, 10],
    [1, 3, 0.5],
  ] as const)
    assert.ok(Math.abs(roundStep(range, many) - step) < step * 1e-9, `${range}/${many}`);
});

test("a title within a sentence", () => {
  assert.equal(withinSentence("Live at the peak"), "live at the peak");
  assert.equal(withinSentence("CPU time"), "CPU time");
});
