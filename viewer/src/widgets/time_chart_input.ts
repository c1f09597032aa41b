// SPDX-License-Identifier: Apache-2.0
// The pointer on a chart: dragging brushes a range or moves an edge of it, a click is an instant, the wheel
// zooms and, with Shift, pans.

import type uPlot from "uplot";
import { type Page, cutTime, nearestCut } from "../page";
import { chosenInstant, chosenRange } from "../time_choice";
import type { TimeChartProps } from "./time_chart";

export interface Latest {
  props: TimeChartProps;
  state: Page["state"];
  change: Page["change"];
  trace: Page["trace"];
  source: Page["source"];
}

export function sliceAt(times: Float64Array, ns: number): number {
  let low = 0,
    high = times.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (times[middle]! <= ns) low = middle;
    else high = middle - 1;
  }
  return Math.min(low, times.length - 2);
}

export function zoomWindow(props: TimeChartProps, at: number, factor: number): void {
  const all: [number, number] = [props.times[0]!, props.times[props.times.length - 1]!];
  const [from, to] = props.window ?? all;
  const width = Math.max((all[1] - all[0]) / 500, (to - from) * factor);
  if (width >= all[1] - all[0]) return props.onWindow(null);
  const left = Math.min(Math.max(all[0], at - ((at - from) / (to - from)) * width), all[1] - width);
  props.onWindow([left, left + width]);
}

export function listen(u: uPlot, latest: { current: Latest }): void {
  const over = u.over;
  let anchor = 0,
    downX = 0,
    dragging = false,
    pushed = false,
    sent = 0;
  const cutAt = (event: PointerEvent | WheelEvent) => {
    const x = event.clientX - over.getBoundingClientRect().left;
    return nearestCut(latest.current.trace, u.posToVal(Math.max(0, Math.min(over.clientWidth, x)), "x"));
  };
  const brush = (event: PointerEvent) => {
    const cut = cutAt(event);
    const [from, to] = [Math.min(anchor, cut), Math.max(anchor, cut)];
    if (from === to) return;
    latest.current.change(chosenRange(latest.current.state, latest.current.source, from, to), !pushed);
    pushed = true;
  };
  over.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const { state, trace } = latest.current;
    downX = event.clientX;
    dragging = false;
    pushed = false;
    anchor = cutAt(event);
    // Near an edge of the range that is there, that edge is moved.
    const x = event.clientX - over.getBoundingClientRect().left;
    const near = (cut: number | null) => cut !== null && Math.abs(u.valToPos(cutTime(trace, cut), "x") - x) < 6;
    if (state.from !== null && state.to !== null) {
      if (near(state.from)) anchor = state.to;
      else if (near(state.to)) anchor = state.from;
    }
    over.setPointerCapture(event.pointerId);
  });
  over.addEventListener("pointermove", (event) => {
    if (!over.hasPointerCapture(event.pointerId)) return;
    if (!dragging && Math.abs(event.clientX - downX) < 4) return;
    dragging = true;
    if (performance.now() - sent < 90) return;
    sent = performance.now();
    brush(event);
  });
  over.addEventListener("pointerup", (event) => {
    if (!over.hasPointerCapture(event.pointerId)) return;
    over.releasePointerCapture(event.pointerId);
    if (dragging) brush(event);
    else latest.current.change(chosenInstant(latest.current.state, cutAt(event)));
  });
  over.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const x = event.clientX - over.getBoundingClientRect().left;
      const p = latest.current.props;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        if (!p.window) return;
        const [from, to] = p.window,
          first = p.times[0]!,
          last = p.times[p.times.length - 1]!;
        const by = Math.max(
          first - from,
          Math.min(last - to, ((event.deltaX || event.deltaY) * (to - from)) / over.clientWidth),
        );
        return p.onWindow([from + by, to + by]);
      }
      zoomWindow(p, u.posToVal(x, "x"), Math.exp(Math.max(-200, Math.min(200, event.deltaY)) * 0.002));
    },
    { passive: false },
  );
}
