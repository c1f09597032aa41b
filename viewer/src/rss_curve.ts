// SPDX-License-Identifier: Apache-2.0
// The curve of the resident size, which is drawn where somebody wants it. Where it would leave the heap a line at
// the bottom, it stands in the timeline alone until it is asked for: the strip above all views is about the heap.

import type { Timeline } from "./contract";
import { bytesText } from "./format";
import type { State } from "./state";

const leastShare = 0.05; // Of the height.

function highest(values: Float64Array): number {
  return values.reduce((a, b) => Math.max(a, b), 0);
}

// What the kernel saw between two samples, in words; of several processes, what even one alone had.
export function rssBetweenSamples(peak: number | undefined, rss: Float64Array): string {
  const sampled = highest(rss);
  return peak && sampled > 0 && peak > sampled * 1.02
    ? `RSS is looked at now and then: between two looks it was up to ${bytesText(peak)}`
    : "";
}

export function drawsRss(state: Pick<State, "rss">, timeline: Timeline, strip: boolean): boolean {
  if (state.rss !== "") return state.rss === "1";
  return !strip || highest(timeline.live_max) >= leastShare * highest(timeline.rss);
}
