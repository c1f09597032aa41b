// SPDX-License-Identifier: Apache-2.0
// What was never freed, what grows first: by the site that leaked or by each stack. The chosen row's
// stacks are beside the table, and which row that is, in the address.

import { useMemo } from "preact/hooks";
import type { Answer, AnswerTable, Frame } from "../contract";
import { bytesText, countText } from "../format";
import { type LeakGroups, bySite, byStack } from "../leak_groups";
import { usePage } from "../page";
import { question } from "../state";
import { useAnswer } from "../use_answer";
import { Choice, FrameText, Waiting } from "../widgets/bits";
import { FoldedStack } from "../widgets/site_panel";
import { VirtualTable } from "../widgets/virtual_table";
import { Notes, OneTable, WhatTime, headlineOf, tableColumns, tableOf } from "./answer_table";

const manyRows = 200; // From here on, sites are easier to read than stacks.
const mostStacks = 50; // Of one row.

export function LeaksView() {
  const { state, source } = usePage();
  const q = question(state, ["metric"]);
  const asked = useAnswer(`leaks?${q}`, (signal) => source.answer("leaks", q, signal));
  return (
    <div class="view">
      <Waiting asked={asked} what="Counting blocks">
        {(answer) => <Leaks answer={answer} />}
      </Waiting>
    </div>
  );
}

function Leaks({ answer }: { answer: Answer }) {
  const { state, change } = usePage();
  const table = tableOf(answer, "leaks"),
    rest = tableOf(answer, "rest");
  const by = state.leaks_by || ((table?.rows.length ?? 0) > manyRows ? "site" : "stack");
  const groups = useMemo(() => (!table ? null : by === "site" ? bySite(table, rest) : byStack(table)), [table, by]);
  return (
    <>
      <WhatTime />
      <p class="headline">{headlineOf(answer)}</p>
      {groups && groups.table.rows.length > 0 && (
        <>
          <div class="toolbar">
            <Choice
              label="By"
              value={by}
              onChange={(leaks_by) => change({ leaks_by, row: null })}
              options={[
                ["stack", "stack"],
                ["site", "site"],
              ]}
            />
            <span class="hint">
              {by === "site"
                ? `${countText(table!.rows.length + (rest ? (table!.left_out ?? 0) : 0), "stack", "stacks")} at ${countText(groups.rowsOf.length, "site", "sites")}`
                : ""}
            </span>
          </div>
          <LeakTable table={table!} rest={rest} groups={groups} by={by} />
        </>
      )}
      {answer.tables
        .filter((t) => t.key !== "leaks" && t.key !== "rest")
        .map((t) => (
          <OneTable key={t.key} table={t} tallest={5} timed />
        ))}
      <Notes answer={answer} />
    </>
  );
}

interface LeakTableProps {
  table: AnswerTable;
  rest: AnswerTable | null;
  groups: LeakGroups;
  by: string;
}

function LeakTable({ table, rest, groups, by }: LeakTableProps) {
  const { state, change } = usePage();
  const columns = useMemo(
    () =>
      tableColumns(groups.table, ["share"]).map((c) => ({
        ...c,
        ...(c.key === "frame" ? { width: "minmax(190px, 3fr)" } : {}),
        ...(spares[c.key] ? { spare: spares[c.key]! } : {}),
      })),
    [groups],
  );
  const chosen = Math.min(state.row ?? 0, groups.rowsOf.length - 1);
  const frame = groups.table.rows[chosen]!.cells[groups.table.columns.findIndex((c) => c.key === "frame")] as Frame;
  return (
    <div class="split">
      <div class="main">
        <VirtualTable
          label={by === "site" ? "leaks by site" : "leaks"}
          columns={columns}
          count={groups.rowsOf.length}
          chosen={chosen}
          onChoose={(row) => change({ row }, false)}
          rowClass={(row) => (groups.table.rows[row]!.main === false ? "aside" : "")}
        />
        {table.left_out ? (
          <p class="muted">
            {by === "stack"
              ? `${countText(table.left_out, "lighter stack is", "lighter stacks are")} not listed.`
              : `Of ${countText(table.left_out, "lighter stack", "lighter stacks")} only the sums are told.`}
            {by === "site" && rest?.left_out
              ? ` ${countText(rest.left_out, "site that has only such is", "sites that have only such are")} not listed, or not whole.`
              : ""}
          </p>
        ) : null}
      </div>
      <aside class="panel" aria-label="How the program got there">
        <h2>How the program got there</h2>
        {frame && <FrameText frame={frame} long />}
        <LeakStacks table={table} rows={groups.rowsOf[chosen]!} />
      </aside>
    </div>
  );
}

const spares: Record<string, number> = { first_ns: 1, last_ns: 2, stacks: 3 };

function LeakStacks({ table, rows }: { table: AnswerTable; rows: number[] }) {
  const [bytes, blocks, stack] = ["bytes", "blocks", "stack"].map((key) => table.columns.findIndex((c) => c.key === key));
  const amount = (row: number, column: number) => Number(table.rows[row]!.cells[column] ?? 0);
  const heaviest = useMemo(() => [...rows].sort((a, b) => amount(b, bytes!) - amount(a, bytes!)), [table, rows]);
  return (
    <>
      {heaviest.slice(0, mostStacks).map((row, i) => {
        const frames = table.rows[row]!.cells[stack!];
        return (
          <FoldedStack
            key={row}
            amount={bytesText(amount(row, bytes!))}
            facts={`in ${countText(amount(row, blocks!), "block", "blocks")}`}
            frames={Array.isArray(frames) ? frames : []}
            open={i === 0}
          />
        );
      })}
      {rows.length === 0 && <p class="muted">Its stacks are too light to be listed.</p>}
      {heaviest.length > mostStacks && (
        <p class="muted">{`${countText(heaviest.length - mostStacks, "lighter stack is", "lighter stacks are")} not listed.`}</p>
      )}
    </>
  );
}
