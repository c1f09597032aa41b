// SPDX-License-Identifier: Apache-2.0
// What is drawn on a chart besides its curves: phases behind them; over them the range, the instant, what
// it is compared with, the peak and the program's own marks.

import type uPlot from "uplot";
import { palette } from "../colors";
import { grouped } from "../format";
import { cutTime } from "../page";
import { shown } from "../safe_text";
import type { Latest } from "./time_chart_input";
import type { TimeChartProps } from "./time_chart";

const fewPhases = 12;
const mostLines = 30; // More are ticks at the edge.

export function drawBehind(u: uPlot, props: TimeChartProps, theme: "light" | "dark"): void {
  const { ctx, bbox } = u;
  const colours = palette(theme);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  // A few shade the whole height; many are bars along the bottom, or nothing could be seen through them.
  const phases = props.phases ?? [];
  const few = phases.length <= fewPhases;
  const high = few ? bbox.height : Math.min(bbox.height, 5 * (devicePixelRatio || 1));
  phases.forEach((phase, i) => {
    const left = u.valToPos(phase.from_ns, "x", true),
      right = u.valToPos(phase.to_ns, "x", true);
    ctx.globalAlpha = few ? (i % 2 ? 0.05 : 0.11) : i % 2 ? 0.3 : 0.6;
    ctx.fillStyle = colours.ink;
    ctx.fillRect(left, bbox.top + bbox.height - high, Math.max(1, right - left), high);
  });
  ctx.restore();
}

export function drawOver(u: uPlot, { props, state, trace }: Latest, theme: "light" | "dark"): void {
  const { ctx, bbox } = u;
  const colours = palette(theme);
  const ratio = devicePixelRatio || 1;
  const x = (ns: number) => Math.max(bbox.left, Math.min(bbox.left + bbox.width, u.valToPos(ns, "x", true)));
  const visible = (ns: number) => ns >= u.scales.x!.min! && ns <= u.scales.x!.max!;
  const line = (ns: number, colour: string, dash: number[], name: string, row: number) => {
    if (!visible(ns)) return;
    const at = Math.round(x(ns)) + 0.5;
    ctx.strokeStyle = ctx.fillStyle = colour;
    ctx.lineWidth = ratio;
    ctx.setLineDash(dash.map((d) => d * ratio));
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    if (!name) return;
    ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    const wide = ctx.measureText(name).width;
    const right = at + wide + 8 * ratio > bbox.left + bbox.width;
    const left = right ? at - wide - 4 * ratio : at + 4 * ratio,
      top = bbox.top + (11 + 14 * row) * ratio;
    ctx.save();
    ctx.globalAlpha = 0.8;
    ctx.fillStyle = colours.panel;
    ctx.fillRect(left - 2 * ratio, top - 10 * ratio, wide + 4 * ratio, 13 * ratio);
    ctx.restore();
    ctx.fillText(name, left, top);
  };
  ctx.save();
  if (state.from !== null || (state.to !== null && state.metric !== "live")) {
    const left = x(cutTime(trace, state.from ?? 0)),
      right = x(cutTime(trace, state.to ?? 1000));
    ctx.fillStyle = colours.panel;
    ctx.globalAlpha = 0.66;
    ctx.fillRect(bbox.left, bbox.top, left - bbox.left, bbox.height);
    ctx.fillRect(right, bbox.top, bbox.left + bbox.width - right, bbox.height);
    ctx.globalAlpha = 1;
    line(cutTime(trace, state.from ?? 0), colours.accent, [], "", 0);
    line(cutTime(trace, state.to ?? 1000), colours.accent, [], "", 0);
  }
  if (state.before_from !== null || state.before_to !== null) {
    const right = x(cutTime(trace, state.before_to ?? 1000));
    const left =
      state.metric === "live" && state.before_from === null ? right : x(cutTime(trace, state.before_from ?? 0));
    if (left === right) line(cutTime(trace, state.before_to ?? 1000), colours.rss, [], "before", 1);
    ctx.fillStyle = colours.rss;
    ctx.globalAlpha = 0.9;
    ctx.fillRect(left, bbox.top + bbox.height - 4 * ratio, Math.max(2, right - left), 4 * ratio);
    ctx.globalAlpha = 1;
  }
  if (props.peak !== null && props.peak !== undefined) line(props.peak, colours.peak, [3, 3], "peak", 0);
  if (state.metric === "live" && state.to !== null) line(cutTime(trace, state.to), colours.accent, [], "live here", 1);
  // Names that would lie on each other are left out; the table of phases and a nearer look have them.
  const named = (things: { at: number; name: string; times: number }[], dash: number[], rows: number[]) => {
    const free = rows.map(() => -Infinity);
    const inView = things.filter((t) => visible(t.at));
    if (inView.length > mostLines) {
      ctx.fillStyle = colours.muted;
      for (const { at } of inView) ctx.fillRect(Math.round(x(at)), bbox.top, ratio, 6 * ratio);
      return;
    }
    ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
    for (const { at, name, times } of inView) {
      const text = times > 1 ? `${shown(name)} × ${grouped(times)}` : shown(name);
      const row = free.findIndex((until) => x(at) >= until);
      if (row >= 0) free[row] = x(at) + ctx.measureText(text).width + 10 * ratio;
      line(at, colours.muted, dash, row < 0 ? "" : text, rows[row] ?? 0);
    }
  };
  named((props.marks ?? []).map((m) => ({ ...m, at: m.time_ns })), [2, 4], [2]);
  if (props.height > 150) {
    // One that began before what is in view is named at the edge.
    const edge = u.scales.x!.min!;
    const open = (props.phases ?? []).filter((p) => p.to_ns > edge);
    named(open.map((p) => ({ ...p, at: Math.max(p.from_ns, edge) })), [1, 3], [3, 4, 5]);
  }
  const keyed = u.root.parentElement?.dataset.keyCut;
  if (keyed !== undefined) line(cutTime(trace, Number(keyed)), colours.ink, [2, 2], "", 0);
  ctx.restore();
}
