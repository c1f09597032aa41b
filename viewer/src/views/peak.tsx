// SPDX-License-Identifier: Apache-2.0
// What the heap was made of at its highest moment, or at the instant that was chosen, as areas and as a
// table.

import { useMemo } from "preact/hooks";
import type { Sites } from "../contract";
import { bytesText, countText, durationText, percentText } from "../format";
import { peakTime, usePage } from "../page";
import type { Source } from "../source";
import { type State, question } from "../state";
import { isInstant, isWholeTime, leftByEnded, metricColumn, metricTitle } from "../time_words";
import { useAnswer } from "../use_answer";
import { Waiting } from "../widgets/bits";
import { Nothing } from "../widgets/nothing";
import { SitePanel } from "../widgets/site_panel";
import { Treemap } from "../widgets/treemap";
import { SiteTable, siteFrame, wholeOf } from "./site_table";

export function PeakView() {
  const { state, source } = usePage();
  const metric = peakMetric(state, source);
  const q = question({ ...state, metric }, ["before_from", "before_to", "base"]);
  const asked = useAnswer(`${q}`, (signal) => source.sites(q, "site", null, signal));
  return (
    <div class="view">
      <Waiting asked={asked} what="Adding up the peak">
        {(sites) => <Peak sites={sites} q={q} metric={metric} />}
      </Waiting>
    </div>
  );
}

// An instant is looked at itself; so is the end of a range whose peak cannot be told.
export function peakMetric(state: State, source: Source): string {
  return isInstant(state) || (!isWholeTime(state) && source.refusal("range", "peak")) ? "live" : "peak";
}

function Peak({ sites, q, metric }: { sites: Sites; q: URLSearchParams; metric: string }) {
  const { state, change, trace, theme } = usePage();
  const values = sites.columns.get("value") ?? new Float64Array();
  const whole = wholeOf(sites);
  const parts = useMemo(
    () =>
      Array.from(values, (amount, r) => ({
        key: r,
        name: sites.left_out > 0 && r === sites.rows - 1 ? "others" : (sites.names.name[r] ?? "?"),
        module: sites.names.module?.[r] ?? "",
        amount,
        text: `${bytesText(amount)}, ${percentText(amount, whole)}`,
      })),
    [sites],
  );
  if (whole <= 0) return <Nothing metric={metric} view="sites" />;
  const title = metricTitle(trace, { ...state, metric });
  const when = metric === "live" ? title.replace(/^Live/, "live") : title.replace(/^Live /, "");
  // Where the answer does not tell it, it is known of the whole alone.
  const peaked =
    metric === "peak" ? (sites.peak_time_ns ?? (isWholeTime(state) ? peakTime(trace, state) : null)) : null;
  const row = state.site === null ? -1 : sites.id.indexOf(state.site);
  const others = sites.left_out > 0 ? sites.rows - 1 : -1;
  const choose = (r: number) =>
    r !== others && change({ site: r >= 0 && state.site !== sites.id[r] ? sites.id[r]! : null });
  return (
    <div class="split">
      <div class="main">
        <p class="caption">
          {bytesText(whole)} {when}
          {peaked !== null ? `, ${durationText(peaked)} after the recording began` : ""}
          {`, from ${countText(sites.rows, "site", "sites")}`}
          {leftByEnded(trace, { ...state, metric })}
        </p>
        <Treemap
          parts={parts}
          program={trace.processes[0]?.program ?? ""}
          theme={theme}
          chosen={row}
          onChoose={choose}
          textOf={bytesText}
          label={`What ${bytesText(whole)} ${when} are made of, by module and site`}
        />
        <SiteTable
          sites={sites}
          by="site"
          value={metricColumn(trace, { ...state, metric })}
          label={`Sites ${when}`}
          chosen={row}
          onChoose={choose}
          sparksOf={q}
          only={["value", "live_blocks", "allocations", "reallocations", "stacks"]}
        />
      </div>
      {row >= 0 && (
        <SitePanel
          site={state.site!}
          frame={siteFrame(sites, row)}
          unit="bytes"
          onClose={() => change({ site: null })}
        />
      )}
    </div>
  );
}
