// SPDX-License-Identifier: Apache-2.0
// What choosing a time does to the question. An instant is about what is live there, so it sets the metric;
// the one that was there before comes back with a range, or with the whole time. A zoom is only of the charts.

import type { Trace } from "./contract";
import type { Source } from "./source";
import type { State } from "./state";

// The metric as if no time had been chosen.
export function metricBefore(state: State): string {
  return state.metric_was || state.metric;
}

export function chosenInstant(state: State, to: number): Partial<State> {
  const was = metricBefore(state);
  return { metric: "live", metric_was: was === "live" ? "" : was, from: null, to };
}

export function chosenRange(state: State, source: Source, from: number, to: number): Partial<State> {
  const metric = metricBefore(state);
  const whole = from <= 0 && to >= 1000;
  if (!whole && source.refusal("range", metric)) return { metric: "allocated", metric_was: metric, from, to };
  return { metric, metric_was: "", from, to };
}

export function wholeTime(state: State): Partial<State> {
  return { metric: metricBefore(state), metric_was: "", from: null, to: null };
}

export const nothingZoomed: Partial<State> = { zoom: "" };

// The zoom is in the address as percents of the recording: "12.5-40".
export function windowOf(trace: Trace, zoom: string): [number, number] | null {
  const match = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(zoom);
  if (!match) return null;
  const [first, wide] = timeOf(trace);
  const [from, to] = [match[1], match[2]].map((part) => Math.min(1, Number(part) / 100)) as [number, number];
  return from < to && to - from < 1 && to - from >= 0.001 ? [first + from * wide, first + to * wide] : null;
}

export function zoomOf(trace: Trace, window: [number, number] | null): string {
  if (!window) return "";
  const [first, wide] = timeOf(trace);
  const zoom = window.map((ns) => String(Math.round((ns - first) * (1e5 / wide)) / 1e3)).join("-");
  return zoom === "0-100" ? "" : zoom;
}

function timeOf(trace: Trace): [number, number] {
  const first = trace.cuts_ns[0] ?? 0;
  return [first, Math.max(1, (trace.cuts_ns.at(-1) ?? trace.duration_ns) - first)];
}
