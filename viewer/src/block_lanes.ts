// SPDX-License-Identifier: Apache-2.0
// Puts bars from birth to death into as few rows as possible: a bar takes the row whose last bar died
// first, if that was before it was born, else a new one. The number of rows is how many lived at once.

export interface Lanes {
  lane: Uint32Array;
  count: number;
}

export function lanesOf(born: Float64Array, died: Float64Array): Lanes {
  const n = born.length;
  const order = Uint32Array.from({ length: n }, (_, i) => i).sort((a, b) => born[a]! - born[b]! || a - b);
  const lane = new Uint32Array(n);
  // A heap of rows by when they become free.
  const rows: number[] = [],
    free: number[] = [];
  const less = (a: number, b: number) => free[rows[a]!]! < free[rows[b]!]!;
  const swap = (a: number, b: number) => ([rows[a], rows[b]] = [rows[b]!, rows[a]!]);
  for (const bar of order) {
    if (rows.length > 0 && free[rows[0]!]! <= born[bar]!) {
      lane[bar] = rows[0]!;
      free[rows[0]!] = died[bar]!;
      for (let i = 0; ;) {
        let next = i;
        for (const child of [2 * i + 1, 2 * i + 2]) if (child < rows.length && less(child, next)) next = child;
        if (next === i) break;
        swap(i, next);
        i = next;
      }
    } else {
      lane[bar] = free.length;
      rows.push(free.length);
      free.push(died[bar]!);
      for (let i = rows.length - 1; i > 0;) {
        const up = (i - 1) >> 1;
        if (!less(i, up)) break;
        swap(i, up);
        i = up;
      }
    }
  }
  return { lane, count: free.length };
}
