// SPDX-License-Identifier: Apache-2.0
// Two times of the recording against each other, or this trace against the other that `view` was given.
// What comes after is the filter bar's range; what was before is chosen here.

import { useMemo } from "preact/hooks";
import type { Sites } from "../contract";
import { amountText, changeText, durationText } from "../format";
import { cutTime, metricWords, usePage } from "../page";
import { shown } from "../safe_text";
import { isCompared, question } from "../state";
import { metricBefore } from "../time_choice";
import { afterWords, beforeWords } from "../time_words";
import { useAnswer } from "../use_answer";
import { Choice, Waiting } from "../widgets/bits";
import { SitePanel } from "../widgets/site_panel";
import { SiteTable, siteFrame } from "./site_table";

// What a range has an amount of: what happened in it. What is live is so at an instant.
const ofRanges = ["allocated", "allocations", "calls", "temporary", "lifetime", "overhead", "allocator-time", "cpu"];

export function DiffView() {
  const { state, change, source, trace } = usePage();
  const q = question(state);
  const compared = isCompared(state);
  const asked = useAnswer(compared ? `${q}` : null, (signal) => source.sites(q, "site", null, signal));
  const metric = metricBefore(state);
  const halves = () =>
    change({
      base: false,
      metric: ofRanges.includes(metric) ? metric : "allocated",
      before_from: 0,
      before_to: 500,
      from: 500,
      to: 1000,
    });
  const instants = () =>
    change({
      base: false,
      metric: "live",
      metric_was: metric === "live" ? "" : metric,
      before_from: null,
      before_to: state.to !== null && state.to < 1000 ? state.to : 500,
      from: null,
      to: 1000,
    });
  const how = state.base
    ? "base"
    : !compared
      ? ""
      : state.metric === "live"
        ? "instants"
        : "ranges";
  return (
    <div class="view">
      <div class="toolbar">
        <Choice
          label="Compare"
          value={how}
          onChange={(v) =>
            v === "base"
              ? change({ base: true, before_from: null, before_to: null })
              : v === "instants"
                ? instants()
                : halves()
          }
          options={[
            ["instants", "two instants"],
            ["ranges", "two ranges"],
            ...(trace.base ? [["base", `before: ${shown(trace.base.name)}`] as const] : []),
          ]}
        />
        {compared && !state.base && (
          <>
            {how === "ranges" && (
              <CutField label="Before from" value={state.before_from ?? 0} set={(v) => change({ before_from: v })} />
            )}
            <CutField
              label={how === "ranges" ? "to" : "Before"}
              value={state.before_to ?? 1000}
              set={(v) => change({ before_to: v })}
            />
            {how === "ranges" && (
              <CutField label="After from" value={state.from ?? 0} set={(v) => change({ from: v })} />
            )}
            <CutField
              label={how === "ranges" ? "to" : "After"}
              value={state.to ?? 1000}
              set={(v) => change({ to: v })}
            />
          </>
        )}
        {compared && (
          <button type="button" class="small" onClick={() => change({ view: "flame" })}>
            As a flame graph
          </button>
        )}
      </div>
      {!compared ? (
        <p class="sentence">
          Nothing is compared yet. Choose two instants of this recording (what is live at each), or two ranges of its time
          (what was allocated in each)
          {trace.base ? `, or ${shown(trace.base.name)}, the recording from before` : ""}.{" "}
          {!trace.base && (
            <>
              <code>malloscope view AFTER --base BEFORE</code> compares two recordings.
            </>
          )}
        </p>
      ) : (
        <Waiting asked={asked} what="Comparing">
          {(sites) => (
            <Changes
              sites={sites}
              before={beforeWords(trace, state)}
              after={afterWords(trace, state)}
            />
          )}
        </Waiting>
      )}
    </div>
  );
}

function CutField({ label, value, set }: { label: string; value: number; set: (tenths: number) => void }) {
  const { trace } = usePage();
  return (
    <label class="field inline">
      <span>{label}</span>
      <input
        type="number"
        min={0}
        max={100}
        step={0.1}
        value={value / 10}
        class="cut"
        onChange={(event) => set(Math.max(0, Math.min(1000, Math.round(Number(event.currentTarget.value) * 10))))}
      />
      <span class="muted">% {durationText(cutTime(trace, value))}</span>
    </label>
  );
}

function Changes({ sites, before, after }: { sites: Sites; before: string; after: string }) {
  const { state, change } = usePage();
  const is = sites.columns.get("value") ?? new Float64Array(),
    was = sites.columns.get("before") ?? new Float64Array(is.length);
  const sums = [was, is].map((v) => v.reduce((a, b) => a + b, 0)) as [number, number];
  const row = state.site === null ? -1 : sites.id.indexOf(state.site);
  const rows = useMemo(() => {
    const all = Array.from(is, (_, r) => r);
    return state.unchanged ? all : all.filter((r) => is[r] !== was[r]);
  }, [sites, state.unchanged]);
  const counts = { new: 0, grown: 0, shrunk: 0, gone: 0, same: 0 };
  is.forEach(
    (v, i) =>
      ++counts[v === was[i] ? "same" : was[i] === 0 ? "new" : v === 0 ? "gone" : v > was[i]! ? "grown" : "shrunk"],
  );
  return (
    <div class="split">
      <div class="main">
        <p class="caption">
          <b>
            {metricWords(state.metric).title}: {amountText(sums[0], sites.unit)} before ({before}),{" "}
            {amountText(sums[1], sites.unit)} after ({after}),{" "}
          </b>
          <b class={sums[1] > sums[0] ? "grown" : "shrunk"}>{changeText(sums[1] - sums[0], sites.unit)}</b>.
          {` ${counts.new} new, ${counts.grown} grown, ${counts.shrunk} shrunk, ${counts.gone} gone, ${counts.same} unchanged.`}
          {counts.same > 0 && (
            <label class="check">
              <input
                type="checkbox"
                checked={state.unchanged}
                onChange={(event) => change({ unchanged: event.currentTarget.checked }, false)}
              />
              unchanged too
            </label>
          )}
        </p>
        {rows.length === 0 && <p class="sentence">No site has changed.</p>}
        <SiteTable
          sites={sites}
          by="site"
          value="after"
          label="Changes by site"
          rows={rows}
          sparksOf={null}
          only={["before", "value", "live_blocks", "allocations", "reallocations", "stacks"]}
          chosen={row}
          onChoose={(r) =>
            !(sites.left_out > 0 && r === sites.rows - 1) &&
            change({ site: state.site === sites.id[r] ? null : sites.id[r]! })
          }
        />
      </div>
      {row >= 0 && (
        <SitePanel
          site={state.site!}
          frame={siteFrame(sites, row)}
          unit={sites.unit}
          onClose={() => change({ site: null })}
        />
      )}
    </div>
  );
}
