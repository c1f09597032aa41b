// SPDX-License-Identifier: Apache-2.0
// What every view can reach: the state and how to change it, where answers come from, the trace, and
// whether the page is light or dark.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Theme } from "./colors";
import type { Trace } from "./contract";
import { shown } from "./safe_text";
import type { Source } from "./source";
import type { State } from "./state";

export interface Page {
  source: Source;
  trace: Trace;
  state: State;
  change: (change: Partial<State>, push?: boolean) => void;
  theme: Theme;
}

export const PageContext = createContext<Page | null>(null);

export function usePage(): Page {
  return useContext(PageContext)!;
}

// The time of a cut, in ns; cuts are tenths of a percent.
export function cutTime(trace: Trace, tenths: number): number {
  return trace.cuts_ns[tenths] ?? (trace.duration_ns * tenths) / 1000;
}

// The cut nearest to a time.
export function nearestCut(trace: Trace, ns: number): number {
  const cuts = trace.cuts_ns;
  if (cuts.length < 2) return Math.round((1000 * ns) / Math.max(1, trace.duration_ns));
  let low = 0,
    high = cuts.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cuts[middle]! < ns) low = middle + 1;
    else high = middle;
  }
  return low > 0 && ns - cuts[low - 1]! < cuts[low]! - ns ? low - 1 : low;
}

// When the heap was highest in the whole time, whatever part of it the filters leave: that is the moment which
// the metric is of. Of one of several processes a question of its own tells it.
export function peakTime(trace: Trace, state: Pick<State, "process">): number | null {
  return isOneOfSeveral(trace, state) ? null : (trace.peak_time_ns ?? null);
}

export function isOneOfSeveral(trace: Trace, state: Pick<State, "process">): boolean {
  return state.process !== "" && trace.processes.length > 1;
}

// As Threads and Sites call it: "worker (4711)"; nothing if it is not one.
export function threadName(trace: Pick<Trace, "threads">, tid: number): string {
  if (tid === 0) return "";
  const name = trace.threads.find((t) => t.tid === tid)?.name;
  return name ? `${name} (${tid})` : String(tid);
}

// Why a word cannot be asked for here, as a sentence; null if it can.
export function useRefusal(): (word: string) => string | null {
  const { state, source } = usePage();
  return (word) => source.refusal(word) ?? (state.base ? source.refusal("base", word) : null);
}

export interface MetricWords {
  title: string;
  short?: string; // Above a column.
  says: string;
}

const metricTitles: Record<string, MetricWords> = {
  peak: { title: "Live at the peak", says: "what was live when the heap was largest" },
  live: { title: "Live at an instant", says: "what is live at the end of the range" },
  allocated: { title: "Bytes allocated", short: "allocated", says: "the sum of all allocations" },
  allocations: { title: "Allocations", says: "how many blocks were made" },
  calls: { title: "Calls", says: "allocations and reallocations" },
  temporary: { title: "Temporary", says: "freed before the thread's next allocation" },
  leaked: { title: "Leaked", says: "allocated in the range and still live at its end" },
  lifetime: { title: "Sum of lifetimes", short: "lifetimes", says: "how long blocks live: the sum over all of them" },
  overhead: { title: "Overhead", says: "what the allocator adds to what was asked for" },
  "allocator-time": { title: "Allocator time", says: "time inside the allocator's calls" },
  cpu: { title: "CPU time", short: "CPU", says: "time that threads have computed" },
};

// Views whose figures are their own.
const unmeasured: Record<string, string> = {
  leaks: "Leaks is about what was never freed",
  peak: "Peak is about what was live at its moment",
  sizes: "Sizes has several figures side by side",
  lifetimes: "Lifetimes is about how long blocks live",
  threads: "Threads has several figures side by side",
  phases: "Phases has several figures side by side",
  replay: "Replay is about other allocators",
  access: "Access has figures of its own",
  more: "These answers have figures of their own",
};

// Why the metric changes nothing in a view, as a sentence; null if it does.
export function whyUnmeasured(view: string): string | null {
  const why = unmeasured[view];
  return why ? `${why}, whatever the metric: that is for Flame graph, Sites, Blocks and Diff.` : null;
}

// Whether anybody knows it; what only other traces tell is known too.
export function isMetric(trace: Trace, metric: string): boolean {
  return Object.hasOwn(metricTitles, metric) || trace.metrics.includes(metric);
}

export function metricWords(metric: string): MetricWords {
  return metricTitles[metric] ?? { title: shown(metric.charAt(0).toUpperCase() + metric.slice(1)), says: "" };
}

// Those that the trace can tell, the usual ones first.
export function metricsOf(trace: Trace): string[] {
  const usual = Object.keys(metricTitles);
  const place = (metric: string) => (usual.includes(metric) ? usual.indexOf(metric) : usual.length);
  return [...trace.metrics].sort((a, b) => place(a) - place(b));
}
