// SPDX-License-Identifier: Apache-2.0
// How long blocks live: a bar for each power of two of nanoseconds, and where the answer has it, a map of
// lifetime by size, in which short and small, or long and large, are told apart.

import { heatStep, inkOn, palette } from "../colors";
import type { Answer, AnswerTable } from "../contract";
import { bytesText, durationText, grouped, percentText } from "../format";
import { usePage } from "../page";
import { Histogram } from "../widgets/histogram";
import { AnswerView, TimedHeading, numberIn, tableOf, textIn } from "./answer_table";

// What was measured as nothing: it lived for less than a step, but nobody knows how much less.
const shortest = "shorter than the clock's step";

export function LifetimesView() {
  return <AnswerView name="lifetimes" draw={(answer) => <Drawn answer={answer} />} without={["histogram", "map"]} />;
}

function Drawn({ answer }: { answer: Answer }) {
  const table = tableOf(answer, "histogram"),
    map = tableOf(answer, "map");
  return (
    <div class={map ? "side-by-side with-map" : "side-by-side"}>
      {table && (
        <section>
          <TimedHeading>{table.title}</TimedHeading>
          <Histogram
            label={table.title}
            bars={table.rows.map((_, r) => {
              const blocks = numberIn(table, r, "blocks") ?? 0;
              return {
                label: numberIn(table, r, "from_ns") === 0 ? shortest : textIn(table, r, "lived"),
                amount: blocks,
                text: grouped(blocks),
                set_apart: numberIn(table, r, "from_ns") === null,
              };
            })}
          />
        </section>
      )}
      {map && <LifetimeMap table={map} />}
    </div>
  );
}

// Rows are lifetimes, columns are sizes; a cell has a row of the table: from_ns (null: never freed),
// from_size, blocks, bytes.
function LifetimeMap({ table }: { table: AnswerTable }) {
  const { theme } = usePage();
  const p = palette(theme);
  const cells = new Map<string, { blocks: number; bytes: number }>();
  const lives = new Set<number>(),
    sizes = new Set<number>();
  let all = 0;
  table.rows.forEach((_, r) => {
    const life = numberIn(table, r, "from_ns") ?? Infinity,
      size = numberIn(table, r, "from_size") ?? 0;
    const blocks = numberIn(table, r, "blocks") ?? 0;
    cells.set(`${life}/${size}`, { blocks, bytes: numberIn(table, r, "bytes") ?? 0 });
    lives.add(life);
    sizes.add(size);
    all += blocks;
  });
  const rows = [...lives].sort((a, b) => a - b),
    columns = [...sizes].sort((a, b) => a - b);
  const life = (ns: number) =>
    ns === Infinity ? "never freed" : ns === 0 ? "less than a step" : `from ${durationText(ns)}`;
  return (
    <section>
      <TimedHeading>{table.title || "Lifetime by size"}</TimedHeading>
      <div class="matrix-scroll" tabIndex={0} role="region" aria-label="Lifetime by size">
        <table class="matrix">
          <thead>
            <tr>
              <th scope="col">lived</th>
              {columns.map((s) => (
                <th key={s} scope="col" class="turned">
                  <span>{bytesText(s).replace(".0", "")}</span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((l) => (
              <tr key={l}>
                <th scope="row">{life(l)}</th>
                {columns.map((s) => {
                  const cell = cells.get(`${l}/${s}`);
                  if (!cell?.blocks) return <td key={s} />;
                  const fill = p.heat[heatStep(cell.blocks / all)]!;
                  return (
                    <td
                      key={s}
                      style={{ background: fill, color: inkOn(fill) }}
                      title={`${grouped(cell.blocks)} blocks of ${bytesText(s)} and more, lived ${life(l)}${cell.bytes ? `, ${bytesText(cell.bytes)}` : ""}`}
                    >
                      {cell.blocks / all < 0.001 ? "\u00b7" : percentText(cell.blocks, all).replace(" %", "")}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="muted">Percent of all blocks, a dot for less than 0.1; columns are sizes from that many bytes.</p>
    </section>
  );
}
