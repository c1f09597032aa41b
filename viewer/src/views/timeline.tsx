// SPDX-License-Identifier: Apache-2.0
// The timeline in large: live bytes alone with RSS and VmSize, or stacked by process, thread, site or
// phase; below it how many blocks are live, how fast the program allocates and how many CPUs it uses, on
// the same time.

import { useMemo } from "preact/hooks";
import { callRates } from "../call_rates";
import { mixed, palette } from "../colors";
import type { Timeline } from "../contract";
import { cpuCurve } from "../cpu_curve";
import { axisBytes, axisCount, bytesText, durationText, grouped, rateText } from "../format";
import { usePage } from "../page";
import { usePeak } from "../peak_mark";
import { phaseLanes } from "../phase_bands";
import { drawsRss, rssBetweenSamples } from "../rss_curve";
import { cutsAround, refined } from "../refined_timeline";
import { shown } from "../safe_text";
import { curveQuestion, leavesOut } from "../state";
import { useAnswer } from "../use_answer";
import { Choice, Waiting } from "../widgets/bits";
import { type Curve, TimeChart, byteSteps } from "../widgets/time_chart";
import { sampledOn, useZoom } from "./strip";

export function TimelineView() {
  const { state, change, source, trace } = usePage();
  const question = curveQuestion(state, state.by);
  const drawn = trace.cuts_ns.length > 0;
  const detail = useDetail();
  const asked = useAnswer(drawn ? `${state.by}?${question}` : null, (signal) => source.timeline(question, state.by, signal));
  const sized = state.by === "none" && !leavesOut(state) ? asked.value : null; // Of all together.
  const ways: [string, string][] = [
    ["none", "all together"],
    ["process", "process"],
    ["thread", "thread"],
    ["site", "site"],
  ];
  if (trace.phases?.length) ways.push(["phase", "phase"]);
  if (!drawn)
    return (
      <p class="sentence">
        {trace.totals.allocations
          ? "This trace has no index, so there is no curve of it."
          : "Nothing was recorded, so there is nothing to draw."}
      </p>
    );
  return (
    <div class="view scrolls">
      <div class="toolbar">
        <Choice
          label="Live bytes by"
          value={state.by}
          onChange={(by) => change({ by })}
          options={ways.map(([by, title]) => [by, title, source.refusal("by", by)] as const)}
        />
        {sized && sized.rss.length > 0 && (
          <label class="check">
            <input
              type="checkbox"
              checked={drawsRss(state, sized, false)}
              onChange={(e) => change({ rss: e.currentTarget.checked ? "1" : "0" }, false)}
            />
            RSS
          </label>
        )}
        {sized && sized.vm_size.length > 0 && (
          <label class="check">
            <input type="checkbox" checked={state.vm} onChange={(e) => change({ vm: e.currentTarget.checked }, false)} />
            VmSize
          </label>
        )}
        <span class="hint">Drag chooses a range, a click what is live there, the wheel zooms</span>
      </div>
      <Waiting asked={asked} what="Drawing the curves">
        {(timeline) => <Charts timeline={timeline} detail={detail} />}
      </Waiting>
    </div>
  );
}

// What is in view, in finer slices, once they are there.
function useDetail(): Timeline | null {
  const { state, trace, source } = usePage();
  const { window } = useZoom();
  const question = curveQuestion(state, state.by);
  const cuts = source.detail && state.by === "none" ? cutsAround(trace, window) : null;
  const key = cuts && `${cuts.join("-")}?${question}`;
  const asked = useAnswer(key, (signal) => source.detail!(question, ...cuts!, signal));
  return asked.key === key ? asked.value : null;
}

function Charts({ timeline: coarse, detail }: { timeline: Timeline; detail: Timeline | null }) {
  const timeline = useMemo(
    () => (detail && coarse.by === "none" ? refined(coarse, detail) : coarse),
    [coarse, detail],
  );
  const { state, change, trace, theme } = usePage();
  const { window, zoom } = useZoom();
  const p = palette(theme);
  const n = timeline.slices;
  const stacked = timeline.by !== "none" && timeline.groups.length > 0 && timeline.group_live.length >= n;
  const live = useMemo<Curve[]>(() => {
    if (stacked) return stackedCurves(timeline, p.series);
    const list: Curve[] = [
      {
        label: leavesOut(state) ? "Live, filtered" : "Live",
        values: timeline.live_max,
        stroke: p.accent,
        fill: p.accentFill,
      },
    ];
    if (timeline.rss.length > 0 && !leavesOut(state)) {
      const drawn = drawsRss(state, timeline, false);
      list.push({
        label: "RSS",
        values: sampledOn(timeline.time, timeline.rss_time, timeline.rss),
        stroke: p.rss,
        dash: [6, 3],
        off: !drawn,
        toggle: () => change({ rss: drawn ? "0" : "1" }, false),
      });
    }
    if (state.vm && timeline.vm_size.length > 0 && !leavesOut(state))
      list.push({
        label: "VmSize",
        values: sampledOn(timeline.time, timeline.vm_time, timeline.vm_size),
        stroke: p.vm,
        dash: [2, 3],
        toggle: () => change({ vm: false }, false),
      });
    return list;
  }, [timeline, state.rss, state.vm, theme]);
  const lanes = useMemo(() => phaseLanes(trace.phases ?? [], 3), [trace]);
  const rates = useMemo(() => {
    const { time, allocations, frees } = callRates(timeline);
    const perSecond = (v: Float64Array) =>
      v.map((x, i) => x / Math.max(1e-9, (timeline.time[i + 1]! - timeline.time[i]!) / 1e9));
    return {
      time,
      calls: [
        // One as an area and one as a line: two lines would lie on each other.
        {
          label: frees.length > 0 ? "Allocations a second" : "Allocations a second (frees of such blocks are not known)",
          values: allocations,
          stroke: mixed(p.series[2]!, p.panel, 0.55),
          fill: mixed(p.series[2]!, p.panel, 0.55),
          width: 0,
        },
        ...(frees.length > 0 ? [{ label: "Frees a second", values: frees, stroke: p.series[5]!, width: 1.25 }] : []),
      ] as Curve[],
      bytes: [
        { label: "Bytes allocated a second", values: perSecond(timeline.allocated), stroke: p.series[7]!, width: 1 },
      ] as Curve[],
      blocks: [{ label: "Live blocks", values: timeline.running_blocks, stroke: p.series[0]!, fill: p.accentFill }] as Curve[],
    };
  }, [timeline, theme]);
  // Of finer slices it is not known.
  const cpus = useMemo(() => cpuCurve(coarse), [coarse]);
  const peak = usePeak();
  if (n === 0) return <p class="sentence">Nothing was recorded, so there is nothing to draw.</p>;
  const rssNote = live.some((c) => c.label === "RSS" && !c.off) ? rssBetweenSamples(trace.peak_rss_bytes, coarse.rss) : "";
  const same = {
    times: timeline.time,
    window,
    onWindow: zoom,
    phases: trace.phases ?? [],
    marks: trace.marks ?? [],
    ...peak,
  };
  return (
    <div class="charts">
      {window && (
        <p class="muted">
          {`${durationText(window[0])} to ${durationText(window[1])} `}
          <button type="button" class="small" onClick={() => zoom(null)}>
            Whole time
          </button>
        </p>
      )}
      <h2>
        {stacked
          ? `Live bytes by ${timeline.by}`
          : leavesOut(state)
            ? "Live bytes that the filters leave"
            : "Live bytes"}{" "}
        <span class="muted">
          {stacked
            ? `(as they were at the end of each of ${grouped(n)} steps of time)`
            : timeline.exact_max
              ? detail
                ? `(${grouped(detail.slices)} steps of the time in view, of each the highest moment)`
                : `(${grouped(n)} steps of time, of each the highest moment)`
              : `(${grouped(n)} steps of time, of each its begin or its end: a short peak in between is not seen)`}
        </span>
      </h2>
      {rssNote && <p class="caption">{rssNote}.</p>}
      <TimeChart
        {...same}
        lanes={lanes}
        label="Live bytes over time"
        curves={live}
        height={250}
        text={bytesText}
        axisText={axisBytes}
        steps={byteSteps}
        stacked={stacked}
      />
      <div class="side-by-side">
        <section>
          <h2>Live blocks</h2>
          <TimeChart
            {...same}
            label="Live blocks over time"
            curves={rates.blocks}
            height={130}
            text={grouped}
            axisText={axisCount}
          />
        </section>
        <section>
          <h2>Calls</h2>
          <TimeChart
            {...same}
            times={rates.time}
            label="Calls a second over time"
            curves={rates.calls}
            height={130}
            text={rateText}
            axisText={axisCount}
          />
        </section>
      </div>
      <h2>Bytes allocated</h2>
      <TimeChart
        {...same}
        label="Bytes allocated a second over time"
        curves={rates.bytes}
        height={130}
        text={bytesText}
        axisText={axisBytes}
        steps={byteSteps}
      />
      {cpus && (
        <>
          <h2>
            {leavesOut(state) ? "CPUs that the filters leave busy" : "CPUs in use"}{" "}
            <span class="muted">(CPU time in each step, by how long that is)</span>
          </h2>
          <TimeChart
            {...same}
            times={cpus.time}
            label="CPUs in use over time"
            curves={[{ label: "CPUs", values: cpus.busy, stroke: p.series[3]!, fill: p.accentFill, width: 1 }]}
            height={130}
            text={rateText}
            axisText={rateText}
          />
        </>
      )}
      <GroupTable timeline={timeline} stacked={stacked} />
    </div>
  );
}

// The first curve is the sum of all groups, the last the heaviest alone: drawn one over the other.
function stackedCurves(timeline: Timeline, colours: string[]): Curve[] {
  const { slices: n, groups, group_live: live } = timeline;
  const sum = new Float64Array(n),
    list: Curve[] = [];
  groups.forEach((group, g) => {
    for (let i = 0; i < n; ++i) sum[i]! += live[g * n + i] ?? 0;
    const last = g === groups.length - 1 && /^([\d,]+ )?others/.test(group.name);
    const colour = colours[last ? colours.length - 1 : g % (colours.length - 1)]!;
    list.unshift({ label: shown(group.name), values: sum.slice(), stroke: colour, fill: colour, width: 0.5 });
  });
  return list;
}

// The same for those who do not see the curves.
function GroupTable({ timeline, stacked }: { timeline: Timeline; stacked: boolean }) {
  const n = timeline.slices;
  if (!stacked) {
    const moments = Array.from({ length: 11 }, (_, i) => Math.min(n - 1, Math.round((i * (n - 1)) / 10)));
    return (
      <div class="unseen">
        <table>
          <caption>The heap at eleven moments</caption>
          <thead>
            <tr>
              <th>Time</th>
              <th>Live bytes</th>
              <th>Live blocks</th>
            </tr>
          </thead>
          <tbody>
            {moments.map((i) => (
              <tr key={i}>
                <th scope="row">{durationText(timeline.time[i + 1]!)}</th>
                <td>{bytesText(timeline.live[i] ?? 0)}</td>
                <td>{grouped(timeline.blocks[i] ?? 0)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    );
  }
  return (
    <div class="unseen">
      <table>
        <caption>{`Highest live bytes by ${timeline.by}`}</caption>
        <tbody>
          {timeline.groups.map((g, k) => (
            <tr key={k}>
              <th scope="row">{shown(g.name)}</th>
              <td>{bytesText(timeline.group_live.subarray(k * n, (k + 1) * n).reduce((a, b) => Math.max(a, b), 0))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
