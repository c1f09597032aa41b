// SPDX-License-Identifier: Apache-2.0
// The curve of the resident size, which is drawn where somebody wants it. Where it would leave the heap a line at
// the bottom, it stands in the timeline alone until it is asked for: the strip above all views is about the heap.

import type { Timeline } from "./contract";
import type { State } from "./state";

const leastShare = 0.05; // Of the height.

function highest(values: Float64Array): number {
  return values.reduce((a, b) => Math.max(a, b), 0);
}

export function drawsRss(state: Pick<State, "rss">, timeline: Timeline, strip: boolean): boolean {
  if (state.rss !== "") return state.rss === "1";
  return !strip || highest(timeline.live_max) >= leastShare * highest(timeline.rss);
}
