// SPDX-License-Identifier: Apache-2.0
// Which sizes are asked for: a bar for each power of two, by number, by bytes or by what is live at the
// peak, above the tables.

import { useState } from "preact/hooks";
import type { Answer } from "../contract";
import { bytesText, grouped } from "../format";
import { usePage } from "../page";
import { filterOf } from "../row_filters";
import { endWords } from "../time_words";
import { Choice } from "../widgets/bits";
import { Histogram } from "../widgets/histogram";
import { useRowChoice } from "../widgets/row_choice";
import { AnswerView, TimedHeading, numberIn, tableOf, textIn } from "./answer_table";

const measures = [
  ["allocations", "allocations"],
  ["allocated_bytes", "bytes allocated"],
  ["peak_bytes", "live at the peak"],
  ["live_bytes", "live at the end"],
] as const;

type Measure = (typeof measures)[number][0];

export function SizesView() {
  const choice = useRowChoice();
  return (
    <AnswerView
      name="sizes"
      draw={(answer) => <Classes answer={answer} />}
      without={["classes"]}
      choice={(table) =>
        table.key === "sizes"
          ? choice("size", table.rows.length, (row) => {
              const size = numberIn(table, row, "size");
              return size === null ? null : { min_size: size, max_size: size };
            })
          : null
      }
    />
  );
}

function Classes({ answer }: { answer: Answer }) {
  const { state, trace } = usePage();
  const choice = useRowChoice();
  const [measure, setMeasure] = useState<Measure>("allocations");
  const table = tableOf(answer, "classes");
  if (!table) return null;
  const { chosen, onChoose, says } = choice("size", table.rows.length, (r) => filterOf("size", textIn(table, r, "range")));
  const text = measure === "allocations" ? grouped : bytesText;
  const bars = table.rows.map((_, r) => {
    const amount = numberIn(table, r, measure) ?? 0;
    const choose = onChoose && (() => onChoose(r));
    return { label: textIn(table, r, "range"), amount, text: text(amount), choose, chosen: r === chosen };
  });
  const options = measures.map(
    ([key, title]): [Measure, string] => [key, key === "live_bytes" ? `live ${endWords(trace, state)}` : title],
  );
  return (
    <section>
      <div class="toolbar">
        <TimedHeading>By powers of two</TimedHeading>
        <Choice label="Show" value={measure} onChange={setMeasure} options={options} />
      </div>
      <Histogram label={`Sizes by powers of two, ${measure}`} bars={bars} />
      <p class="muted">{says}</p>
    </section>
  );
}
