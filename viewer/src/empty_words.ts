// SPDX-License-Identifier: Apache-2.0
// Why an answer is empty. Mostly it is the metric: what the filters leave was allocated, but none of it was live
// at the peak. Nobody should take that for filters that match nothing.

import type { Totals, Trace } from "./contract";
import { bytesText, countText } from "./format";
import { type State, isFiltered } from "./state";
import { endWords, isWholeTime, rangeWords } from "./time_words";

export interface Emptiness {
  why: string; // A sentence.
  matches: string; // What there is of it all the same, as a sentence; "" if there is nothing.
  instead: { metric: string; title: string }[]; // What to look at, in words that follow "look at".
}

// `totals` is of the same question, of what was allocated.
export function emptiness(trace: Trace, state: State, metric: string, totals: Totals): Emptiness {
  const part = isFiltered(state) || !isWholeTime(state);
  const made = totals.allocations ?? 0,
    left = totals.live_bytes ?? 0,
    peak = totals.peak_bytes ?? 0;
  const end = endWords(trace, state);
  const there: [string, string, number][] = [
    ["allocated", "what was allocated", made],
    ["live", (state.to ?? 1000) === 1000 ? "what is left at the end" : `what is live ${end}`, left],
    ["peak", `what was live ${peakOf(trace, state)}`, peak],
  ];
  const instead = there
    .filter(([other, , amount]) => amount > 0 && other !== metric)
    .map(([other, title]) => ({ metric: other, title }));
  if (instead.length === 0)
    return { why: part ? "Nothing matches these filters." : "Nothing of this metric was recorded.", matches: "", instead };
  return {
    why: part ? `None of it ${whatNot(trace, state, metric)}.` : "Nothing of this metric was recorded.",
    matches:
      made > 0
        ? `${countText(made, "allocation matches", "allocations match")}:`
        : `${bytesText(Math.max(left, peak))} from before match:`,
    instead,
  };
}

function peakOf(trace: Trace, state: State): string {
  return isWholeTime(state) ? "at the peak" : `at the peak of ${rangeWords(trace, state)}`;
}

function whatNot(trace: Trace, state: State, metric: string): string {
  const when = isWholeTime(state) ? "" : ` from ${rangeWords(trace, state)}`;
  const words: Record<string, string> = {
    peak: `was live ${peakOf(trace, state)}`,
    live: `is live ${endWords(trace, state)}`,
    leaked: "leaked",
    temporary: `was temporary${when}`,
    cpu: `was seen computing${when}`,
    lifetime: "has a lifetime that is known",
    overhead: "costs the allocator more than was asked for",
    "allocator-time": "has times of calls",
  };
  return words[metric] ?? `was allocated${when}`;
}
