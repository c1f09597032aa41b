// SPDX-License-Identifier: Apache-2.0
// What `malloscope replay` found on other allocators: the median of each one's runs, its memory and its
// fragmentation over time, and what a call costs by size.

import { useMemo, useState } from "preact/hooks";
import { palette } from "../colors";
import { commands } from "../command_words";
import type { Replay } from "../contract";
import { axisTime, bytesText, durationText, fixed, grouped, roundStep, threeDigits } from "../format";
import { usePage } from "../page";
import {
  byTime,
  callsOf,
  cyclesBySize,
  figures,
  fragmentationLimit,
  median,
  momentsOf,
  type Row,
  type Setup,
  type SizeClass,
  setupsOf,
  spreadText,
  timedCalls,
} from "../replay_results";
import { shown } from "../safe_text";
import { useAnswer } from "../use_answer";
import { Choice, Waiting, Words } from "../widgets/bits";
import { LineChart, type Tick } from "../widgets/line_chart";
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

function Replayed({ replay }: { replay: Replay }) {
  const setups = useMemo(() => byTime(setupsOf(replay)), [replay]);
  const of = (r: number, what: (run: Row) => number) => median(figures(setups[r]!.runs, what));
  const valued = (
    key: string,
    title: string,
    value: (r: number) => number,
    text: (n: number) => string,
    help = "",
  ): TableColumn => ({
    key,
    title,
    width: "96px",
    right: true,
    help,
    sort: value,
    cell: (r) => (Number.isFinite(value(r)) ? text(value(r)) : "-"),
  });
  const column = (key: string, title: string, what: (run: Row) => number, text: (n: number) => string) =>
    valued(key, title, (r) => of(r, what), text);
  const spread = (key: string, title: string, what: (run: Row) => number): TableColumn[] =>
    setups.every((s) => s.runs.length < 2)
      ? []
      : [
          {
            key,
            title,
            width: "62px",
            right: true,
            help: "Half the distance between the outermost runs, by the median",
            cell: (r) => <span class="muted">{spreadText(figures(setups[r]!.runs, what))}</span>,
          },
        ];
  const [rss, ideal, time] = ["heap_max_rss_bytes", "max_ideal_bytes", "allocator_ns"].map(
    (key) => (run: Row) => Number(run[key] ?? NaN),
  ) as [(run: Row) => number, (run: Row) => number, (run: Row) => number];
  const columns = useMemo<TableColumn[]>(
    () => [
      {
        key: "name",
        title: "allocator",
        width: "minmax(140px, 1fr)",
        sort: (r) => setups[r]!.name,
        cell: (r) => (
          <>
            <bdi>{shown(setups[r]!.name)}</bdi>
            {setups[r]!.name === replay.reference && (
              <span title="What the others are compared with">
                {" *"}
                <span class="unseen"> (the reference)</span>
              </span>
            )}
          </>
        ),
      },
      column("rss", "heap RSS", rss, bytesText),
      ...spread("rss_spread", "+- RSS", rss),
      column("ideal", "ideal", ideal, bytesText),
      valued("ratio", "RSS/ideal", (r) => of(r, rss) / of(r, ideal), (n) => fixed(n, 2)),
      column("end", "at end", (r) => r.heap_end_rss_bytes, bytesText),
      column("time", "in allocator", time, durationText),
      ...spread("time_spread", "+- time", time),
      valued("call", "ns/call", (r) => of(r, time) / of(r, callsOf), (n) => fixed(n, 2)),
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
      <p class="headline">
        <Words text={commands(advice ?? `Replayed: ${replay.process ?? "the recorded calls"}`)} />
      </p>
      <VirtualTable label="Allocators" columns={columns} count={setups.length} tallest={14} />
      <p class="muted">
        Each figure is the median of its runs; of an even number, the upper one of the two in the middle.
        {setups.some((s) => s.name === replay.reference) ? " * is what the others are compared with." : ""}
      </p>
      <MemoryOverTime replay={replay} setups={setups} />
      <div class="side-by-side">
        <FragmentationOverTime replay={replay} setups={setups} />
        <CyclesBySize replay={replay} setups={setups} />
      </div>
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
    h = 104,
    left = 54,
    bottom = 16;
  const px = (ns: number) => (left + ((w - left - 4) * ns) / last).toFixed(1);
  const py = (bytes: number) => ((h - bottom) * (1 - bytes / highest)).toFixed(1);
  const path = (list: Row[], key: string) =>
    list.map((x, i) => `${i ? "L" : "M"}${px(x.time_ns ?? 0)} ${py(x[key] ?? 0)}`).join("");
  const label = (x: number, y: number, anchor: "start" | "middle" | "end", text: string) => (
    <text x={x} y={y} text-anchor={anchor} fill={p.muted} font-size="10">
      {text}
    </text>
  );
  return (
    <section>
      <h2>Memory over time, first run of each</h2>
      <div class="small-charts">
        {setups.map((s) => {
          const own = momentsOf(replay, s);
          const end = own.at(-1)?.time_ns ?? 0;
          return (
            <figure key={s.name}>
              <figcaption>
                <bdi>{shown(s.name)}</bdi>
              </figcaption>
              <svg
                viewBox={`0 -8 ${w} ${h + 8}`}
                role="img"
                aria-label={`Resident heap of ${shown(s.name)}, at most ${bytesText(own.reduce((m, x) => Math.max(m, x.heap_rss_bytes ?? 0), 0))}, in ${durationText(end)}`}
              >
                <path d={`M${left} 0V${h - bottom}H${w - 4}`} fill="none" stroke={p.line} />
                {label(left - 4, 4, "end", sizeText(highest))}
                {label(left - 4, h - bottom, "end", "0 B")}
                {label(left, h - 4, "middle", "0")}
                {label(w - 4, h - 4, "end", durationText(last))}
                {own.length > 1 && (
                  // The area ends where the run does.
                  <path
                    d={`${path(own, "ideal_bytes")}V${h - bottom}H${px(own[0]!.time_ns ?? 0)}Z`}
                    fill={p.accentFill}
                  />
                )}
                <path d={path(own, "heap_rss_bytes")} fill="none" stroke={p.rss} stroke-width="1.5" />
              </svg>
            </figure>
          );
        })}
      </div>
      <p class="muted">
        The line is resident memory of the heap, the area what was asked for; all to the same scales, and each until its
        run ended.
      </p>
    </section>
  );
}

function timeTicks(last: number): Tick[] {
  const step = roundStep(last, 6);
  return Array.from({ length: Math.floor(last / step) + 1 }, (_, i) => ({
    at: i * step,
    text: axisTime(i * step, step),
  }));
}

function FragmentationOverTime({ replay, setups }: { replay: Replay; setups: Setup[] }) {
  const lines = useMemo(
    () => setups.map((s) => ({ name: s.name, moments: momentsOf(replay, s) })).filter((l) => l.moments.length > 1),
    [replay, setups],
  );
  if (!lines.length) return null;
  const last = Math.max(1, ...lines.flatMap((l) => l.moments.map((x) => x.time_ns ?? 0)));
  const limit = Math.max(...lines.map((l) => fragmentationLimit(l.moments)));
  const step = roundStep(limit - 1, 4);
  const top = 1 + Math.ceil((limit - 1) / step - 1e-9) * step;
  const cut = lines.some((l) => l.moments.some((x) => (x.fragmentation ?? 0) > top));
  const ticks = Array.from({ length: Math.round((top - 1) / step) + 1 }, (_, i) => ({
    at: 1 + i * step,
    text: threeDigits(1 + i * step),
  }));
  return (
    <section>
      <h2>Fragmentation over time: resident heap by what was asked for</h2>
      <LineChart
        label={`Fragmentation over time of ${lines.map((l) => shown(l.name)).join(", ")}`}
        lines={lines.map((l) => ({
          name: l.name,
          points: l.moments.map((x) => [x.time_ns ?? 0, x.fragmentation ?? NaN]),
        }))}
        x={{ from: 0, to: last, ticks: timeTicks(last) }}
        y={{ from: Math.min(1, ticks[0]!.at), to: top, ticks }}
      />
      <p class="muted">
        1 would be a heap without any waste; the first run of each.
        {cut && ` Cut at ${threeDigits(top)}: beyond it only while next to nothing is live.`}
      </p>
    </section>
  );
}

function CyclesBySize({ replay, setups }: { replay: Replay; setups: Setup[] }) {
  const calls = useMemo(() => timedCalls(replay), [replay]);
  const [chosen, setChosen] = useState("malloc");
  const call = calls.includes(chosen) ? chosen : calls[0];
  const classes = useMemo(() => (call ? cyclesBySize(replay, setups, call) : []), [replay, setups, call]);
  if (!call || !classes.length) return null;
  return (
    <section>
      <div class="toolbar">
        <h2>Cycles of a call, by size</h2>
        <Choice label="Call" value={call} onChange={setChosen} options={calls.map((c) => [c, c] as const)} />
      </div>
      <CyclesChart call={call} classes={classes} setups={setups} />
      <CyclesTable call={call} classes={classes} setups={setups} />
      <p class="muted">
        The mean of the calls that were timed, over all runs.{" "}
        {call === "free" ? "Sizes are those of the blocks." : "Sizes are those asked for."}
      </p>
    </section>
  );
}

interface CyclesProps {
  call: string;
  classes: SizeClass[];
  setups: Setup[];
}

// Up by powers of ten: a call that goes to the kernel costs a thousand times as much as one that does not.
function CyclesChart({ call, classes, setups }: CyclesProps) {
  const known = classes.flatMap((c) => c.cycles.filter((n) => n > 0)).map(Math.log10);
  const from = Math.floor(Math.min(...known)),
    to = Math.max(from + 1, Math.ceil(Math.max(...known)));
  const size = (c: SizeClass) => (c.from > 0 ? Math.log2(c.from) : -1);
  const [first, last] = [size(classes[0]!), size(classes.at(-1)!)];
  const every = Math.max(1, Math.ceil((last - first) / 9));
  return (
    <LineChart
      label={`Cycles of ${call} by size for ${setups.map((s) => shown(s.name)).join(", ")}; the table below has the numbers`}
      dots
      lines={setups.map((s, i) => ({
        name: s.name,
        points: classes.map((c) => [size(c), c.cycles[i]! > 0 ? Math.log10(c.cycles[i]!) : NaN]),
      }))}
      x={{
        from: first,
        to: Math.max(first + 1, last),
        ticks: Array.from({ length: Math.floor((last - first) / every) + 1 }, (_, i) => ({
          at: first + i * every,
          text: sizeText(Math.floor(2 ** (first + i * every))),
        })),
      }}
      y={{
        from,
        to,
        ticks: Array.from({ length: to - from + 1 }, (_, i) => ({ at: from + i, text: grouped(10 ** (from + i)) })),
      }}
    />
  );
}

function CyclesTable({ call, classes, setups }: CyclesProps) {
  const columns = useMemo<TableColumn[]>(
    () => [
      {
        key: "size",
        title: "size",
        width: "minmax(116px, 1.4fr)",
        sort: (r) => classes[r]!.from,
        cell: (r) => `${sizeText(classes[r]!.from)} to ${sizeText(classes[r]!.to)}`,
      },
      {
        key: "calls",
        title: "calls a run",
        help: "Estimated from those that were timed",
        width: "110px",
        right: true,
        sort: (r) => median(classes[r]!.calls),
        cell: (r) => grouped(median(classes[r]!.calls)),
      },
      ...setups.map((s, i) => ({
        key: `cycles${i}`,
        title: shown(s.name),
        width: "minmax(74px, 1fr)",
        right: true,
        sort: (r: number) => classes[r]!.cycles[i] ?? NaN,
        cell: (r: number) => (Number.isNaN(classes[r]!.cycles[i]) ? "-" : grouped(classes[r]!.cycles[i]!)),
      })),
    ],
    [classes, setups],
  );
  return <VirtualTable label={`Cycles of ${call} by size`} columns={columns} count={classes.length} tallest={12} />;
}

function sizeText(bytes: number): string {
  return bytesText(bytes).replace(".0 ", " ");
}
