// SPDX-License-Identifier: Apache-2.0
// What time numbers are of, in words: "Live at 328 ms", "Bytes allocated from 1 s to 2 s". Nobody should
// take what is live at an instant for what is live at the peak.

import type { Trace } from "./contract";
import { bytesText, durationText } from "./format";
import { cutTime, metricWords } from "./page";
import { shown } from "./safe_text";
import { type State, isFiltered } from "./state";

type Times = Pick<State, "metric" | "from" | "to">;

// Whether an instant of the recording was chosen, not a range of it.
export function isInstant(state: Times): boolean {
  return state.metric === "live" && state.from === null && state.to !== null;
}

export function isWholeTime(state: Pick<State, "from" | "to">): boolean {
  return (state.from ?? 0) === 0 && (state.to ?? 1000) === 1000;
}

function at(trace: Trace, tenths: number): string {
  return durationText(cutTime(trace, tenths));
}

// "at the end", or "at 328 ms".
export function endWords(trace: Trace, state: Pick<State, "to">): string {
  return (state.to ?? 1000) === 1000 ? "at the end" : `at ${at(trace, state.to!)}`;
}

// "1 s to 2 s".
export function rangeWords(trace: Trace, state: Pick<State, "from" | "to">): string {
  return `${at(trace, state.from ?? 0)} to ${at(trace, state.to ?? 1000)}`;
}

// What is put behind a heading while a part of the time is looked at.
export function ofTime(trace: Trace, state: Pick<State, "from" | "to">): string {
  return isWholeTime(state) ? "" : `, ${rangeWords(trace, state)}`;
}

// What is live counts what processes never freed that have ended: the curve of what runs does not. Nothing
// if there are none.
export function leftByEnded(trace: Trace, state: State): string {
  if (state.metric !== "live" || state.process) return "";
  const last = Math.max(0, ...trace.processes.map((p) => p.end_ns ?? Infinity));
  const until = Math.min(cutTime(trace, state.to ?? 1000), last);
  const ended = trace.processes.filter((p) => (p.end_ns ?? Infinity) < until && p.live_bytes);
  const bytes = ended.reduce((sum, p) => sum + (p.live_bytes ?? 0), 0);
  if (bytes === 0) return "";
  const part = isFiltered(state) ? "some of it may have been" : `${bytesText(bytes)} of it were`;
  return `; ${part} left by processes that had ended by then, and are gone from the curve`;
}

// A metric with the time that it is of.
export function metricTitle(trace: Trace, state: Times): string {
  const { title } = metricWords(state.metric);
  if (state.metric === "live") return `Live ${endWords(trace, state)}`;
  if (state.metric === "leaked") {
    const when = isWholeTime(state) ? "in the recording" : `from ${rangeWords(trace, state)}`;
    return `Leaked (allocated ${when} and still live at its end)`;
  }
  if (isWholeTime(state)) return title;
  if (state.metric === "peak") return `Live at the peak of ${rangeWords(trace, state)}`;
  return `${title} from ${rangeWords(trace, state)}`;
}

// The same above a column, where there is little room.
export function metricColumn(trace: Trace, state: Times): string {
  const { short, title } = metricWords(state.metric);
  if (state.metric === "live") return endWords(trace, state);
  return state.metric === "peak" ? peakWords(trace, state) : (short ?? title.toLowerCase());
}

// The highest moment of a part of the time is another than that of the recording.
export function peakWords(trace: Trace, state: Pick<State, "from" | "to">): string {
  if (isWholeTime(state)) return "at peak";
  return (state.from ?? 0) === 0 ? `at peak until ${at(trace, state.to!)}` : "at peak of the range";
}

// What is compared with: "before: monday.mscope", or a time of the same recording. What is live is so at an
// instant, also where ranges had been compared: at their ends.
export function beforeWords(trace: Trace, state: State): string {
  if (state.base) return shown(trace.base?.name ?? "the other recording");
  const before = { from: state.before_from, to: state.before_to };
  return state.metric === "live" ? endWords(trace, before) : rangeWords(trace, before);
}

export function afterWords(trace: Trace, state: State): string {
  if (state.base) return shown(trace.name ?? "this recording");
  return state.metric === "live" ? endWords(trace, state) : rangeWords(trace, state);
}

export function comparedWords(trace: Trace, state: State): string {
  return `Since before (${beforeWords(trace, state)}), after (${afterWords(trace, state)}) has:`;
}
