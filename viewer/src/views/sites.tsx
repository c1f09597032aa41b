// SPDX-License-Identifier: Apache-2.0
// The code to blame, by site or any other way of grouping it; a chosen site opens beside the table.

import type { Sites } from "../contract";
import { amountText, countText } from "../format";
import { usePage } from "../page";
import { filterOf } from "../row_filters";
import { question } from "../state";
import { leftByEnded, metricColumn, metricTitle } from "../time_words";
import { useAnswer } from "../use_answer";
import { Choice, Waiting } from "../widgets/bits";
import { Nothing } from "../widgets/nothing";
import { useRowChoice } from "../widgets/row_choice";
import { SitePanel } from "../widgets/site_panel";
import { SiteTable, siteFrame, siteTitles, wholeOf } from "./site_table";

const ways = ["site", "function", "file", "module", "thread", "phase", "size", "type"] as const;

export function SitesView() {
  const { state, change, source, trace } = usePage();
  const q = question(state);
  const by = state.group;
  const asked = useAnswer(`${q}|${by}`, (signal) => source.sites(q, by, null, signal));
  const refused = (w: string) =>
    state.metric === "cpu" && (w === "size" || w === "type")
      ? "CPU time has neither size nor type."
      : (source.refusal("group", w) ?? (state.base ? source.refusal("base", w) : null));
  return (
    <div class="view">
      <div class="toolbar">
        <Choice
          label="By"
          value={by}
          onChange={(group) => change({ group, site: null, sort: "" })}
          options={ways
            .filter((w) => w !== "type" || trace.types !== false)
            .filter((w) => w !== "phase" || trace.phase_names?.length)
            .map((w) => [w as string, siteTitles[w]!, refused(w)] as const)}
        />
      </div>
      <Waiting asked={asked} what="Adding up the sites">
        {(sites) => <SitesWithPanel sites={sites} by={by} q={q} />}
      </Waiting>
    </div>
  );
}

export function SitesWithPanel({ sites, by, q }: { sites: Sites; by: string; q: URLSearchParams }) {
  const { state, change, trace } = usePage();
  const choice = useRowChoice();
  const title = metricTitle(trace, state);
  if (sites.rows === 0) return <Nothing metric={state.metric} />;
  const row = state.site === null || by !== "site" ? -1 : sites.id.indexOf(state.site);
  const whole = wholeOf(sites);
  const others = sites.left_out > 0 ? sites.rows - 1 : -1;
  const filters = ["thread", "phase", "size", "type", "module"].includes(by)
    ? choice(by, sites.rows, (r) => (r === others ? null : filterOf(by, sites.names.name[r] ?? "")))
    : null;
  return (
    <div class="split">
      <div class="main">
        <p class="caption">
          {title}: {amountText(whole, sites.unit)} in{" "}
          {countText(sites.rows - (sites.left_out > 0 ? 1 : 0), by, `${by}s`)}
          {sites.left_out > 0
            ? `; ${countText(sites.left_out, "lighter one is", "lighter ones are")} together in the last row`
            : ""}
          {by === "function"
            ? "; functions that hold none of it, nor by what they call, are not listed"
            : `; ${by}s with none of it are not listed`}
          {leftByEnded(trace, state)}
        </p>
        <SiteTable
          sites={sites}
          by={by}
          sparksOf={by === "site" ? q : null}
          value={metricColumn(trace, state)}
          label={`${title} by ${by}`}
          asks
          chosen={filters ? filters.chosen : row}
          {...(filters?.onChoose ? { onChoose: filters.onChoose } : {})}
          {...(by === "site"
            ? {
                onChoose: (r: number) =>
                  r !== others && change({ site: state.site === sites.id[r] ? null : sites.id[r]! }),
              }
            : {})}
        />
        {filters && <p class="muted">{filters.says}</p>}
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
