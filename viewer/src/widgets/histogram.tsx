// SPDX-License-Identifier: Apache-2.0
// Bars with their labels and numbers beside them, lying, so that words have room; a list for screen readers.

import type { ComponentChildren } from "preact";

export interface Bar {
  label: string;
  amount: number;
  text: string;
  more?: ComponentChildren;
  set_apart?: boolean;
}

export function Histogram({ label, bars }: { label: string; bars: Bar[] }) {
  const highest = Math.max(1, ...bars.map((b) => b.amount));
  return (
    <ul class="histogram" aria-label={label}>
      {bars.map((b) => (
        <li key={b.label} class={b.set_apart ? "apart" : ""}>
          <span class="bar-label">{b.label}</span>
          <span class="bar-track" aria-hidden="true">
            <span style={{ width: `${b.amount > 0 ? Math.max(0.3, (100 * b.amount) / highest) : 0}%` }} />
          </span>
          <span class="bar-text">{b.text}</span>
          {b.more !== undefined && <span class="bar-more">{b.more}</span>}
        </li>
      ))}
    </ul>
  );
}
