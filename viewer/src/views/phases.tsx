// SPDX-License-Identifier: Apache-2.0
// The phases that the program named: what each allocates and leaves, and when it was. A phase that is
// chosen in the first table is what every view is about; one in the second, its time.

import { useMemo } from "preact/hooks";
import type { AnswerTable } from "../contract";
import { durationText, grouped } from "../format";
import { nearestCut, usePage } from "../page";
import { patternOf, shown } from "../safe_text";
import { chosenRange } from "../time_choice";
import { type TableColumn, VirtualTable } from "../widgets/virtual_table";
import { AnswerView, tableColumns } from "./answer_table";

export function PhasesView() {
  return (
    <AnswerView
      name="phases"
      draw={(answer) => (
        <>
          {answer.tables[0] && <ByName table={answer.tables[0]} />}
          <ByTime />
        </>
      )}
      without={["phases"]}
    />
  );
}

function ByName({ table }: { table: AnswerTable }) {
  const { trace, state, source, change } = usePage();
  const columns = useMemo(() => tableColumns(table), [table]);
  const at = table.columns.findIndex((c) => c.key === "phase");
  const known = new Set(trace.phase_names ?? []);
  const nameOf = (row: number) => String(table.rows[row]?.cells[at] ?? "");
  const pattern = (row: number) => patternOf(nameOf(row), null);
  const chosen = table.rows.findIndex((_, row) => state.phase.length === 1 && state.phase[0] === pattern(row));
  const refusal = source.refusal("phase", "");
  return (
    <section class="answer-table">
      <VirtualTable
        label="Phases"
        columns={columns}
        count={table.rows.length}
        tallest={16}
        chosen={chosen < 0 ? null : chosen}
        {...(refusal
          ? {}
          : {
              onChoose: (row: number) =>
                known.has(nameOf(row)) && change({ phase: row === chosen ? [] : [pattern(row)] }),
            })}
      />
      <p class="muted">
        {refusal ?? "Choose a phase to see in every view what was allocated in it alone."} A block is of all phases
        that were open when it was made.
      </p>
    </section>
  );
}

function ByTime() {
  const { trace, state, source, change } = usePage();
  const phases = trace.phases ?? [];
  const columns = useMemo<TableColumn[]>(() => {
    const several = new Set(phases.map((p) => p.pid)).size > 1;
    const merged = phases.some((p) => p.times > 1);
    const right = (key: string, title: string, value: (r: number) => number, text: (n: number) => string) => ({
      key,
      title,
      width: "96px",
      right: true,
      sort: value,
      cell: (r: number) => text(value(r)),
    });
    return [
      right("from", "from", (r) => phases[r]!.from_ns, durationText),
      right("to", "to", (r) => phases[r]!.to_ns, durationText),
      ...(merged ? [right("times", "times", (r) => phases[r]!.times, grouped)] : []),
      ...(several ? [right("pid", "process", (r) => phases[r]!.pid, String)] : []),
      {
        key: "name",
        title: "phase",
        width: "minmax(200px, 1fr)",
        sort: (r) => phases[r]!.name,
        cell: (r) => (
          <>
            <bdi>{shown(phases[r]!.name)}</bdi>
            {phases[r]!.thread && <span class="muted"> {shown(phases[r]!.thread)}</span>}
          </>
        ),
      },
    ];
  }, [phases]);
  if (phases.length === 0) return null;
  return (
    <section class="answer-table">
      <h2>When they were</h2>
      <VirtualTable
        label="When the phases were"
        columns={columns}
        count={phases.length}
        tallest={12}
        onChoose={(r) =>
          change({
            ...chosenRange(state, source, nearestCut(trace, phases[r]!.from_ns), nearestCut(trace, phases[r]!.to_ns)),
            ...(source.refusal("part", "phases") ? { view: "timeline" } : {}),
          })
        }
      />
      <p class="muted">
        Choose one to look at its time in every view, whatever was allocated then.
        {trace.phases_left_out ? ` ${grouped(trace.phases_left_out)} shorter ones are not listed.` : ""}
      </p>
    </section>
  );
}
