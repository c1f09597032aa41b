// SPDX-License-Identifier: Apache-2.0
// Lines that are drawn once and never zoomed, with two axes and a legend: for results of which there are a
// thousand points at most. Lines differ in colour and in their dashes. What grows over time in a trace is
// time_chart's.

import { palette } from "../colors";
import { usePage } from "../page";
import { shown } from "../safe_text";

export interface Line {
  name: string;
  points: [x: number, y: number][]; // A y that is not finite leaves a gap.
}

export interface Tick {
  at: number;
  text: string;
}

export interface LineChartProps {
  label: string;
  lines: Line[];
  x: { from: number; to: number; ticks: Tick[] };
  y: { from: number; to: number; ticks: Tick[] }; // What lies beyond is drawn at the edge.
  dots?: boolean; // Where points are few, each is seen.
}

const dashes = ["", "7 3", "2 3", "9 3 2 3", "4 2", "12 4"];
const width = 640,
  height = 220,
  left = 62,
  right = 26,
  bottom = 24,
  top = 8;

export function LineChart({ label, lines, x, y, dots }: LineChartProps) {
  const { theme } = usePage();
  const p = palette(theme);
  const at = (v: number, scale: { from: number; to: number }, a: number, b: number) =>
    a + (b - a) * Math.min(1, Math.max(0, (v - scale.from) / (scale.to - scale.from || 1)));
  const px = (v: number) => at(v, x, left, width - right);
  const py = (v: number) => at(v, y, height - bottom, top);
  const path = (points: Line["points"]) => {
    let pen = "M";
    return points
      .map(([vx, vy]) => {
        if (!Number.isFinite(vy)) return ((pen = "M"), "");
        const step = `${pen}${px(vx).toFixed(1)} ${py(vy).toFixed(1)}`;
        pen = "L";
        return step;
      })
      .join("");
  };
  return (
    <figure class="line-chart">
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
        {y.ticks.map((t) => (
          <g key={t.at}>
            <line x1={left} x2={width - right} y1={py(t.at)} y2={py(t.at)} stroke={p.line} />
            <text x={left - 6} y={py(t.at) + 4} text-anchor="end" fill={p.muted}>
              {t.text}
            </text>
          </g>
        ))}
        {x.ticks.map((t) => (
          <text key={t.at} x={px(t.at)} y={height - 7} text-anchor="middle" fill={p.muted}>
            {t.text}
          </text>
        ))}
        {lines.map((l, i) => (
          <g key={l.name} stroke={p.series[i % p.series.length]} fill="none">
            <path d={path(l.points)} stroke-width="1.8" stroke-dasharray={dashes[i % dashes.length]} />
            {dots &&
              l.points.map(
                ([vx, vy]) =>
                  Number.isFinite(vy) && (
                    <circle key={vx} cx={px(vx)} cy={py(vy)} r="2.4" fill={p.series[i % p.series.length]} />
                  ),
              )}
          </g>
        ))}
      </svg>
      <figcaption class="legend">
        {lines.map((l, i) => (
          <span key={l.name} class="legend-inline">
            <svg viewBox="0 0 26 8" width="26" height="8" aria-hidden="true">
              <line
                x2="26"
                y1="4"
                y2="4"
                stroke={p.series[i % p.series.length]}
                stroke-width="2"
                stroke-dasharray={dashes[i % dashes.length]}
              />
            </svg>
            <bdi>{shown(l.name)}</bdi>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
