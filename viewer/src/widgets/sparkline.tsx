// SPDX-License-Identifier: Apache-2.0
// A site's live bytes over time, small, over the curve of the whole heap: whether it follows the program
// or goes its own way is seen at a glance. Each curve has its own height.

export function Sparkline({
  values,
  all,
  width = 110,
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
      const x = (i * width) / (v.length - 1),
        y = height - 1 - ((height - 2) * v[i]!) / highest;
      d += `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    }
    return closed ? `${d}L${width} ${height}L0 ${height}Z` : d;
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

// `many` values taken at equal distances.
export function thinned(values: Float64Array, many: number): Float64Array {
  const out = new Float64Array(many);
  if (values.length === 0) return out;
  for (let i = 0; i < many; ++i)
    out[i] = values[Math.min(values.length - 1, Math.round((i * (values.length - 1)) / (many - 1)))]!;
  return out;
}
