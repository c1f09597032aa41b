// SPDX-License-Identifier: Apache-2.0
// Divides a rectangle among amounts so that the parts are as square as can be (Bruls, Huizing and van
// Wijk): a row is filled along the shorter side for as long as that makes its worst part squarer.

export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

// `amounts` from the largest down, all above 0.
export function squarify(amounts: number[], box: Box): Box[] {
  const out: Box[] = [];
  let { x, y, w, h } = box;
  let left = amounts.reduce((sum, a) => sum + a, 0);
  for (let i = 0; i < amounts.length;) {
    const side = Math.min(w, h),
      area = w * h;
    if (left <= 0 || area <= 0) {
      out.push({ x, y, w: 0, h: 0 });
      ++i;
      continue;
    }
    const scale = area / left;
    let sum = 0,
      end = i,
      worst = Infinity;
    while (end < amounts.length) {
      const next = sum + amounts[end]!;
      const thick = (next * scale) / side;
      const worse = (a: number) => Math.max(thick / ((a * scale) / thick), (a * scale) / thick / thick);
      const now = Math.max(worse(amounts[i]!), worse(amounts[end]!));
      if (now > worst) break;
      worst = now;
      sum = next;
      ++end;
    }
    const thick = (sum * scale) / side;
    let at = 0;
    for (; i < end; ++i) {
      const long = (amounts[i]! * scale) / thick;
      out.push(w >= h ? { x, y: y + at, w: thick, h: long } : { x: x + at, y, w: long, h: thick });
      at += long;
    }
    if (w >= h) ((x += thick), (w -= thick));
    else ((y += thick), (h -= thick));
    left -= sum;
  }
  return out;
}
