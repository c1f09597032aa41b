// SPDX-License-Identifier: Apache-2.0
// What is drawn on a chart besides its curves: phases above and behind them; over them the range, the instant, what
// it is compared with, the peak and the program's own marks. What they are called stands above the curves, which
// it must not cover.

import type uPlot from "uplot";
import { palette } from "../colors";
import { grouped } from "../format";
import { cutTime } from "../page";
import { bandText, bandsOf } from "../phase_bands";
import { shown } from "../safe_text";
import type { Latest } from "./time_chart_input";
import type { TimeChartProps } from "./time_chart";

const fewPhases = 12;
const mostLines = 30; // More are ticks at the edge.

export const bandHeight = 15; // With the gap below it.
const labelHeight = 14;

// Above the curves: a row of names, and one more where the program has set marks.
export function labelsHeight(props: TimeChartProps): number {
  return labelHeight * (props.marks?.length ? 2 : 1);
}

// Where names already stand in a row, in pixels.
export type Taken = [from: number, to: number][];

// To the right of its line, else to the left; null if there is no room, or behind what is there if it has to be.
export function placeOf(at: number, wide: number, edges: [number, number], taken: Taken, must: boolean): number | null {
  const fits = (left: number) =>
    left >= edges[0] && left + wide <= edges[1] && taken.every(([from, to]) => left + wide <= from || left >= to);
  const behind = taken.reduce((end, [, to]) => Math.max(end, to), edges[0]);
  const found = [at, at - wide, ...(must ? [behind] : [])].find(fits);
  if (found !== undefined) taken.push([found, found + wide]);
  return found ?? null;
}

export function drawBehind(u: uPlot, props: TimeChartProps, theme: "light" | "dark"): void {
  const { ctx, bbox } = u;
  const colours = palette(theme);
  const ratio = devicePixelRatio || 1;
  const phases = props.phases ?? [];
  if (phases.length === 0) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, 0, bbox.width, bbox.top + bbox.height);
  ctx.clip();
  const x = (ns: number) =>
    Math.max(bbox.left - ratio, Math.min(bbox.left + bbox.width + ratio, u.valToPos(ns, "x", true)));
  // A few shade the whole height; nothing could be seen through many.
  if (phases.length <= fewPhases) {
    ctx.fillStyle = colours.muted;
    phases.forEach((phase, i) => {
      ctx.globalAlpha = i % 2 ? 0.06 : 0.12;
      ctx.fillRect(x(phase.from_ns), bbox.top, Math.max(1, x(phase.to_ns) - x(phase.from_ns)), bbox.height);
    });
  }
  const lanes = props.lanes ?? [];
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  lanes.forEach((lane, row) => {
    const high = (bandHeight - 2) * ratio,
      top = bbox.top - ((lanes.length - row) * bandHeight + labelsHeight(props)) * ratio;
    const visible = lane.filter((p) => p.to_ns >= u.scales.x!.min! && p.from_ns <= u.scales.x!.max!);
    let free = -Infinity; // What has no room of its own lies on others, and is not named there.
    bandsOf(visible, x, 3 * ratio).forEach((band, i, all) => {
      const wide = Math.max(ratio, band.right - band.left);
      ctx.fillStyle = colours.muted;
      ctx.globalAlpha = i % 2 ? 0.2 : 0.32;
      ctx.fillRect(band.left, top, wide > 3 * ratio ? wide - ratio : wide, high);
      ctx.globalAlpha = 1;
      const text = shown(bandText(band)),
        needs = ctx.measureText(text).width + 8 * ratio;
      // Where it does not fit, beside it if there is room.
      const beside =
        needs > wide && band.right >= free && needs < (all[i + 1]?.left ?? bbox.left + bbox.width) - band.right;
      const own = beside || band.left >= free - ratio;
      free = Math.max(free, band.right);
      if (!own) return;
      ctx.fillStyle = beside ? colours.muted : colours.ink;
      ctx.fillText(
        beside ? text : fitting(ctx, text, wide - 8 * ratio),
        (beside ? band.right : band.left) + 4 * ratio,
        top + high / 2 + ratio / 2,
      );
    });
  });
  ctx.restore();
}

// As much of a name as there is room for; none if that says nothing.
function fitting(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  if (room <= 0) return "";
  const wide = ctx.measureText(text).width;
  if (wide <= room) return text;
  const letters = Math.floor((text.length * room) / wide) - 1;
  return letters >= 3 ? `${text.slice(0, letters)}\u2026` : "";
}

export function drawOver(u: uPlot, { props, state, trace }: Latest, theme: "light" | "dark"): void {
  const { ctx, bbox } = u;
  const colours = palette(theme);
  const ratio = devicePixelRatio || 1;
  const x = (ns: number) => Math.max(bbox.left, Math.min(bbox.left + bbox.width, u.valToPos(ns, "x", true)));
  const visible = (ns: number) => ns >= u.scales.x!.min! && ns <= u.scales.x!.max!;
  const edges: [number, number] = [bbox.left, bbox.left + bbox.width + 20 * ratio];
  const rows: Taken[] = [[], []];
  const line = (ns: number, colour: string, dash: number[], name: string, row = 0) => {
    if (!visible(ns)) return;
    const at = Math.round(x(ns)) + 0.5;
    ctx.strokeStyle = ctx.fillStyle = colour;
    ctx.lineWidth = ratio;
    ctx.setLineDash(dash.map((d) => d * ratio));
    ctx.beginPath();
    ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    const wide = ctx.measureText(name).width + 8 * ratio;
    // Of marks, names that would lie on each other are left out; a nearer look has them.
    const left = name ? placeOf(at, wide, edges, rows[row]!, row === 0) : null;
    const above = left === null ? 0 : labelHeight * (row + 1) * ratio;
    ctx.moveTo(at, bbox.top - above);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    if (left !== null) ctx.fillText(name, left + 4 * ratio, bbox.top - (labelHeight * row + 3.5) * ratio);
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
    line(cutTime(trace, state.from ?? 0), colours.accent, [], "");
    line(cutTime(trace, state.to ?? 1000), colours.accent, [], "");
  }
  if (props.peak !== null && props.peak !== undefined)
    line(props.peak, colours.peak, [3, 3], props.peakName ?? "peak");
  if (state.metric === "live" && state.to !== null) line(cutTime(trace, state.to), colours.accent, [], "live here");
  if (state.before_from !== null || state.before_to !== null) {
    const right = x(cutTime(trace, state.before_to ?? 1000));
    const left = state.metric === "live" ? right : x(cutTime(trace, state.before_from ?? 0));
    if (left === right) line(cutTime(trace, state.before_to ?? 1000), colours.rss, [], "before");
    ctx.fillStyle = colours.rss;
    ctx.globalAlpha = 0.9;
    ctx.fillRect(left, bbox.top + bbox.height - 4 * ratio, Math.max(2, right - left), 4 * ratio);
    ctx.globalAlpha = 1;
  }
  const named = (things: { at: number; name: string; times: number }[], dash: number[]) => {
    const inView = things.filter((t) => visible(t.at));
    if (inView.length > mostLines) {
      ctx.fillStyle = colours.muted;
      ctx.globalAlpha = 0.6;
      for (const { at } of inView) ctx.fillRect(Math.round(x(at)), bbox.top, ratio, 4 * ratio);
      ctx.globalAlpha = 1;
      return;
    }
    for (const { at, name, times } of inView)
      line(at, colours.muted, dash, times > 1 ? `${shown(name)} × ${grouped(times)}` : shown(name), 1);
  };
  named((props.marks ?? []).map((m) => ({ ...m, at: m.time_ns })), [2, 4]);
  const keyed = u.root.parentElement?.dataset.keyCut;
  if (keyed !== undefined) line(cutTime(trace, Number(keyed)), colours.ink, [2, 2], "");
  ctx.restore();
}
