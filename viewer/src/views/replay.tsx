// SPDX-License-Identifier: Apache-2.0
// What `malloscope replay` found on other allocators: the median of each one's runs, and its memory over
// time against the ideal.

import { useMemo } from "preact/hooks";
import { palette } from "../colors";
import type { Replay } from "../contract";
import { bytesText, durationText, threeDigits } from "../format";
import { usePage } from "../page";
import { shown } from "../safe_text";
import { useAnswer } from "../use_answer";
import { Waiting } from "../widgets/bits";
import { type TableColumn, VirtualTable } from "../widgets/virtual_table";

export function ReplayView() {
  const { source } = usePage();
  const asked = useAnswer("replay", (signal) => source.replay(signal));
  return (
    <div class="view scrolls">
      <Waiting asked={asked} what="Reading what replay left">
        {(replay) => <Replayed replay={replay} />}
      </Waiting>
    </div>
  );
}

interface Setup {
  name: string;
  runs: Record<string, any>[];
}

function setupsOf(replay: Replay): Setup[] {
  const setups = new Map<string, Setup>();
  for (const run of replay.runs ?? []) {
    const name = run.tunables ? `${run.allocator}, ${run.tunables}` : String(run.allocator);
    if (!setups.has(name)) setups.set(name, { name, runs: [] });
    setups.get(name)!.runs.push(run);
  }
  return [...setups.values()];
}

function median(values: number[]): number {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  return sorted.length ? sorted[(sorted.length - 1) >> 1]! : NaN;
}

function Replayed({ replay }: { replay: Replay }) {
  const setups = useMemo(() => setupsOf(replay), [replay]);
  const of = (r: number, what: (run: Record<string, any>) => number) => median(setups[r]!.runs.map(what));
  const column = (
    key: string,
    title: string,
    what: (run: Record<string, any>) => number,
    text: (n: number) => string,
  ): TableColumn => ({
    key,
    title,
    width: "110px",
    right: true,
    sort: (r) => of(r, what),
    cell: (r) => (Number.isNaN(of(r, what)) ? "-" : text(of(r, what))),
  });
  const columns = useMemo<TableColumn[]>(
    () => [
      {
        key: "name",
        title: "allocator",
        width: "minmax(140px, 1fr)",
        sort: (r) => setups[r]!.name,
        cell: (r) => <bdi>{shown(setups[r]!.name)}</bdi>,
      },
      column("rss", "heap RSS", (r) => r.heap_max_rss_bytes, bytesText),
      column("ideal", "ideal", (r) => r.max_ideal_bytes, bytesText),
      column(
        "ratio",
        "RSS/ideal",
        (r) => r.fragmentation?.peak,
        (n) => n.toFixed(2),
      ),
      column("end", "at end", (r) => r.heap_end_rss_bytes, bytesText),
      column("time", "in allocator", (r) => r.allocator_ns, durationText),
      column(
        "call",
        "ns a call",
        (r) => r.allocator_ns / Object.values(r.calls ?? {}).reduce((a: number, b) => a + Number(b), 0),
        threeDigits,
      ),
      column("wall", "wall", (r) => r.wall_ns, durationText),
      { key: "runs", title: "runs", width: "60px", right: true, cell: (r) => setups[r]!.runs.length },
      {
        key: "error",
        title: "",
        width: "minmax(80px, 1fr)",
        cell: (r) => shown(setups[r]!.runs.map((x) => x.error).find(Boolean) ?? ""),
      },
    ],
    [setups],
  );
  const advice = typeof replay.advice === "string" ? replay.advice : (replay.advice as { text?: string } | null)?.text;
  return (
    <>
      <p class="headline">{shown(advice ?? `Replayed: ${replay.process ?? "the recorded calls"}`)}</p>
      <VirtualTable label="Allocators" columns={columns} count={setups.length} tallest={14} />
      <MemoryOverTime replay={replay} setups={setups} />
      {(replay.notes ?? []).length > 0 && (
        <ul class="notes">
          {replay.notes!.map((n, i) => (
            <li key={i}>{shown(String(n))}</li>
          ))}
        </ul>
      )}
    </>
  );
}

// One small curve for each allocator, all to the same scale.
function MemoryOverTime({ replay, setups }: { replay: Replay; setups: Setup[] }) {
  const { theme } = usePage();
  const p = palette(theme);
  const points = replay.over_time ?? [];
  if (points.length < 2) return null;
  const highest = points.reduce((m, x) => Math.max(m, x.heap_rss_bytes ?? 0, x.ideal_bytes ?? 0), 1);
  const last = points.reduce((m, x) => Math.max(m, x.time_ns ?? 0), 1);
  const w = 300,
    h = 90;
  const path = (list: Record<string, any>[], key: string) =>
    list
      .map(
        (x, i) =>
          `${i ? "L" : "M"}${((x.time_ns / last) * w).toFixed(1)} ${(h - (h * (x[key] ?? 0)) / highest).toFixed(1)}`,
      )
      .join("");
  return (
    <section>
      <h2>Memory over time, first run of each</h2>
      <div class="small-charts">
        {setups.map((s) => {
          const own = points.filter(
            (x) =>
              x.allocator === s.runs[0]!.allocator &&
              x.tunables === s.runs[0]!.tunables &&
              x.repeat === s.runs[0]!.repeat,
          );
          return (
            <figure key={s.name}>
              <figcaption>
                <bdi>{shown(s.name)}</bdi>
              </figcaption>
              <svg
                viewBox={`0 -2 ${w} ${h + 4}`}
                role="img"
                aria-label={`Resident heap of ${shown(s.name)}, at most ${bytesText(own.reduce((m, x) => Math.max(m, x.heap_rss_bytes ?? 0), 0))}`}
              >
                <path d={`${path(own, "ideal_bytes")}L${w} ${h}L0 ${h}Z`} fill={p.accentFill} />
                <path d={path(own, "heap_rss_bytes")} fill="none" stroke={p.rss} stroke-width="1.5" />
              </svg>
            </figure>
          );
        })}
      </div>
      <p class="muted">
        The line is resident memory of the heap, the area what was asked for; up to {bytesText(highest)}.
      </p>
    </section>
  );
}
