// SPDX-License-Identifier: Apache-2.0
// Bars with their labels and numbers beside them, lying, so that words have room; a list for screen readers.

import type { ComponentChildren } from "preact";

export interface Bar {
  label: string;
  amount: number;
  text: string;
  more?: ComponentChildren;
  set_apart?: boolean;
  choose?: (() => void) | undefined; // What a click on it does,
  chosen?: boolean; // and whether it was done.
}

export function Histogram({ label, bars }: { label: string; bars: Bar[] }) {
  const highest = Math.max(1, ...bars.map((b) => b.amount));
  return (
    <ul class="histogram" aria-label={label}>
      {bars.map((b) => (
        <li key={b.label} class={b.set_apart ? "apart" : ""}>
          {b.choose ? (
            <button type="button" class="bar" aria-pressed={b.chosen === true} onClick={b.choose}>
              <Parts bar={b} highest={highest} />
            </button>
          ) : (
            <span class="bar">
              <Parts bar={b} highest={highest} />
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

function Parts({ bar, highest }: { bar: Bar; highest: number }) {
  return (
    <>
      <span class="bar-label">{bar.label}</span>
      <span class="bar-track" aria-hidden="true">
        <span style={{ width: `${bar.amount > 0 ? Math.max(0.3, (100 * bar.amount) / highest) : 0}%` }} />
      </span>
      <span class="bar-text">{bar.text}</span>
      {bar.more !== undefined && <span class="bar-more">{bar.more}</span>}
    </>
  );
}
