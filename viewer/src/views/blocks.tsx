// SPDX-License-Identifier: Apache-2.0
// The blocks of one site, each a bar from its birth to its death, coloured by size. Beyond 20,000 the
// server merges neighbours; a merged bar is hatched and says how many blocks it stands for. Of a long recording
// those that are much alike are merged before that, until somebody wants each told apart.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { lanesOf } from "../block_lanes";
import { palette } from "../colors";
import type { Blocks, Sites, Trace } from "../contract";
import { axisTime, bytesText, countText, durationText, grouped, roundStep } from "../format";
import { cutTime, threadName, usePage } from "../page";
import { shown } from "../safe_text";
import type { Source } from "../source";
import { question } from "../state";
import { endWords } from "../time_words";
import { useAnswer } from "../use_answer";
import { FrameText, Waiting, frameName } from "../widgets/bits";
import { Nothing } from "../widgets/nothing";
import { siteFrame } from "./site_table";

export function BlocksView() {
  const { state, change, source, trace } = usePage();
  const q = question(state, ["metric", "before_from", "before_to", "base"]);
  // Who made blocks in a part of the time need not be at its peak, and who computes need not have any.
  const part = state.from !== null || state.to !== null;
  const metric = state.metric === "cpu" || (part && state.metric === "peak") ? "allocated" : state.metric;
  const listQuestion = question({ ...state, metric }, ["before_from", "before_to", "base"]);
  const [apart, setApart] = useState("");
  // Other blocks are merged again.
  const which = (site: number | null) => `${q}|${site}`;
  const useBlocks = (site: number | null) => {
    const each = apart === which(site);
    return useAnswer(site === null ? null : `${which(site)}|${each}`, (signal) => source.blocks(q, site!, each, signal));
  };
  // The blocks of a site that is chosen come first, then the list of all sites. Until one is chosen, it is the
  // heaviest that can be shown.
  const chosen = useBlocks(state.site);
  const listed = useRef<string | null>(null);
  if (!chosen.busy) listed.current = `${listQuestion}`;
  const sites = useAnswer(listed.current, (signal) => source.sites(listQuestion, "site", null, signal));
  const site = state.site ?? heaviest(sites.value, source);
  const first = useBlocks(state.site === null ? site : null);
  const asked = state.site === null ? first : chosen;
  const row = sites.value && site !== null ? sites.value.id.indexOf(site) : -1;
  // One that has nothing of what the list is about may have blocks all the same.
  const frame = row >= 0 ? siteFrame(sites.value!, row) : site !== null ? (asked.value?.site ?? null) : null;
  return (
    <div class="view">
      <div class="toolbar">
        <label class="field inline">
          <span>Site</span>
          <select
            value={site ?? ""}
            onChange={(event) => change({ site: event.currentTarget.value ? Number(event.currentTarget.value) : null })}
          >
            {site === null && <option value="">none</option>}
            {frame && (row < 0 || row >= mostOptions) && <option value={site!}>{shown(frameName(frame))}</option>}
            {siteOptions(sites.value, source)}
          </select>
        </label>
        {frame && <FrameText frame={frame} />}
      </div>
      {site === null ? (
        <Waiting asked={sites} what="Looking for sites">
          {() => <Nothing metric={metric} />}
        </Waiting>
      ) : (
        <Waiting asked={asked} what="Reading the blocks of this site">
          {(blocks) =>
            blocks.blocks === 0 ? (
              <p class="sentence">No block of this site is left by these filters.</p>
            ) : (
              <Bars blocks={blocks}>
                {blocks.coarse && (
                  <Alike
                    many={blocks.blocks > mostBars && !isSample(trace)}
                    asked={apart === which(site)}
                    onApart={() => setApart(which(site))}
                  />
                )}
              </Bars>
            )
          }
        </Waiting>
      )}
    </div>
  );
}

function isSample(trace: Trace): boolean {
  return trace.warnings.some((w) => w.kind === "sampled");
}

// `many`: more than can be drawn, so that they are merged in any case.
function Alike({ many, asked, onApart }: { many: boolean; asked: boolean; onApart: () => void }) {
  if (many)
    return (
      <p class="caption">
        Blocks of a stack that are much alike are drawn as one. In a shorter time, with fewer blocks, each can be told apart.
      </p>
    );
  return (
    <p class="caption">
      Blocks of a stack that are much alike are drawn as one.{" "}
      <button
        type="button"
        class="small"
        disabled={asked}
        title="Reads all events, which may take a while"
        onClick={onApart}
      >
        Tell each apart
      </button>
    </p>
  );
}

function heaviest(sites: Sites | null, source: Source): number | null {
  if (!sites) return null;
  const rows = sites.left_out > 0 ? sites.rows - 1 : sites.rows;
  for (let r = 0; r < rows; ++r)
    if (source.refusal("site", String(sites.id[r])) === null) return sites.id[r]!;
  return null;
}

const mostOptions = 200;

function siteOptions(sites: Sites | null, source: Source) {
  if (!sites) return null;
  const rows = Math.min(mostOptions, sites.left_out > 0 ? sites.rows - 1 : sites.rows);
  return Array.from({ length: rows }, (_, r) => (
    <option
      key={r}
      value={String(sites.id[r])}
      disabled={source.refusal("site", String(sites.id[r])) !== null}
      title={source.refusal("site", String(sites.id[r])) ?? undefined}
    >{`${shown(sites.names.name[r])} ${shown((sites.names.file?.[r] ?? "").split("/").pop())}${sites.names.line?.[r] ? `:${sites.names.line[r]}` : ""}`}</option>
  ));
}

const axis = 22;
const mostBars = 20_000; // Beyond, the server merges.

function Bars({ blocks, children }: { blocks: Blocks; children: ComponentChildren }) {
  const { trace, state, theme } = usePage();
  const host = useRef<HTMLDivElement>(null),
    canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState({ w: 0, h: 0 });
  const [top, setTop] = useState(0);
  const [under, setUnder] = useState<{ bar: number; x: number; y: number } | null>(null);
  // Of a sample, each block that was recorded stands for several, though nothing was merged.
  const sampled = isSample(trace) && blocks.bars < mostBars && !blocks.coarse;
  const lanes = useMemo(() => lanesOf(blocks.born, blocks.died), [blocks]);
  const from = cutTime(trace, state.from ?? 0),
    to = Math.max(from + 1, cutTime(trace, state.to ?? 1000));
  const p = palette(theme);
  const room = Math.max(1, size.h - axis);
  const tall = Math.max(3, Math.min(14, Math.floor(room / Math.max(1, lanes.count))));
  const logs = useMemo(
    () => [Math.log2(Math.max(1, blocks.bytes_min)), Math.log2(Math.max(2, blocks.bytes_max))] as const,
    [blocks],
  );
  const colours = p.sizes;
  const colourOf = (bytes: number) => {
    const share = logs[1] > logs[0] ? (Math.log2(Math.max(1, bytes)) - logs[0]) / (logs[1] - logs[0]) : 0.5;
    return Math.max(0, Math.min(colours.length - 1, Math.floor(share * colours.length)));
  };
  const x = (ns: number) => ((ns - from) / (to - from)) * size.w;

  useEffect(() => {
    const observer = new ResizeObserver(
      () => host.current && setSize({ w: host.current.clientWidth, h: host.current.clientHeight }),
    );
    observer.observe(host.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const context = canvas.current?.getContext("2d", { alpha: false });
    if (!context || size.w === 0) return;
    const scale = Math.min(devicePixelRatio || 1, 2);
    canvas.current!.width = size.w * scale;
    canvas.current!.height = size.h * scale;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = p.panel;
    context.fillRect(0, 0, size.w, size.h);
    for (let colour = 0; colour < colours.length; ++colour) {
      context.fillStyle = colours[colour]!;
      for (let i = 0; i < blocks.born.length; ++i) {
        if (colourOf(blocks.size[i]!) !== colour) continue;
        const y = axis + lanes.lane[i]! * tall - top;
        if (y + tall < axis || y > size.h || blocks.died[i]! < from || blocks.born[i]! > to) continue;
        const left = Math.max(0, x(blocks.born[i]!)),
          right = Math.min(size.w, x(blocks.died[i]!));
        context.fillRect(left, y, Math.max(1, right - left), Math.max(1, tall - 1));
      }
    }
    // Merged bars are hatched, whatever their colour.
    context.strokeStyle = p.ink;
    context.globalAlpha = 0.55;
    context.lineWidth = 1;
    context.beginPath();
    for (let i = 0; i < blocks.born.length; ++i) {
      if (sampled || blocks.stands_for[i]! <= 1) continue;
      const y = axis + lanes.lane[i]! * tall - top;
      if (y + tall < axis || y > size.h) continue;
      const left = Math.max(0, x(blocks.born[i]!)),
        right = Math.min(size.w, x(blocks.died[i]!));
      for (let at = left + 2; at < right; at += 6) (context.moveTo(at, y), context.lineTo(at, y + tall - 1));
    }
    context.stroke();
    context.globalAlpha = 1;
    context.fillStyle = p.panel;
    context.fillRect(0, 0, size.w, axis);
    context.fillStyle = p.muted;
    context.font = "11px system-ui, sans-serif";
    const step = roundStep(to - from, size.w / 110);
    for (let ns = Math.ceil(from / step) * step; ns < to; ns += step) {
      const label = axisTime(ns, step);
      if (x(ns) + 3 + context.measureText(label).width <= size.w) context.fillText(label, x(ns) + 3, 14);
      context.fillRect(x(ns), axis - 5, 1, 5);
    }
  }, [blocks, size, top, theme, from, to]);

  const find = (event: MouseEvent) => {
    const box = host.current!.getBoundingClientRect();
    const px = event.clientX - box.left,
      lane = Math.floor((event.clientY - box.top - axis + top) / tall);
    const ns = from + (px / size.w) * (to - from),
      slack = ((to - from) / size.w) * 1.5;
    for (let i = 0; i < blocks.born.length; ++i)
      if (lanes.lane[i] === lane && blocks.born[i]! - slack <= ns && ns <= blocks.died[i]! + slack)
        return setUnder({ bar: i, x: event.clientX, y: event.clientY });
    setUnder(null);
  };
  const last = Math.min(blocks.end_ns, trace.duration_ns);
  const live = blocks.died.reduce((sum, d, i) => sum + (d > last ? Math.max(1, blocks.stands_for[i]!) : 0), 0);
  const merged = blocks.blocks > blocks.bars;
  const end = endWords(trace, state); // Of a range, what is live at its end.
  const [least, most] = [bytesText(blocks.bytes_min), bytesText(blocks.bytes_max)];
  const sizes = least === most ? least : `${least} to ${most}`;
  const largest = useMemo(
    () =>
      Array.from(blocks.size.keys())
        .sort((a, b) => blocks.size[b]! - blocks.size[a]!)
        .slice(0, 20),
    [blocks],
  );
  const u = under && under.bar < blocks.born.length ? under : null;
  const thread = u && threadName(trace, blocks.tid?.[u.bar] ?? 0);
  return (
    <div class="blocks">
      <p class="caption">
        {`${countText(blocks.blocks, "block", "blocks")} of ${sizes}; up to ${countText(lanes.count, "bar", "bars")} at once; ${grouped(live)} still live ${end}`}
        {!merged
          ? ""
          : sampled
            ? `. ${countText(blocks.bars, "recorded block stands", "recorded blocks stand")} for ${grouped(blocks.blocks)}`
            : `. They are merged into ${countText(blocks.bars, "bar", "bars")}; a hatched one stands for several`}
        .
        <span class="legend-inline">
          {" "}
          smaller{" "}
          {colours.map((c) => (
            <span key={c} class="swatch" style={{ background: c }} />
          ))}{" "}
          larger
        </span>
      </p>
      {children}
      <div
        class="blocks-host"
        ref={host}
        tabIndex={0}
        role="region"
        aria-label="Blocks from birth to death"
        onMouseMove={find}
        onMouseLeave={() => setUnder(null)}
        onScroll={(event) => setTop((event.currentTarget as HTMLElement).scrollTop)}
      >
        <div class="flame-sticky">
          <canvas
            ref={canvas}
            class="flame-canvas"
            role="img"
            aria-label={`${grouped(blocks.blocks)} blocks of this site, each a bar from birth to death.`}
          />
        </div>
        <div style={{ height: `${Math.max(0, lanes.count * tall + axis - size.h)}px` }} />
      </div>
      <table class="unseen">
        <caption>The largest blocks of this site</caption>
        <thead>
          <tr>
            <th>Size</th>
            <th>Blocks</th>
            <th>Born</th>
            <th>Died</th>
          </tr>
        </thead>
        <tbody>
          {largest.map((i) => (
            <tr key={i}>
              <td>{bytesText(blocks.size[i]!)}</td>
              <td>{grouped(Math.max(1, blocks.stands_for[i]!))}</td>
              <td>{durationText(blocks.born[i]!)}</td>
              <td>{blocks.died[i]! > last ? "still live" : durationText(blocks.died[i]!)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {u && (
        <div
          class="tip"
          style={{
            transform: `translate(${Math.min(u.x + 14, innerWidth - 300)}px, ${Math.min(u.y + 18, innerHeight - 110)}px)`,
          }}
        >
          {blocks.stands_for[u.bar]! > 1 && (
            <span>
              {sampled ? (
                <>
                  <b>{bytesText(blocks.size[u.bar]!)}</b>, recorded for {grouped(blocks.stands_for[u.bar]!)} blocks
                </>
              ) : (
                <>
                  <b>{grouped(blocks.stands_for[u.bar]!)} blocks</b>, of {bytesText(blocks.size[u.bar]!)} on average
                </>
              )}
            </span>
          )}
          {blocks.stands_for[u.bar]! <= 1 && (
            <span>
              <b>{bytesText(blocks.size[u.bar]!)}</b> ({grouped(blocks.size[u.bar]!)} B)
            </span>
          )}
          <span>
            born {durationText(blocks.born[u.bar]!)},{" "}
            {blocks.died[u.bar]! > last ? `still live ${end}` : `died ${durationText(blocks.died[u.bar]!)}`}
          </span>
          {blocks.died[u.bar]! <= last && <span>lived {durationText(blocks.died[u.bar]! - blocks.born[u.bar]!)}</span>}
          {thread && <span class="muted">thread {shown(thread)}</span>}
        </div>
      )}
    </div>
  );
}
