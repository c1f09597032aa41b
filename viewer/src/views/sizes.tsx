// SPDX-License-Identifier: Apache-2.0
// Which sizes are asked for: a bar for each power of two, by number, by bytes or by what is live at the
// peak, above the tables.

import { useState } from "preact/hooks";
import type { Answer } from "../contract";
import { bytesText, grouped } from "../format";
import { Choice } from "../widgets/bits";
import { Histogram } from "../widgets/histogram";
import { AnswerView, numberIn, tableOf, textIn } from "./answer_table";

const measures = [
  ["allocations", "allocations"],
  ["allocated_bytes", "bytes allocated"],
  ["peak_bytes", "live at the peak"],
  ["live_bytes", "live at the end"],
] as const;

export function SizesView() {
  return <AnswerView name="sizes" draw={(answer) => <Classes answer={answer} />} without={["classes"]} />;
}

function Classes({ answer }: { answer: Answer }) {
  const [measure, setMeasure] = useState<(typeof measures)[number][0]>("allocations");
  const table = tableOf(answer, "classes");
  if (!table) return null;
  const text = measure === "allocations" ? grouped : bytesText;
  const bars = table.rows.map((_, r) => {
    const amount = numberIn(table, r, measure) ?? 0;
    return { label: textIn(table, r, "range"), amount, text: text(amount) };
  });
  return (
    <section>
      <div class="toolbar">
        <h2>By powers of two</h2>
        <Choice label="Show" value={measure} onChange={setMeasure} options={measures} />
      </div>
      <Histogram label={`Sizes by powers of two, ${measure}`} bars={bars} />
    </section>
  );
}
