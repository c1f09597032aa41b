// SPDX-License-Identifier: Apache-2.0
// A site's live bytes over time, small, over the curve of the whole heap: whether it follows the program
// or goes its own way is seen at a glance. Each curve has its own height.

export const sparkWidth = 104;

export function Sparkline({
  values,
  all,
  width = sparkWidth,
  height = 20,
}: {
  values: Float64Array;
  all: Float64Array | null;
  width?: number;
  height?: number;
}) {
  const path = (v: Float64Array, closed: boolean) => {
    let highest = 0;
    for (const x of v) if (x > highest) highest = x;
    if (v.length < 2 || highest <= 0) return "";
    let d = "";
    for (let i = 0; i < v.length; ++i) {
      const x = 1 + (i * (width - 2)) / (v.length - 1), // Half of the line is beside its end.
        y = height - 1 - ((height - 2) * v[i]!) / highest;
      d += `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    }
    return closed ? `${d}L${width - 1} ${height}L1 ${height}Z` : d;
  };
  return (
    <svg
      class="spark"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      aria-hidden="true"
      focusable="false"
    >
      {all && <path class="spark-all" d={path(all, true)} />}
      <path class="spark-own" d={path(values, false)} />
    </svg>
  );
}

// The highest of each of `parts` parts of equal length, as a site's own curve has it. With several curves,
// the highest of them all: what a process leaves when it ends is gone from `live_max`, but not from sites.
export function highestOf(parts: number, ...curves: Float64Array[]): Float64Array {
  const out = new Float64Array(parts);
  for (const values of curves)
    for (let i = 0; i < parts; ++i) {
      const first = Math.floor((i * values.length) / parts),
        end = Math.max(first + 1, Math.floor(((i + 1) * values.length) / parts));
      for (let k = first; k < end && k < values.length; ++k) out[i] = Math.max(out[i]!, values[k]!);
    }
  return out;
}

// What each of `parts` parts of equal length has, all its slices together.
export function sumsOf(parts: number, values: Float64Array): Float64Array {
  const out = new Float64Array(parts);
  for (let i = 0; i < parts; ++i) {
    const first = Math.floor((i * values.length) / parts),
      end = Math.floor(((i + 1) * values.length) / parts);
    for (let k = first; k < end; ++k) out[i]! += values[k]!;
  }
  return out;
}
