// SPDX-License-Identifier: Apache-2.0
// The timeline that is always there, above every view: the heap over time, in grey all of it and in
// colour what the filters leave. Brush a range, click an instant.

import { useMemo } from "preact/hooks";
import { palette } from "../colors";
import type { Timeline, Trace } from "../contract";
import { axisBytes, bytesText } from "../format";
import { metricWords, usePage } from "../page";
import { usePeak } from "../peak_mark";
import { phaseLanes } from "../phase_bands";
import { drawsRss } from "../rss_curve";
import { shown } from "../safe_text";
import type { Source } from "../source";
import { type State, curveQuestion, leavesOut, question } from "../state";
import { windowOf, zoomOf } from "../time_choice";
import { isWholeTime, metricTitle } from "../time_words";
import { useAnswer } from "../use_answer";
import { Chips } from "../widgets/filter_bar";
import { type Curve, TimeChart, byteSteps } from "../widgets/time_chart";

// The highest sample in each slice; between samples the last one goes on.
export function sampledOn(times: Float64Array, at: Float64Array, values: Float64Array): Float64Array {
  const out = new Float64Array(Math.max(0, times.length - 1));
  let k = 0,
    last = 0;
  for (let i = 0; i < out.length; ++i) {
    let highest = -1;
    for (; k < at.length && at[k]! < times[i + 1]!; ++k) {
      last = values[k]!;
      if (last > highest) highest = last;
    }
    out[i] = highest >= 0 ? highest : last;
  }
  return out;
}

// The same curve in other slices.
function stretched(values: Float64Array, slices: number): Float64Array {
  if (values.length === slices || values.length === 0) return values;
  return Float64Array.from({ length: slices }, (_, i) => values[Math.floor((i * values.length) / slices)]!);
}

export function useTimelines(): {
  all: Timeline | null;
  filtered: Timeline | null;
  error: string | null;
  unfiltered: string | null; // Why there is no curve of what the filters leave.
} {
  const { source, state, trace } = usePage();
  const nothing = new URLSearchParams();
  const filters = curveQuestion(state, "none");
  const drawn = trace.cuts_ns.length > 0;
  const all = useAnswer(drawn ? "all" : null, (signal) => source.timeline(nothing, "none", signal));
  const filtered = useAnswer(drawn && leavesOut(state) ? `${filters}` : null, (signal) =>
    source.timeline(filters, "none", signal),
  );
  return {
    all: all.value,
    filtered: filtered.value,
    error: all.error,
    unfiltered: filtered.busy ? null : filtered.error,
  };
}

// The zoom that all charts over time have together.
export function useZoom(): { window: [number, number] | null; zoom: (window: [number, number] | null) => void } {
  const { trace, state, change } = usePage();
  const window = useMemo(() => windowOf(trace, state.zoom), [trace, state.zoom]);
  return { window, zoom: (to) => change({ zoom: zoomOf(trace, to) }, false) };
}

// A file cannot tell every metric of a range; then another one is shown until the range is gone.
function switchedWords(trace: Trace, state: State, source: Source): string | null {
  if (isWholeTime(state) || state.metric === "live" || !state.metric_was) return null;
  if (!source.refusal("range", state.metric_was)) return null;
  return `"${metricWords(state.metric_was).title}" of a range is not in this file: it shows ${metricTitle(trace, state)}`;
}

export function Strip() {
  const { trace, theme, state, change, source } = usePage();
  const remarks = [switchedWords(trace, state, source), source.remark(question(state))].filter(Boolean);
  const { all, filtered, error, unfiltered } = useTimelines();
  const { window, zoom } = useZoom();
  const peak = usePeak();
  const lanes = useMemo(() => phaseLanes(trace.phases ?? [], 2), [trace]);
  const curves = useMemo(() => {
    if (!all) return [];
    const colours = palette(theme);
    const list: Curve[] = [];
    list.push(
      filtered
        ? { label: "All live", values: all.live_max, stroke: colours.vm, fill: colours.faint, width: 1 }
        : { label: "Live", values: all.live_max, stroke: colours.accent, fill: colours.accentFill },
    );
    if (filtered)
      list.push({
        label: "Live, filtered",
        values: stretched(filtered.live_max, all.slices),
        stroke: colours.accent,
        fill: colours.accentFill,
      });
    if (all.rss.length > 0) {
      const drawn = drawsRss(state, all, true);
      list.push({
        label: "RSS",
        values: sampledOn(all.time, all.rss_time, all.rss),
        stroke: colours.rss,
        width: 1.25,
        dash: [5, 3],
        off: !drawn,
        toggle: () => change({ rss: drawn ? "0" : "1" }, false),
      });
    }
    return list;
  }, [all, filtered, theme, state.rss]);
  return (
    <section class="strip" aria-label="Timeline">
      <div class="strip-chips">
        {unfiltered && (
          <span class="strip-note" role="status" title={shown(unfiltered)}>
            {`The curve is of everything: ${shown(unfiltered)}`}
          </span>
        )}
        {remarks.length > 0 && (
          <span class="strip-note" title={remarks.join("; ")}>
            {remarks.join("; ")}
          </span>
        )}
        <Chips />
        {window && (
          <button type="button" class="small" onClick={() => zoom(null)}>
            Zoom out
          </button>
        )}
      </div>
      {all && all.slices > 0 ? (
        <TimeChart
          label="Heap over time. Arrows move, Enter shows what is live there, Shift with arrows chooses a range, plus and minus zoom, Escape undoes the zoom, the range and the instant."
          times={all.time}
          curves={curves}
          height={104}
          text={bytesText}
          axisText={axisBytes}
          steps={byteSteps}
          {...peak}
          phases={trace.phases ?? []}
          lanes={lanes}
          marks={trace.marks ?? []}
          window={window}
          onWindow={zoom}
        />
      ) : null}
      {error && (
        <p class="sentence error" role="alert">
          {error}
        </p>
      )}
    </section>
  );
}
