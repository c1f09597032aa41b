// SPDX-License-Identifier: Apache-2.0
// Instead of an answer that is empty: why it is, and what is there all the same, to be looked at with a click.

import { emptiness } from "../empty_words";
import { usePage } from "../page";
import { question } from "../state";
import { isWholeTime } from "../time_words";
import { useAnswer } from "../use_answer";
import { Waiting } from "./bits";

// With `view`, it is looked at there: where it was asked for shows one metric alone.
export function Nothing({ metric, view }: { metric: string; view?: string }) {
  const { trace, state, change, source } = usePage();
  const q = question({ ...state, metric: "allocated" }, ["before_from", "before_to", "base"]);
  const asked = useAnswer(`${q}`, (signal) => source.sites(q, "site", 1, signal));
  const refused = (other: string) =>
    source.refusal("metric", other) ?? (isWholeTime(state) ? null : source.refusal("range", other));
  return (
    <Waiting asked={asked} what="Looking for what there is">
      {({ totals }) => {
        const { why, matches, instead } = emptiness(trace, state, metric, totals ?? {});
        const offered = instead.filter((other) => refused(other.metric) === null);
        return (
          <p class="sentence">
            {why}
            {offered.length > 0 && ` ${matches} look at `}
            {offered.map((other, i) => (
              <>
                {i > 0 && (i < offered.length - 1 ? ", " : " or ")}
                <button
                  key={other.metric}
                  type="button"
                  class="link"
                  onClick={() => change({ metric: other.metric, sort: "", ...(view ? { view } : {}) })}
                >
                  {other.title}
                </button>
              </>
            ))}
            {offered.length > 0 && "."}
          </p>
        );
      }}
    </Waiting>
  );
}
