// SPDX-License-Identifier: Apache-2.0
// The mark of the peak on charts: when the heap that is looked at was highest, and what the mark is called
// where the curves are of a part of that heap.

import { isOneOfSeveral, peakTime, usePage } from "./page";
import { leavesOut } from "./state";
import { useAnswer } from "./use_answer";

export function usePeak(): { peak: number | null; peakName: string } {
  const { trace, state, source } = usePage();
  const one = isOneOfSeveral(trace, state);
  const question = new URLSearchParams({ metric: "peak", process: state.process });
  const asked = useAnswer(one ? `${question}` : null, (signal) => source.sites(question, "site", 1, signal));
  const part = leavesOut({ ...state, process: "" });
  return {
    peak: one ? (asked.busy ? null : (asked.value?.peak_time_ns ?? null)) : peakTime(trace, state),
    peakName: !part ? "peak" : one ? "peak of the process" : "peak of all",
  };
}
