// SPDX-License-Identifier: Apache-2.0
// A curve over the time of the recording (uPlot draws it), on which a range can be brushed and an instant
// clicked, by pointer or by keys. Each point stands for a slice of time and has the highest value in it,
// so no peak is lost however small the chart is.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Mark, Phase } from "../contract";
import { palette } from "../colors";
import { axisTime, durationText } from "../format";
import { cutTime, usePage } from "../page";
import { saidOf } from "../phase_bands";
import { shown } from "../safe_text";
import { chosenInstant, chosenRange, nothingZoomed, wholeTime } from "../time_choice";
import { listen, sliceAt, zoomWindow } from "./time_chart_input";
import { bandHeight, drawBehind, drawOver, labelsHeight } from "./time_chart_marks";

export interface Curve {
  label: string;
  values: ArrayLike<number>; // One for each slice.
  stroke: string;
  fill?: string;
  width?: number;
  dash?: number[];
  quiet?: boolean; // Not in the legend.
  off?: boolean; // In the legend alone: not drawn.
  toggle?: () => void; // What a click on its name in the legend does.
}

export interface TimeChartProps {
  label: string;
  times: Float64Array; // The cuts between slices, one more than there are slices.
  curves: Curve[];
  height: number;
  text: (value: number) => string;
  axisText: (value: number, step: number) => string;
  steps?: number[]; // That the axis may go in.
  peak?: number | null;
  peakName?: string; // What the mark of it is called.
  phases?: Phase[];
  lanes?: Phase[][]; // The same as bands above the chart, with their names.
  marks?: Mark[];
  stacked?: boolean; // A curve is the sum of those below it: its own value is the difference.
  window: [number, number] | null; // What is visible, ns.
  onWindow: (window: [number, number] | null) => void;
}

function nothing(u: uPlot): boolean {
  return u.data.slice(1).every((values) => Array.from(values as number[]).every((v) => !v));
}

export const byteSteps = Array.from({ length: 52 }, (_, k) => 2 ** k);

export function TimeChart(props: TimeChartProps) {
  const { trace, source, state, change, theme } = usePage();
  const host = useRef<HTMLDivElement>(null),
    plot = useRef<uPlot | null>(null);
  const latest = useRef({ props, state, change, trace, source });
  latest.current = { props, state, change, trace, source };
  const [under, setUnder] = useState<number | null>(null); // A slice, below the pointer or the keys.
  const [keyCut, setKeyCut] = useState<number | null>(null);
  const colours = palette(theme);

  // The numbers as uPlot wants them: a step for each slice, and the last one twice.
  const n = props.times.length - 1;
  const lanes = props.lanes?.length ?? 0,
    above = (lanes > 0 ? 4 + lanes * bandHeight : 0) + labelsHeight(props),
    height = props.height + above - 8;
  useLayoutEffect(() => {
    const element = host.current!;
    if (n < 1) return;
    const curves = props.curves.filter((c) => !c.off);
    const data = [
      Array.from(props.times),
      ...curves.map((c) => {
        const out = new Array<number | null>(n + 1);
        for (let i = 0; i < n; ++i) out[i] = c.values[i] ?? null;
        out[n] = out[n - 1] ?? null;
        return out;
      }),
    ] as uPlot.AlignedData;
    const grid = { stroke: colours.line, width: 1 };
    const options: uPlot.Options = {
      width: Math.max(100, element.clientWidth),
      height,
      padding: [above, 26, 0, 0], // To the right, half of the last time.
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false, setScale: false }, points: { show: false } },
      scales: {
        x: { time: false, range: () => latest.current.props.window ?? [props.times[0]!, props.times[n]!] },
        y: { range: (_u, _min, max) => [0, max > 0 ? max * 1.04 : 1] },
      },
      axes: [
        {
          stroke: colours.muted,
          grid: { show: false },
          ticks: grid,
          size: 24,
          font: "11px system-ui, sans-serif",
          gap: 2,
          space: 70,
          values: (_u, splits) => splits.map((s) => axisTime(s, (splits[1] ?? 1) - (splits[0] ?? 0))),
        },
        {
          stroke: colours.muted,
          grid,
          ticks: grid,
          size: 66,
          font: "11px system-ui, sans-serif",
          gap: 3,
          ...(props.steps ? { incrs: props.steps } : {}),
          space: 26,
          // Where there is nothing, and where only whole numbers are, no axis has more than that.
          values: (u, splits) =>
            splits.map((s) =>
              (nothing(u) && s > 0) || !(s >= 1 || s === 0)
                ? ""
                : props.axisText(s, (splits[1] ?? 1) - (splits[0] ?? 0)),
            ),
        },
      ],
      series: [
        {},
        ...curves.map((c) => ({
          label: c.label,
          stroke: c.stroke,
          fill: c.fill,
          width: c.width ?? 1.5,
          dash: c.dash,
          points: { show: false },
          paths: uPlot.paths.stepped!({ align: 1 }),
        })),
      ],
      hooks: {
        drawClear: [(u) => drawBehind(u, latest.current.props, theme)],
        draw: [(u) => drawOver(u, latest.current, theme)],
        setCursor: [
          (u) => {
            const at = u.cursor.left === undefined || u.cursor.left < 0 ? null : u.posToVal(u.cursor.left, "x");
            setUnder(at === null ? null : sliceAt(latest.current.props.times, at));
          },
        ],
      },
    };
    const made = new uPlot(options, data, element);
    plot.current = made;
    listen(made, latest);
    const observer = new ResizeObserver(() =>
      made.setSize({ width: Math.max(100, element.clientWidth), height }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [props.times, props.curves, height, theme]);
  useLayoutEffect(() => {
    const u = plot.current;
    if (!u) return;
    const [min, max] = props.window ?? [props.times[0]!, props.times[n]!];
    if (u.scales.x!.min !== min || u.scales.x!.max !== max) u.setScale("x", { min, max });
  }, [props.window]);
  useEffect(
    () => plot.current?.redraw(false),
    [state.from, state.to, state.metric, state.before_from, state.before_to, props.peak, props.peakName, keyCut],
  );

  const keyDown = (event: KeyboardEvent) => {
    const here = keyCut ?? state.to ?? 500;
    const step = event.key.startsWith("Page") ? 50 : event.ctrlKey ? 10 : 1;
    const go = (by: number) => {
      const cut = Math.max(0, Math.min(1000, here + by));
      setKeyCut(cut);
      setUnder(sliceAt(props.times, cutTime(trace, cut)));
      if (event.shiftKey) {
        const anchor =
          state.from !== null && state.to === here
            ? state.from
            : state.to !== null && state.from === here
              ? state.to
              : here;
        change(chosenRange(state, source, Math.min(anchor, cut), Math.max(anchor, cut)), false);
      }
    };
    const keys: Record<string, () => void> = {
      ArrowLeft: () => go(-step),
      ArrowRight: () => go(step),
      PageDown: () => go(-step),
      PageUp: () => go(step),
      Home: () => go(-1000),
      End: () => go(1000),
      Enter: () => change(chosenInstant(state, here)),
      Escape: () => {
        setKeyCut(null);
        setUnder(null);
        change({ ...wholeTime(state), ...nothingZoomed });
      },
      "+": () => zoomWindow(props, cutTime(trace, here), 0.6),
      "=": () => zoomWindow(props, cutTime(trace, here), 0.6),
      "-": () => zoomWindow(props, cutTime(trace, here), 1 / 0.6),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]!();
  };

  const value = (k: number, slice: number) => {
    const own = props.curves[k]!.values[slice] ?? 0;
    if (!props.stacked) return own;
    const below = props.curves[k + 1];
    return own - (below && !below.quiet ? (below.values[slice] ?? 0) : 0);
  };
  const slice = under !== null && under >= 0 && under < n ? under : null;
  const said =
    slice === null
      ? ""
      : shown(saidOf(props.phases ?? [], props.marks ?? [], props.times[slice]!, props.times[slice + 1]!));
  const says =
    slice === null
      ? ""
      : [
          ...props.curves.map((c, k) => (c.quiet || c.off ? "" : `${c.label} ${props.text(value(k, slice))}`)),
          said,
        ]
          .filter(Boolean)
          .join(", ");
  const listed = props.stacked
    ? props.curves.map((c, k) => [c, k] as const).reverse()
    : props.curves.map((c, k) => [c, k] as const);
  return (
    <div class="chart">
      <div class="legend">
        <span class="legend-time">{slice === null ? "" : durationText(props.times[slice]!)}</span>
        {listed
          .filter(([c]) => !c.quiet)
          .map(([c, k]) => {
            const item = (
              <>
                <span
                  class={c.off ? "swatch hollow" : "swatch"}
                  style={c.off ? { borderColor: c.stroke } : { background: props.stacked ? c.fill : c.stroke }}
                  aria-hidden="true"
                />
                <bdi>{shown(c.label)}</bdi> {slice !== null && !c.off && <b>{props.text(value(k, slice))}</b>}
              </>
            );
            return c.toggle ? (
              <button
                key={k}
                type="button"
                class="legend-item toggles"
                aria-pressed={!c.off}
                title={c.off ? `Show ${c.label}` : `Hide ${c.label}`}
                onClick={c.toggle}
              >
                {item}
              </button>
            ) : (
              <span key={k} class="legend-item">
                {item}
              </span>
            );
          })}
        {said && (
          <span class="legend-item legend-said" title={said}>
            <bdi>{said}</bdi>
          </span>
        )}
      </div>
      <div
        class="plot"
        ref={host}
        tabIndex={0}
        role="slider"
        aria-label={props.label}
        aria-valuemin={0}
        aria-valuemax={1000}
        aria-valuenow={keyCut ?? state.to ?? 1000}
        aria-valuetext={`${durationText(cutTime(trace, keyCut ?? state.to ?? 1000))}. ${says}`}
        onKeyDown={keyDown}
        onBlur={() => {
          if (keyCut !== null) setUnder(null);
          setKeyCut(null);
        }}
        data-key-cut={keyCut ?? undefined}
      />
    </div>
  );
}
