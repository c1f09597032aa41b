// SPDX-License-Identifier: Apache-2.0
// The rows of the leaks, one for each stack, put together by the site that leaked: the function, file and
// line. Many stacks may lead to one line of code that is to blame.

import type { AnswerTable, Cell, Frame } from "./contract";

type Row = AnswerTable["rows"][number];

export interface LeakGroups {
  table: AnswerTable;
  rowsOf: number[][]; // Of each row, those that it is made of.
}

const worst = ["growing", "again"];

// `rest`: what the table leaves out, a row for each site; its stacks are not told.
export function bySite(table: AnswerTable, rest: AnswerTable | null = null): LeakGroups {
  const at = (key: string) => table.columns.findIndex((c) => c.key === key);
  const all = rest ? { ...table, rows: [...table.rows, ...rest.rows.map((row) => asIn(table, rest, row))] } : table;
  const stacksOf = (r: number) => (r < table.rows.length ? 1 : Number(cellOf(rest!, rest!.rows[r - table.rows.length]!, "stacks")));
  const frame = at("frame");
  const groups = new Map<string, number[]>();
  all.rows.forEach((row, r) => {
    const { name, full, file, line, module } = (row.cells[frame] ?? {}) as Frame;
    const key = JSON.stringify([full || name, file, line, module, row.main !== false]);
    const group = groups.get(key);
    if (group) group.push(r);
    else groups.set(key, [r]);
  });
  const stacks = { key: "stacks", title: "stacks", kind: "count" as const };
  const made = [...groups.values()].map((rows) => ({ rows, row: together(all, rows, at) }));
  const bytes = at("bytes");
  const rank = ({ row }: { row: Row }) => {
    const place = worst.findIndex((word) => String(row.cells[at("when")] ?? "").startsWith(word));
    return place === 0 ? 0 : 1; // What grows comes first, as in the answer.
  };
  made.sort((a, b) => rank(a) - rank(b) || Number(b.row.cells[bytes]) - Number(a.row.cells[bytes]));
  return {
    table: {
      ...table,
      columns: [...table.columns, stacks],
      rows: made.map(({ row, rows }) => ({
        ...row,
        cells: [...row.cells, rows.reduce((sum, r) => sum + stacksOf(r), 0)],
      })),
    },
    rowsOf: made.map(({ rows }) => rows.filter((r) => r < table.rows.length)),
  };
}

function cellOf(table: AnswerTable, row: Row, key: string): Cell {
  return row.cells[table.columns.findIndex((c) => c.key === key)] ?? null;
}

// A row of another table, with the cells that both have.
function asIn(table: AnswerTable, other: AnswerTable, row: Row): Row {
  return { ...row, cells: table.columns.map((column) => cellOf(other, row, column.key)) };
}

export function byStack(table: AnswerTable): LeakGroups {
  return { table, rowsOf: table.rows.map((_, r) => [r]) };
}

function together(table: AnswerTable, rows: number[], at: (key: string) => number): Row {
  const cells = (key: string) => rows.map((r) => table.rows[r]!.cells[at(key)] ?? null);
  const numbers = (key: string) => cells(key).filter((c): c is number => typeof c === "number");
  const sum = (key: string) => numbers(key).reduce((a, b) => a + b, 0);
  const made: Cell[] = [...table.rows[rows[0]!]!.cells];
  const set = (key: string, cell: Cell) => {
    if (at(key) >= 0) made[at(key)] = cell;
  };
  set("bytes", sum("bytes"));
  set("blocks", sum("blocks"));
  set("first_ns", Math.min(...numbers("first_ns")));
  set("last_ns", Math.max(...numbers("last_ns")));
  const share = cells("share")[0] as { whole?: number } | null;
  if (share?.whole) set("share", { part: sum("bytes"), whole: share.whole });
  set("when", worstOf(cells("when").map(String)));
  return { ...table.rows[rows[0]!]!, cells: made };
}

// "growing 9/10" before "again 3/10" before the rest; of the same, the most.
function worstOf(words: string[]): string {
  const rank = (word: string) => {
    const place = worst.findIndex((w) => word.startsWith(w));
    return (place < 0 ? 0 : (worst.length - place) * 1000) + Number(/(\d+)\/\d+/.exec(word)?.[1] ?? 0);
  };
  return words.reduce((a, b) => (rank(b) > rank(a) ? b : a));
}
