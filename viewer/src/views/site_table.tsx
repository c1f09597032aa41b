// SPDX-License-Identifier: Apache-2.0
// The rows of api/sites as a table. Sites, Peak, Diff and the overview show the same rows, each with the
// columns that it is about.

import { useMemo } from "preact/hooks";
import type { Frame, Sites, Unit } from "../contract";
import { amountText, changeText, grouped } from "../format";
import { usePage } from "../page";
import { FrameText, ShareBar } from "../widgets/bits";
import { endWords, isWholeTime, peakWords, rangeWords } from "../time_words";
import { useAnswer } from "../use_answer";
import { Sparkline, highestOf, sparkWidth, sumsOf } from "../widgets/sparkline";
import { type TableColumn, VirtualTable } from "../widgets/virtual_table";
import { useTimelines } from "./strip";

export function siteFrame(sites: Sites, row: number): Frame {
  const n = sites.names;
  return {
    name: n.name[row] ?? "?",
    full: n.full?.[row] ?? "",
    file: n.file?.[row] ?? null,
    line: n.line?.[row] ?? null,
    module: n.module?.[row] ?? null,
  };
}

export const siteTitles: Record<string, string> = {
  site: "site",
  function: "function",
  file: "file",
  module: "module",
  thread: "thread",
  phase: "phase",
  size: "size",
  type: "type",
};

// What the rows are parts of.
export function wholeOf(sites: Sites): number {
  return sites.total ?? (sites.columns.get("value") ?? new Float64Array()).reduce((a, b) => a + b, 0);
}

// Columns that are metrics of their own: sorting by one asks for its rows, since a site that holds nothing
// of the metric is not among the rows.
const ownMetrics = ["peak", "live", "allocated", "allocations", "temporary"];

export function SiteTable({
  sites,
  by,
  value,
  only,
  sparksOf,
  chosen,
  onChoose,
  tallest,
  label,
  rows,
  asks,
}: {
  sites: Sites;
  by: string;
  value: string;
  only?: string[];
  sparksOf: URLSearchParams | null;
  chosen?: number | null;
  onChoose?: (row: number) => void;
  tallest?: number;
  label: string;
  rows?: number[]; // Only these.
  asks?: boolean; // Whether sorting may ask for another metric.
}) {
  const { state, change, source, trace } = usePage();
  const { all } = useTimelines();
  const { value: sparks, busy } = useAnswer(sparksOf ? `${sparksOf}` : null, (signal) =>
    source.sparks(sparksOf!, signal),
  );
  const columns = useMemo<TableColumn[]>(() => {
    const numbers = (key: string) => sites.columns.get(key) ?? new Float64Array(sites.rows);
    const values = numbers("value");
    const whole = wholeOf(sites);
    const list: TableColumn[] = [];
    const add = (key: string, title: string, unit: Unit, help?: string, spare?: number) => {
      if (!sites.columns.has(key) || (only && !only.includes(key))) return;
      const v = numbers(key);
      list.push({
        key,
        title,
        width: `${Math.round(Math.max(unit === "bytes" ? 78 : 82, title.length * 6 + 16))}px`,
        right: true,
        sort: (r) => v[r]!,
        help: help!,
        ...(spare ? { spare } : {}),
        cell: (r) => amountText(v[r]!, unit),
      });
    };
    const before = sites.columns.get("before");
    if (before) {
      list.push({
        key: "change",
        title: "change",
        width: "92px",
        right: true,
        help: "Sorted by how much it is, up or down",
        sort: (r) => Math.abs(values[r]! - before[r]!),
        cell: (r) => (
          <span class={values[r]! > before[r]! ? "grown" : values[r]! < before[r]! ? "shrunk" : ""}>
            {changeText(values[r]! - before[r]!, sites.unit)}
          </span>
        ),
      });
      list.push({
        key: "status",
        title: "",
        width: "62px",
        cell: (r) =>
          values[r] === before[r]
            ? "same"
            : before[r] === 0
              ? "new"
              : values[r] === 0
                ? "gone"
                : values[r]! > before[r]!
                  ? "grown"
                  : "shrunk",
      });
      add("before", "before", sites.unit);
      add("value", "after", sites.unit);
    } else {
      add("value", value, sites.unit, "The chosen metric");
      list.push({
        key: "share",
        title: "",
        width: "96px",
        right: true,
        cell: (r) => <ShareBar part={values[r]!} whole={whole} />,
      });
    }
    const others = sites.left_out > 0 ? sites.rows - 1 : -1;
    list.push({
      key: "name",
      title: siteTitles[by] ?? by,
      width: "minmax(256px, 1fr)",
      sort: (r) => sites.names.name[r] ?? "",
      cell: (r) =>
        r === others ? (
          <span class="muted">{`others (${grouped(sites.left_out)} ${by}s)`}</span>
        ) : (
          <FrameText frame={siteFrame(sites, r)} />
        ),
    });
    if (sparksOf && (busy || (sparks && sparks.id.length > 0))) {
      const cpu = sites.metric === "cpu";
      const global = !all || !sparks ? null : cpu ? sumsOf(sparks.points, all.cpu) : highestOf(sparks.points, all.live_max, all.live);
      const rows = new Map(Array.from(sparks?.id ?? [], (id, i) => [id, i]));
      const spark = (r: number) => {
        const at = rows.get(sites.id[r]!);
        return at === undefined ? null : sparks!.spark.subarray(at * sparks!.points, (at + 1) * sparks!.points);
      };
      list.push({
        key: "spark",
        title: cpu ? "CPU over time" : "live over time",
        width: `${sparkWidth}px`,
        spare: 5,
        help: cpu
          ? "This site's CPU time, each to its own scale, over that of the program in grey"
          : "This site's live bytes, each to its own scale, over the whole heap in grey",
        cell: (r) => spark(r) && <Sparkline values={spark(r)!} all={global} />,
      });
    }
    if (by === "function")
      add("cumulative", "with callees", sites.unit, "What the function and all that it calls hold together");
    const end = endWords(trace, state);
    const within = isWholeTime(state) ? "" : ` from ${rangeWords(trace, state)}`;
    const asked = sites.metric ?? state.metric;
    if (asked !== "peak") add("peak", peakWords(trace, state), "bytes", `Live when the heap was largest${within}`, 8);
    if (asked !== "live") add("live", end, "bytes", `Bytes live ${end}`, 9);
    // Of what leaked in a range nothing else is known, and not all that is live has.
    if (sites.columns.has("live") && !sites.columns.has("allocations"))
      add("live_blocks", "leaked blocks", "count", `Blocks that were made${within} and are live ${end}`, 4);
    else add("live_blocks", `blocks ${end}`, "count", `Blocks live ${end}`, 4);
    if (asked !== "allocated") add("allocated", "allocated", "bytes", `The sum of all allocations${within}`, 7);
    if (asked !== "allocations") add("allocations", "allocations", "count", `Blocks that were made${within}`, 6);
    if (numbers("reallocations").some((n) => n > 0))
      add("reallocations", "reallocs", "count", "Blocks that were made larger or smaller: their bytes count as allocated", 2);
    if (asked !== "temporary")
      add("temporary", "temporary", "count", "Freed before the thread's next allocation", 3);
    add("samples", "samples", "count", `How often it was seen at work${within}: the more, the better the estimate`, 5);
    add("stacks", "stacks", "count", "Ways that lead here", 1);
    return list;
  }, [sites, by, value, all, sparks, busy, state.from, state.to]);
  const usual = sites.columns.has("before") ? "-change" : "-value";
  const sorted = columns.some((c) => c.key === state.sort.replace(/^-/, "")); // Another metric may lack the column.
  const sortBy = (sort: string) => {
    const key = sort.replace(/^-/, "");
    if (asks && ownMetrics.includes(key) && trace.metrics.includes(key) && !refused(key))
      change({ metric: key, sort: "" });
    else change({ sort: sort === usual ? "" : sort }, false);
  };
  const refused = (metric: string) =>
    source.refusal("metric", metric) ?? (isWholeTime(state) ? null : source.refusal("range", metric));
  return (
    <VirtualTable
      label={label}
      columns={columns}
      count={sites.rows}
      {...(rows ? { rows } : {})}
      sort={sorted ? state.sort : usual}
      onSort={sortBy}
      {...(sites.left_out > 0 ? { last: sites.rows - 1 } : {})}
      chosen={chosen ?? null}
      {...(onChoose ? { onChoose } : {})}
      {...(tallest ? { tallest } : {})}
    />
  );
}
