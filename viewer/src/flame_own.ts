// SPDX-License-Identifier: Apache-2.0
// What the functions of a flame graph hold, and what they hold themselves. From main inwards that is where stacks end; from the
// allocation outwards it is the first function, the one that allocates: its callers hold nothing themselves.

import { type Flame, kFunction, kRoot } from "./contract";

// The amounts of all nodes of a function together, by symbol.
export function sumsBySymbol(flame: Flame, amounts: Float64Array): Float64Array {
  const sums = new Float64Array(flame.symbols.name.length);
  for (let i = 0; i < amounts.length; ++i) if (flame.kind[i] === kFunction) sums[flame.symbol[i]!]! += amounts[i]!;
  return sums;
}

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
