// SPDX-License-Identifier: Apache-2.0
// Any answer of the command line as the page shows it: the sentence, the tables that prove it, the notes.
// A view that draws something of its own puts it between the sentence and the tables.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { pageNote } from "../command_words";
import type { Answer, AnswerColumn, AnswerTable, Cell, Frame } from "../contract";
import { bytesText, durationText, fixed, grouped, rateText } from "../format";
import { usePage } from "../page";
import { shown } from "../safe_text";
import { question } from "../state";
import { endWords, isWholeTime, ofTime, rangeWords } from "../time_words";
import { useAnswer } from "../use_answer";
import { FrameText, ShareBar, Waiting, Words, frameName } from "../widgets/bits";
import { StackFrames } from "../widgets/site_panel";
import type { RowChoice } from "../widgets/row_choice";
import { type TableColumn, VirtualTable } from "../widgets/virtual_table";

export function AnswerView({
  name,
  draw,
  without = [],
  choice,
}: {
  name: string;
  draw?: (answer: Answer) => ComponentChildren;
  without?: string[];
  choice?: (table: AnswerTable) => RowChoice | null; // Where its rows are filters.
}) {
  const { state, source } = usePage();
  const q = question(state, ["metric"]); // It would be answered the same.
  const asked = useAnswer(`${name}?${q}`, (signal) => source.answer(name, q, signal));
  return (
    <div class="view scrolls">
      <Waiting asked={asked} what="Counting blocks">
        {(answer) => <AnswerBody name={name} answer={answer} drawn={draw?.(answer)} without={without} choice={choice} />}
      </Waiting>
    </div>
  );
}

// Answers that are of the time that is looked at.
const timed = ["leaks", "sizes", "lifetimes", "threads"];
const ofRanges = [...timed, "churn", "growth", "rss", "mappings"]; // The others are of a moment.

export function AnswerBody({
  name = "",
  answer,
  drawn,
  without = [],
  choice,
}: {
  name?: string;
  answer: Answer;
  drawn?: ComponentChildren;
  without?: string[];
  choice?: ((table: AnswerTable) => RowChoice | null) | undefined;
}) {
  return (
    <>
      {ofRanges.includes(name) && <WhatTime />}
      <p class="headline">{headlineOf(answer)}</p>
      {drawn}
      {answer.tables
        .filter((t) => !without.includes(t.key))
        .map((t) => (
          <OneTable key={t.key} table={t} timed={timed.includes(name)} choice={choice?.(t) ?? null} />
        ))}
      <Notes answer={answer} />
    </>
  );
}

// Above a sentence that does not say it itself.
export function WhatTime() {
  const { state, trace } = usePage();
  return isWholeTime(state) ? null : <p class="caption">{`From ${rangeWords(trace, state)}:`}</p>;
}

// A heading with the time that it is of.
export function TimedHeading({ children }: { children: ComponentChildren }) {
  const { state, trace } = usePage();
  return (
    <h2>
      {children}
      <span class="muted">{ofTime(trace, state)}</span>
    </h2>
  );
}

export function headlineOf(answer: Answer): string {
  return shown(answer.headline);
}

// What only an option of the command line shows is no help here.
export function Notes({ answer }: { answer: Answer }) {
  const notes = (answer.notes ?? []).map(pageNote).filter((n) => n !== null);
  if (notes.length === 0) return null;
  return (
    <ul class="notes">
      {notes.map((n, i) => (
        <li key={i}>
          <Words text={n} />
        </li>
      ))}
    </ul>
  );
}

export function OneTable({
  table,
  tallest = 16,
  timed = false,
  choice = null,
}: {
  table: AnswerTable;
  tallest?: number;
  timed?: boolean;
  choice?: RowChoice | null;
}) {
  const stack = table.columns.findIndex((c) => c.kind === "stack");
  const [chosen, setChosen] = useState<number | null>(null);
  const { state, trace } = usePage();
  const end = timed ? endWords(trace, state) : "";
  const columns = useMemo(() => tableColumns(end ? withEnd(table, end) : table), [table, end]);
  const frames = chosen !== null && stack >= 0 ? table.rows[chosen]?.cells[stack] : null;
  if (table.rows.length === 0) return null;
  return (
    <section class="answer-table">
      {table.title && (timed ? <TimedHeading>{shown(table.title)}</TimedHeading> : <h2>{shown(table.title)}</h2>)}
      <VirtualTable
        label={shown(table.title || table.key)}
        columns={columns}
        count={table.rows.length}
        tallest={tallest}
        chosen={choice ? choice.chosen : chosen}
        {...(choice?.onChoose ? { onChoose: choice.onChoose } : {})}
        {...(stack >= 0 ? { onChoose: (row: number) => setChosen(row === chosen ? null : row) } : {})}
        rowClass={(row) => (table.rows[row]!.main === false ? "aside" : "")}
      />
      {choice && <p class="muted">{choice.says}</p>}
      {stack >= 0 && chosen === null && <p class="muted">Choose a row to see how the program got there.</p>}
      {table.left_out ? <p class="muted">{`${grouped(table.left_out)} more rows are not listed.`}</p> : null}
      {Array.isArray(frames) && (
        <div class="stack below">
          <h2>How the program got there</h2>
          <StackFrames frames={frames} />
        </div>
      )}
    </section>
  );
}

// What is live at the end of a range is not that of the end.
function withEnd(table: AnswerTable, end: string): AnswerTable {
  const title = (text: string) => text.replace(/\bat end\b/, end === "at the end" ? "at end" : end);
  return { ...table, columns: table.columns.map((c) => ({ ...c, title: title(c.title) })) };
}

// With `also`, columns that the command line leaves out.
export function tableColumns(table: AnswerTable, also: string[] = []): TableColumn[] {
  const found: TableColumn[] = [];
  table.columns.forEach((column, i) => {
    if ((column.shown === false && !also.includes(column.key)) || column.kind === "stack") return;
    const right = !["text", "frame"].includes(column.kind);
    const first = found.length === 0;
    found.push({
      key: column.key,
      title: shown(column.title) || (column.kind === "share" ? "share" : ""),
      right,
      width: widthOf(column, table, i),
      ...(table.list === false ? {} : { sort: (r: number) => sortKey(table.rows[r]!.cells[i] ?? null) }),
      cell: (r) => {
        const row = table.rows[r]!;
        const drawn = <CellText cell={row.cells[i] ?? null} column={column} />;
        return first && row.depth ? <span style={{ paddingLeft: `${row.depth * 14}px` }}>{drawn}</span> : drawn;
      },
    });
  });
  return found;
}

function widthOf(column: AnswerColumn, table: AnswerTable, i: number): string {
  if (column.kind === "frame") return "minmax(240px, 3fr)";
  if (column.kind === "share") return "96px";
  if (column.kind !== "text") return `${Math.max(84, column.title.length * 7 + 20)}px`;
  let longest = column.title.length;
  for (const row of table.rows.slice(0, 200)) longest = Math.max(longest, String(row.cells[i] ?? "").length);
  return longest > 34 ? "minmax(160px, 2fr)" : `${Math.max(60, longest * 7.2 + 22)}px`;
}

function isShare(cell: Cell): cell is { part: number; whole: number } {
  return typeof cell === "object" && cell !== null && "whole" in cell;
}

function sortKey(cell: Cell): number | string {
  if (cell === null) return -1;
  if (typeof cell === "number" || typeof cell === "string") return cell;
  if (typeof cell === "boolean") return Number(cell);
  if (isShare(cell)) return cell.whole ? cell.part / cell.whole : 0;
  return Array.isArray(cell) ? cell.length : frameName(cell as Frame);
}

export function CellText({ cell, column }: { cell: Cell; column: AnswerColumn }) {
  if (cell === null || cell === undefined) return <span class="muted">{column.kind === "text" ? "" : "-"}</span>;
  if (isShare(cell)) return <ShareBar part={cell.part} whole={cell.whole} />;
  if (typeof cell === "string") {
    const badge = { growing: "badge bad", again: "badge warn", repeated: "badge warn" }[cell.split(" ")[0]!];
    return (
      <bdi class={badge ?? ""} title={shown(cell)}>
        {shown(cell)}
      </bdi>
    );
  }
  if (typeof cell === "boolean") return <>{cell ? "yes" : "no"}</>;
  if (typeof cell === "number") {
    const sign = column.key === "change" && cell > 0 ? "+" : "";
    const text =
      column.kind === "bytes"
        ? bytesText(cell)
        : column.kind === "duration" || column.kind === "time"
          ? durationText(cell)
          : column.kind === "ratio"
            ? fixed(cell, 2)
            : Number.isInteger(cell)
              ? grouped(cell)
              : rateText(cell);
    return (
      <span class={column.key === "change" ? (cell > 0 ? "grown" : cell < 0 ? "shrunk" : "") : ""}>{sign + text}</span>
    );
  }
  if (Array.isArray(cell)) return cell[0] ? <FrameText frame={cell[0]} /> : null;
  return <FrameText frame={cell as Frame} />;
}

export function tableOf(answer: Answer, key: string): AnswerTable | null {
  return answer.tables.find((t) => t.key === key) ?? null;
}

// A cell by its column's key, as a number.
export function numberIn(table: AnswerTable, row: number, key: string): number | null {
  const i = table.columns.findIndex((c) => c.key === key);
  const cell = i < 0 ? null : table.rows[row]?.cells[i];
  return typeof cell === "number" ? cell : null;
}

export function textIn(table: AnswerTable, row: number, key: string): string {
  const i = table.columns.findIndex((c) => c.key === key);
  const cell = i < 0 ? null : table.rows[row]?.cells[i];
  return typeof cell === "string" ? cell : "";
}
