// SPDX-License-Identifier: Apache-2.0
// Who allocates and who frees, as a matrix of threads: what is beside the diagonal was freed by another
// thread than made it.

import { heatStep, inkOn, palette } from "../colors";
import type { Answer } from "../contract";
import { bytesText, grouped, shortCount } from "../format";
import { usePage } from "../page";
import { filterOf } from "../row_filters";
import { shown } from "../safe_text";
import { useRowChoice } from "../widgets/row_choice";
import { AnswerView, TimedHeading, numberIn, tableOf, textIn } from "./answer_table";

const most = 24;

export function ThreadsView() {
  const choice = useRowChoice();
  return (
    <AnswerView
      name="threads"
      draw={(answer) => <Matrix answer={answer} />}
      without={["matrix"]}
      choice={(table) =>
        table.key === "threads"
          ? choice("thread", table.rows.length, (row) => filterOf("thread", textIn(table, row, "thread")))
          : null
      }
    />
  );
}

function Matrix({ answer }: { answer: Answer }) {
  const { theme } = usePage();
  const p = palette(theme);
  const table = tableOf(answer, "matrix");
  if (!table || table.rows.length === 0) return null;
  const weight = new Map<string, number>(),
    cells = new Map<string, { frees: number; bytes: number }>();
  let all = 0;
  table.rows.forEach((_, r) => {
    const maker = textIn(table, r, "allocated_by"),
      said = textIn(table, r, "freed_by");
    const freer = said === "itself" ? maker : said;
    const frees = numberIn(table, r, "frees") ?? 0;
    const key = JSON.stringify([maker, freer]),
      was = cells.get(key) ?? { frees: 0, bytes: 0 };
    cells.set(key, { frees: was.frees + frees, bytes: was.bytes + (numberIn(table, r, "freed_bytes") ?? 0) });
    all += frees;
    // Pairs of different threads are what the matrix is for.
    const counts = maker === freer ? frees / 1000 : frees;
    for (const name of [maker, freer]) weight.set(name, (weight.get(name) ?? 0) + counts);
  });
  const names = [...weight]
    .sort((a, b) => b[1] - a[1])
    .slice(0, most)
    .map(([name]) => name)
    .sort();
  const left = weight.size - names.length;
  // Above a column there is little room: the number alone, if the names are all the same.
  const stems = new Set(names.map((n) => n.replace(/ \(\d+\)$/, "")));
  const alone = (name: string) => (stems.size > 1 ? name : (/\((\d+)\)$/.exec(name)?.[1] ?? name));
  return (
    <section>
      <TimedHeading>{table.title || "Who frees whose blocks"}</TimedHeading>
      <div class="matrix-scroll" tabIndex={0} role="region" aria-label="Who frees whose blocks">
        <table class="matrix">
          <thead>
            <tr>
              <th scope="col">allocated by \ freed by</th>
              {names.map((n) => (
                <th key={n} scope="col" class="turned" title={shown(n)}>
                  <span>
                    <bdi>{shown(alone(n))}</bdi>
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {names.map((maker) => (
              <tr key={maker}>
                <th scope="row">
                  <bdi>{shown(maker)}</bdi>
                </th>
                {names.map((freer) => {
                  const cell = cells.get(JSON.stringify([maker, freer]));
                  if (!cell) return <td key={freer} class={maker === freer ? "diagonal" : ""} />;
                  const fill = p.heat[heatStep(cell.frees / all)]!;
                  return (
                    <td
                      key={freer}
                      class={maker === freer ? "diagonal" : ""}
                      style={{ background: fill, color: inkOn(fill) }}
                      title={`${grouped(cell.frees)} blocks, ${bytesText(cell.bytes)}`}
                    >
                      {shortCount(cell.frees)}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {left > 0 && (
        <p class="muted">{`${grouped(left)} more threads, which free fewer blocks of others, are in the table below only.`}</p>
      )}
    </section>
  );
}
