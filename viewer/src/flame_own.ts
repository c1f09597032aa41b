// SPDX-License-Identifier: Apache-2.0
// What the functions of a flame graph hold themselves. From main inwards that is where stacks end; from the
// allocation outwards it is the first function, the one that allocates: its callers hold nothing themselves.

import { type Flame, kRoot } from "./contract";

// `inside` is how many functions of the way lie between all and the first node.
export function ownAmounts(flame: Flame, inverted: boolean, inside = 0): Float64Array {
  if (!inverted) return flame.self_of;
  const own = new Float64Array(flame.parent.length);
  const whole = flame.kind[0] === kRoot && inside === 0;
  for (let i = 0; i < own.length; ++i) {
    const allocates = whole ? i > 0 && flame.parent[i] === 0 : i === 0 && inside === 1;
    if (allocates) own[i] = flame.total_of[i]!;
  }
  return own;
}
