// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them, in the same words and with the same rounding as on the command line
// (src/analyze/numbers.cc), so that the page and a report can be laid side by side.

import type { Unit } from "./contract";

export function grouped(n: number): string {
  const digits = String(Math.abs(Math.round(n)));
  return (n < 0 ? "-" : "") + digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

export function bytesText(bytes: number): string {
  if (bytes < 0) return `-${bytesText(-bytes)}`;
  if (bytes < 1024) return `${Math.round(bytes)} B`;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let value = bytes / 1024,
    unit = 0;
  // 1023.95 would be printed as 1024.0.
  while (value >= 1023.95 && unit + 1 < units.length) ((value /= 1024), ++unit);
  return `${fixed(value, 1)} ${units[unit]}`;
}

// As C++ rounds: what lies in the middle goes to the even digit, where toFixed takes the larger. In binary
// only odd multiples of 1 / 2^(digits + 1) lie in the middle.
export function fixed(x: number, digits: number): string {
  const steps = Math.abs(x) * 2 ** (digits + 1);
  if (steps % 2 !== 1) return x.toFixed(digits);
  const low = Math.floor(Math.abs(x) * 10 ** digits);
  return ((Math.sign(x) * (low % 2 === 0 ? low : low + 1)) / 10 ** digits).toFixed(digits);
}

// "12.3", "4.56", "500": three digits that count, without zeros at the end, as C's %.3g.
export function threeDigits(x: number): string {
  if (x === 0) return "0";
  const digits = Math.max(0, 2 - Number(x.toExponential().split("e")[1]));
  const text = fixed(x, Math.min(digits, 20));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

export function durationText(ns: number): string {
  if (ns < 0) return `-${durationText(-ns)}`;
  if (ns > 0 && ns < 1000) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${Math.floor(ns / 1000)} us`;
  if (ns < 999_500_000) return `${threeDigits((ns / 1e9) * 1e3)} ms`;
  if (ns < 99_950_000_000) return `${threeDigits(ns / 1e9)} s`;
  const seconds = Math.floor(ns / 1e9),
    minutes = Math.floor(seconds / 60);
  const two = (n: number) => String(n).padStart(2, "0");
  if (minutes < 60) return `${minutes} min ${two(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

export function percentText(part: number, whole: number): string {
  if (part === 0 || whole === 0) return "0 %";
  if (part < 0) return `-${percentText(-part, whole)}`;
  const percent = 100 * (part / whole);
  if (percent < 0.1) return "< 0.1 %";
  if (percent < 9.95) return `${fixed(percent, 1)} %`;
  // Nothing that falls short of the whole is called 100 %.
  if (part < whole && percent > 99) return "> 99 %";
  return `${fixed(percent, 0)} %`;
}

export function countText(n: number, one: string, many: string): string {
  return `${grouped(n)} ${n === 1 ? one : many}`;
}

// As it is written within a sentence: "Live at the peak" with a small letter, "CPU time" as it is.
export function withinSentence(title: string): string {
  return /^[A-Z][a-z]/.test(title) ? title.charAt(0).toLowerCase() + title.slice(1) : title;
}

export function rateText(amount: number): string {
  if (amount < 0) return `-${rateText(-amount)}`;
  return amount >= 99.95 ? grouped(amount) : threeDigits(amount);
}

export function amountText(amount: number, unit: Unit): string {
  return unit === "bytes" ? bytesText(amount) : unit === "ns" ? durationText(amount) : grouped(amount);
}

// A difference always has its sign.
export function changeText(amount: number, unit: Unit): string {
  return (amount > 0 ? "+" : "") + amountText(amount, unit);
}

// How many digits behind the point it takes to tell multiples of `step` exactly: 0.25 has two, 0.2 has one.
// With fewer, equal steps would look unequal.
function digitsOf(step: number): number {
  let digits = 0;
  for (let scaled = step; digits < 9 && Math.abs(scaled - Math.round(scaled)) > 1e-6 * scaled; scaled *= 10) ++digits;
  return digits;
}

// A time since the recording began, on an axis whose steps are `step` long.
export function axisTime(ns: number, step: number): string {
  if (ns === 0) return "0";
  const inUnit = (unit: number) => (ns / unit).toFixed(digitsOf(step / unit));
  if (ns < 1e6) return `${inUnit(1e3)} us`;
  if (ns < 1e9) return `${inUnit(1e6)} ms`;
  if (ns < 120e9) return `${inUnit(1e9)} s`;
  const digits = digitsOf(step / 1e9),
    parts = 10 ** digits,
    all = Math.round((ns / 1e9) * parts);
  const minutes = Math.floor(all / parts / 60),
    seconds = ((all - minutes * 60 * parts) / parts).toFixed(digits).padStart(digits > 0 ? 3 + digits : 2, "0");
  if (minutes < 60) return `${minutes}:${seconds}`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${seconds}`;
}

// Bytes on an axis whose steps are `step` long.
export function axisBytes(bytes: number, step: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0;
  while (bytes >= 2 ** (10 * (unit + 1)) && unit + 1 < units.length) ++unit;
  const size = 2 ** (10 * unit);
  return `${(bytes / size).toFixed(digitsOf(step / size))} ${units[unit]}`;
}

// The distance of marks on an axis: 1, 2 or 5 times a power of ten, with about `many` of them.
export function roundStep(range: number, many: number): number {
  const rough = range / Math.max(1, many),
    power = 10 ** Math.floor(Math.log10(rough));
  return power * (rough / power <= 1 ? 1 : rough / power <= 2 ? 2 : rough / power <= 5 ? 5 : 10);
}

// A count on an axis, where there is little room: "10 M", "60 k".
export function axisCount(n: number): string {
  return n >= 1e6 ? `${threeDigits(n / 1e6)} M` : n >= 1e4 ? `${threeDigits(n / 1e3)} k` : grouped(n);
}

// A count in a cell that is hardly wider than it: "1,824", "182k", "1.8M".
export function shortCount(n: number): string {
  if (n < 10_000) return grouped(n);
  if (n < 999_500) return `${Math.round(n / 1000)}k`;
  return n < 9_950_000 ? `${fixed(n / 1e6, 1)}M` : `${grouped(n / 1e6)}M`;
}

// "512M", "1.5GiB", "4096": powers of 1024. Null if it is no size.
export function parseBytes(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d*)?|\.\d+)\s*([kKMGT]?)(?:i?B)?\s*$/.exec(text);
  if (!match) return null;
  const scale = { "": 0, k: 10, K: 10, M: 20, G: 30, T: 40 }[match[2] as "K"]!;
  return Math.floor(Number(match[1]) * 2 ** scale);
}

// A size as it would be typed: "64K", "100".
export function typedBytes(bytes: number): string {
  for (const [unit, scale] of [
    ["T", 40],
    ["G", 30],
    ["M", 20],
    ["K", 10],
  ] as const)
    if (bytes >= 2 ** scale && bytes % 2 ** scale === 0) return `${bytes / 2 ** scale}${unit}`;
  return String(bytes);
}
