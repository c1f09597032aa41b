// SPDX-License-Identifier: Apache-2.0
// Rows that are filters, for the tables of several views: which is in force, what choosing one does, and the
// sentence below that says so.

import { usePage } from "../page";
import { isInForce, without } from "../row_filters";
import type { State } from "../state";

export interface RowChoice {
  chosen: number | null;
  onChoose?: (row: number) => void; // Not there where a file cannot tell it.
  says: string;
}

export function useRowChoice(): (by: string, rows: number, filter: (row: number) => Partial<State> | null) => RowChoice {
  const { state, change, source } = usePage();
  return (by, rows, filter) => {
    const refusal = source.refusal(by === "size" ? "min_size" : by);
    let chosen = -1;
    for (let row = 0; row < rows && chosen < 0; ++row) {
      const of = filter(row);
      if (of && isInForce(state, of)) chosen = row;
    }
    return {
      chosen: chosen < 0 ? null : chosen,
      says: refusal ?? `Choose a ${by} to see it alone in every view; a second time lets it go.`,
      ...(refusal
        ? {}
        : {
            onChoose: (row: number) => {
              const of = filter(row);
              if (of) change(isInForce(state, of) ? without(of) : of);
            },
          }),
    };
  };
}
