// SPDX-License-Identifier: Apache-2.0
// A row of a table by thread, phase, size, type or module as a filter: what it is about, every view can be about.

import { baseName, literally, patternOf } from "./safe_text";
import type { State } from "./state";

const units: Record<string, number> = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

// The sizes that a power of two stands for, from "64 - 127 B", "1 - 2 KiB" or "512 KiB - 1 MiB". Null: that is none.
export function sizesOf(range: string): [least: number, most: number] | null {
  const match = /^(\d+)(?: ([KMGT]iB))?(?: - \d+)? ([KMGT]?i?B)$/.exec(range);
  const unit = match && units[match[2] ?? match[3]!];
  if (!unit) return null;
  const least = Number(match[1]) * unit;
  return [least, Math.max(least, 2 * least - 1)];
}

// What stands where there is no name.
const nobody = new Set(["", "(unknown)", "(unknown module)", "(no phase)"]);

// Null: rows like these, or this one, are no filter.
export function filterOf(by: string, name: string): Partial<State> | null {
  if (by === "thread") {
    const tid = /\((\d+)\)$/.exec(name)?.[1]; // "worker (4711)".
    return tid ? { thread: [tid] } : null;
  }
  if (by === "size") {
    const sizes = sizesOf(name);
    return sizes && { min_size: sizes[0], max_size: sizes[1] };
  }
  if (nobody.has(name)) return null;
  if (by === "phase") return { phase: [patternOf(name, null)] };
  if (by === "type") return { type: [patternOf(name, null)] };
  if (by === "module") return { module: [literally(baseName(name))] };
  return null;
}

export function isInForce(state: State, filter: Partial<State>): boolean {
  return Object.entries(filter).every(([word, value]) => JSON.stringify(state[word as keyof State]) === JSON.stringify(value));
}

// The same without it: what is chosen a second time is let go.
export function without(filter: Partial<State>): Partial<State> {
  return Object.fromEntries(Object.entries(filter).map(([word, value]) => [word, Array.isArray(value) ? [] : null]));
}
