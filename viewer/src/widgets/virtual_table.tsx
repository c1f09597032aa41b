// SPDX-License-Identifier: Apache-2.0
// A table of any length of which only the visible rows exist. It is a grid for screen readers; the arrow
// keys move a row's cursor, Enter chooses, and headings sort. Where it is narrow, columns that can be spared
// are left out.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

export interface TableColumn {
  key: string;
  title: string;
  help?: string;
  width: string; // As in grid-template-columns.
  right?: boolean;
  spare?: number; // Where there is no room, columns with this go, the lowest first.
  sort?: (row: number) => number | string;
  cell: (row: number) => ComponentChildren;
}

export interface VirtualTableProps {
  label: string;
  columns: TableColumn[];
  count: number;
  rows?: number[]; // Only these, if not all.
  last?: number; // A row that stays at the end, however the others are sorted.
  sort?: string; // A key, with "-" in front: from the highest.
  onSort?: (sort: string) => void;
  chosen?: number | null;
  onChoose?: (row: number) => void;
  tallest?: number; // In rows; without it the table fills what it is in.
  rowClass?: (row: number) => string;
}

// The narrowest that a row may be: the first number in each column's width, and the gaps.
function narrowestOf(columns: TableColumn[]): number {
  return columns.reduce((sum, c) => sum + (parseFloat(/[\d.]+/.exec(c.width)?.[0] ?? "0") || 0) + 12, 20 - 12);
}

// Without those that can be spared, as many as it takes; never that by which the rows are sorted.
function thatFit(columns: TableColumn[], room: number, sort: string): TableColumn[] {
  let left = columns;
  const spare = columns
    .filter((c) => c.spare !== undefined && c.key !== sort.replace(/^-/, ""))
    .sort((a, b) => a.spare! - b.spare!);
  for (const column of spare) {
    if (narrowestOf(left) <= room) break;
    left = left.filter((c) => c !== column);
  }
  return left;
}

export const tableRow = 26;
let tables = 0;

export function VirtualTable(props: VirtualTableProps) {
  const { count, last, chosen } = props;
  const [ownSort, setOwnSort] = useState("");
  const sort = props.onSort ? (props.sort ?? "") : ownSort;
  const setSort = props.onSort ?? setOwnSort;
  const body = useRef<HTMLDivElement>(null);
  const [scrolled, setScrolled] = useState(0);
  const [height, setHeight] = useState(600);
  const [room, setRoom] = useState(Infinity);
  const [cursor, setCursor] = useState(-1);
  const name = useMemo(() => `table${++tables}`, []);

  const order = useMemo(() => sortedRows(props.columns, props.rows ?? count, last, sort), [props.columns, count, props.rows, last, sort]);
  const columns = useMemo(() => thatFit(props.columns, room, sort), [props.columns, room, sort]);
  useLayoutEffect(() => {
    const measure = () => {
      if (!body.current) return;
      setHeight(body.current.clientHeight);
      setRoom(body.current.clientWidth);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(body.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    body.current!.scrollTop = 0;
    setCursor(-1);
  }, [order.length, sort]);

  const template = columns.map((c) => c.width).join(" ");
  const narrowest = narrowestOf(columns);
  const shape = { gridTemplateColumns: template, minWidth: `${narrowest}px` };
  const first = Math.max(0, Math.floor((scrolled - tableRow) / tableRow) - 4);
  const end = Math.min(order.length, Math.ceil((scrolled + height) / tableRow) + 4);

  const moveTo = (place: number) => {
    const at = Math.max(0, Math.min(order.length - 1, place));
    setCursor(at);
    const box = body.current!;
    const top = at * tableRow;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + 2 * tableRow > box.scrollTop + box.clientHeight)
      box.scrollTop = top + 2 * tableRow - box.clientHeight;
  };
  const keyDown = (event: KeyboardEvent) => {
    if (event.target !== body.current) return;
    const page = Math.max(1, Math.floor(height / tableRow) - 2);
    const keys: Record<string, () => void> = {
      ArrowDown: () => moveTo(cursor + 1),
      ArrowUp: () => moveTo(cursor - 1),
      PageDown: () => moveTo(cursor + page),
      PageUp: () => moveTo(cursor - page),
      Home: () => moveTo(0),
      End: () => moveTo(order.length - 1),
      Enter: () => cursor >= 0 && props.onChoose?.(order[cursor]!),
      " ": () => cursor >= 0 && props.onChoose?.(order[cursor]!),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]!();
  };

  const rows = [];
  for (let place = first; place < end; ++place) {
    const row = order[place]!;
    const classes = [
      "row",
      row === chosen ? "chosen" : "",
      place === cursor ? "cursor" : "",
      props.onChoose ? "choosable" : "",
      props.rowClass?.(row) ?? "",
    ];
    rows.push(
      <div
        key={row}
        id={`${name}r${place}`}
        role="row"
        aria-rowindex={place + 2}
        class={classes.join(" ")}
        aria-selected={props.onChoose ? row === chosen : undefined}
        style={{ ...shape, transform: `translateY(${place * tableRow}px)` }}
        onClick={(event) => {
          if ((event.target as Element).closest("a, button")) return;
          setCursor(place);
          props.onChoose?.(row);
        }}
      >
        {columns.map((c) => (
          <div key={c.key} role="gridcell" class={c.right ? "right" : ""}>
            {c.cell(row)}
          </div>
        ))}
      </div>,
    );
  }
  const tall = props.tallest ? Math.min(props.tallest, Math.max(1, order.length)) * tableRow + tableRow + 4 : null;
  return (
    <div
      class={tall ? "table" : "table fills"}
      style={{
        ...(tall ? { height: `${tall}px` } : {}),
        ...(columns.some((c) => c.width.includes("fr")) ? {} : { maxWidth: `${narrowest + 24}px` }),
      }}
    >
      <div
        class="table-body"
        ref={body}
        role="grid"
        aria-label={props.label}
        aria-rowcount={order.length + 1}
        tabIndex={0}
        aria-activedescendant={cursor >= first && cursor < end ? `${name}r${cursor}` : undefined}
        onScroll={(event) => setScrolled((event.currentTarget as HTMLElement).scrollTop)}
        onKeyDown={keyDown}
        onFocus={(event) => event.target === body.current && cursor < 0 && order.length > 0 && setCursor(0)}
      >
        <div role="row" aria-rowindex={1} class="head" style={shape}>
          {columns.map((c) => {
            const up = sort === c.key,
              down = sort === `-${c.key}`;
            return (
              <div
                key={c.key}
                role="columnheader"
                class={c.right ? "right" : ""}
                title={c.help}
                aria-sort={up ? "ascending" : down ? "descending" : undefined}
              >
                {c.sort && c.title ? (
                  <button type="button" onClick={() => setSort(nextSort(c, sort))}>
                    {c.title}
                    <span class="arrow" aria-hidden="true">
                      {up ? " \u25b4" : down ? " \u25be" : ""}
                    </span>
                  </button>
                ) : (
                  c.title || <span class="unseen">{c.key.replaceAll("_", " ")}</span>
                )}
              </div>
            );
          })}
        </div>
        <div
          class="rows"
          role="rowgroup"
          style={{ height: `${order.length * tableRow}px`, minWidth: `${narrowest}px` }}
        >
          {rows}
        </div>
      </div>
    </div>
  );
}

// What a click on a heading does: the highest number first, but words from A to Z; then the other way round, and then
// as it was.
export function nextSort(column: Pick<TableColumn, "key" | "sort">, sort: string): string {
  const [up, down] = [column.key, `-${column.key}`];
  let words = false;
  try {
    words = typeof column.sort?.(0) === "string";
  } catch {
    // There is no row.
  }
  const [first, second] = words ? [up, down] : [down, up];
  return sort === first ? second : sort === second ? "" : first;
}

function sortedRows(
  columns: TableColumn[],
  some: number | number[],
  last: number | undefined,
  sort: string,
): number[] {
  const rows = typeof some === "number" ? Array.from({ length: some }, (_, i) => i) : [...some];
  const down = sort.startsWith("-");
  const by = columns.find((c) => c.key === sort.replace(/^-/, ""))?.sort;
  if (!by) return rows;
  const keys = new Map(rows.map((row) => [row, by(row)]));
  const sign = down ? -1 : 1;
  rows.sort((a, b) => {
    if (a === last || b === last) return a === last ? 1 : -1;
    const x = keys.get(a)!,
      y = keys.get(b)!;
    if (typeof x === "string" || typeof y === "string")
      return -sign * (String(x) < String(y) ? 1 : String(x) > String(y) ? -1 : 0) || a - b;
    return sign * (x - y) || a - b;
  });
  return rows;
}
