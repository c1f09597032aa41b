// SPDX-License-Identifier: Apache-2.0
// The question of docs/viewer_api.md as the self-contained file understands it. It knows every stack that
// was worth its room, and the time in slices; what it cannot know is refused here, with the way to see it.

import type { Unit } from "./contract";
import { makePattern } from "./pattern";
import { StackText } from "./stack_text";
import { tenthsOf } from "./state";

// Of blocks; and of CPU time, if it was recorded.
export const blockAmounts = [
  "allocations",
  "reallocations",
  "allocated",
  "live",
  "live_blocks",
  "peak",
  "temporary",
] as const;
export const amountNames = [...blockAmounts, "cpu"] as const;
export type AmountName = (typeof amountNames)[number];

// Slices, from the first to before the end.
export interface Range {
  first: number;
  end: number;
  whole: boolean;
}

export interface FileQuestion {
  metric: string;
  unit: Unit;
  parts: AmountName[]; // That add up to the metric.
  range: Range;
  before: Range | null; // What to compare with.
  where: StackText | null;
  hide: RegExp[];
  under: RegExp[];
  modules: RegExp[];
  process: string;
  fullNames: boolean;
  rowsKey: string; // The same for questions that mean the same stacks,
  framesKey: string; // and that show the same frames of them.
}

const metrics: Record<string, { unit: Unit; parts: AmountName[] }> = {
  peak: { unit: "bytes", parts: ["peak"] },
  live: { unit: "bytes", parts: ["live"] },
  allocated: { unit: "bytes", parts: ["allocated"] },
  allocations: { unit: "count", parts: ["allocations"] },
  calls: { unit: "count", parts: ["allocations", "reallocations"] },
  temporary: { unit: "count", parts: ["temporary"] },
  cpu: { unit: "ns", parts: ["cpu"] },
};

export function notHere(what: string, instead = ""): Error {
  return new Error(notHereSentence(what, instead));
}

function notHereSentence(what: string, instead = ""): string {
  return `${what} cannot be told from this file; ${instead}run \`malloscope view TRACE\` for it.`;
}

const other = "choose another metric, or ";

const words: Record<string, string> = {
  thread: "What one thread did",
  phase: "What was made in one phase",
  type: "What objects of one type hold",
  min_size: "What blocks of one size hold",
  max_size: "What blocks of one size hold",
};

// Why a word of the question is of no use here, as a sentence; null if it is of use.
export function refusalOf(word: string, value = ""): string | null {
  if (word === "range" && value === "peak") return notHereSentence("The peak of a part of the time", other);
  if (word === "range" && value === "leaked") return notHereSentence("What leaked in a part of the time", other);
  if (word === "group" && ["thread", "phase", "size", "type"].includes(value)) return notHereSentence(`The table by ${value}`);
  if (word === "metric" && value !== "leaked" && !Object.hasOwn(metrics, value))
    return notHereSentence(`The metric "${value}"`);
  return Object.hasOwn(words, word) ? notHereSentence(words[word]!) : null;
}

// The slices that a range of tenths of a percent touches. 0 slices: there is only the whole.
export function rangeOf(from: number | null, to: number | null, slices: number): Range {
  const start = from ?? 0,
    end = Math.max(start, to ?? 1000);
  if (start <= 0 && end >= 1000) return { first: 0, end: slices, whole: true };
  if (slices === 0) throw notHere("What happened in a part of the time");
  const wide = 1000 / slices;
  const range = { first: Math.floor(start / wide), end: Math.ceil(end / wide), whole: false };
  if (range.first === 0 && range.end === slices) range.whole = true;
  return range;
}

export function questionOf(asked: URLSearchParams, slices: number, images: number[]): FileQuestion {
  for (const [word, value] of asked) {
    const refusal = value ? refusalOf(word, value) : null;
    if (refusal) throw new Error(refusal);
  }
  const cut = (word: string) => tenthsOf(asked.get(word) ?? "");
  const compared = asked.get("before_from") || asked.get("before_to");
  let metric = asked.get("metric") || "peak";
  const timed = (from: number | null, to: number | null): Range => {
    // What is live is so at an instant; what leaked was made in the range.
    const range = rangeOf(metric === "live" ? null : from, to, slices);
    if (range.whole) return range;
    if (metric === "peak") throw notHere("The peak of a part of the time", other);
    if (metric === "leaked" && range.first > 0) throw notHere("What leaked in a part of the time", other);
    return range;
  };
  const range = timed(cut("from"), cut("to"));
  const before = compared ? timed(cut("before_from"), cut("before_to")) : null;
  const process = asked.get("process") ?? "";
  if (process && !/^(image:)?\d{1,9}$/.test(process))
    throw new Error(`--process: ${process} is neither a pid nor image:N.`);
  if (metric === "peak" && process && !images.every((_, i) => isProcess(process, images, i)))
    throw notHere("The peak of one process alone", other);
  if (metric === "leaked") metric = "live";
  const all = (word: string, option: string) =>
    asked
      .getAll(word)
      .filter(Boolean)
      .map((text) => makePattern(text, option));
  const key = (...some: string[]) => JSON.stringify(some.map((word) => asked.getAll(word)));
  const where = asked.get("where") ?? "";
  return {
    metric,
    ...metrics[metric]!,
    range,
    before,
    where: where.trim() ? StackText.parse(where, "--where") : null,
    hide: all("hide", "--hide"),
    under: all("under", "--only-under"),
    modules: all("module", "--module"),
    process,
    fullNames: asked.get("full_names") === "1",
    rowsKey: key("where", "module", "process", "under"),
    framesKey: key("hide", "under"),
  };
}

// A pid may have had several images.
export function isProcess(process: string, images: number[], image: number): boolean {
  return process.startsWith("image:") ? image === Number(process.slice(6)) - 1 : images[image] === Number(process);
}

export function isAboutAllRows(question: FileQuestion): boolean {
  return !question.where && !question.process && question.modules.length === 0 && question.under.length === 0;
}
