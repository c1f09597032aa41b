// SPDX-License-Identifier: Apache-2.0
// The answer on one page, in words and numbers; each of them leads to the view that proves it.

import type { Sites } from "../contract";
import { amountText, bytesText, countText, durationText, grouped, percentText } from "../format";
import { type Page, cutTime, usePage } from "../page";
import { baseName, shown } from "../safe_text";
import { type State, fromWords, initial, isFiltered, question, toHash } from "../state";
import { endWords, isInstant, isWholeTime, rangeWords } from "../time_words";
import { useAnswer } from "../use_answer";
import { FrameText, Waiting } from "../widgets/bits";
import { peakMetric } from "./peak";
import { siteFrame, wholeOf } from "./site_table";

// Each list says what time it is of. What is live at an instant is told once.
function listsOf(page: Page): [metric: string, title: string, view: string][] {
  const { trace, state, source } = page;
  const whole = isWholeTime(state);
  const range = isInstant(state) ? `until ${endWords(trace, state).slice(3)}` : rangeWords(trace, state);
  const of = (title: string) => (whole ? title : `${title}, ${range}`);
  const end = endWords(trace, state);
  const first: [string, string, string][] =
    peakMetric(state, source) === "live"
      ? [["live", `Heaviest ${end}`, "peak"]]
      : [
          ["peak", whole ? "Heaviest at the peak" : `Heaviest at the peak of ${range}`, "peak"],
          ["live", whole ? "Still live at the end" : `Live ${end}`, whole ? "leaks" : "sites"],
        ];
  return [
    ...first,
    ["calls", of("Most calls"), "sites"],
    ["allocated", of("Most bytes allocated"), "sites"],
    ["cpu", of("Most CPU time"), "flame"],
  ];
}

export function OverviewView() {
  const page = usePage();
  const { trace, state } = page;
  const t = trace.totals;
  const rss = trace.peak_rss_bytes ?? Number(t.peak_rss_bytes ?? 0);
  const part = isFiltered(state) || !isWholeTime(state);
  const whole = (title: string) => (part ? `${title}, whole recording` : title);
  return (
    <div class="view scrolls overview">
      {part && <p class="caption">Of the whole recording, whatever filters and time are chosen:</p>}
      <div class="figures" role="list" aria-label="Figures of the whole recording">
        <Figure
          title={whole("Peak heap")}
          number={bytesText(t.peak_bytes ?? 0)}
          to={{ view: "peak" }}
          more={
            trace.peak_time_ns !== undefined
              ? `at ${durationText(trace.peak_time_ns)} of ${durationText(trace.duration_ns)}`
              : ""
          }
        />
        <Figure
          title={whole("Allocated")}
          number={bytesText(t.allocated_bytes ?? 0)}
          to={{ view: "sites", metric: "allocated" }}
          more={`in ${countText(t.allocations ?? 0, "allocation", "allocations")}`}
        />
        <Figure
          title={whole("Still live")}
          number={bytesText(t.live_bytes ?? 0)}
          to={{ view: "leaks" }}
          more={`at the end, in ${countText(t.live_blocks ?? 0, "block", "blocks")}`}
        />
        <Figure
          title={whole("Temporary")}
          number={percentText(t.temporary ?? 0, t.allocations ?? 0)}
          to={{ view: "sites", metric: "temporary" }}
          more={countText(t.temporary ?? 0, "allocation", "allocations")}
        />
        {rss > 0 && (
          <Figure title={whole("Peak RSS")} number={bytesText(rss)} to={{ view: "more", answer: "rss" }} more="resident" />
        )}
      </div>
      {trace.overview.length > 0 && (
        <ul class="answers">
          {trace.overview.map((line, i) => (
            <li key={i}>{line.to ? <Go to={fromWords(line.to)}>{shown(line.text)}</Go> : shown(line.text)}</li>
          ))}
        </ul>
      )}
      {part && (
        <p class="caption">
          {isWholeTime(state)
            ? "Of what the filters leave:"
            : `${isInstant(state) ? `Until ${endWords(trace, state).slice(3)}` : `Of ${rangeWords(trace, state)}`}${isFiltered(state) ? ", of what the filters leave" : ""}:`}
        </p>
      )}
      <div class="lists">
        {listsOf(page)
          .filter(([metric]) => trace.metrics.includes(metric))
          .map(([metric, title, view]) => (
            <Top key={metric} metric={metric} title={title} view={view} />
          ))}
      </div>
      <Processes title={whole("Processes")} />
      <About />
    </div>
  );
}

// A link that is a real one: it can be copied, or opened in another tab.
function Go({ to, children }: { to: State; children: preact.ComponentChildren }) {
  return <a href={toHash(to)}>{children}</a>;
}

function Figure({ title, number, more, to }: { title: string; number: string; more: string; to: Partial<State> }) {
  return (
    <div class="figure" role="listitem">
      <Go to={{ ...initial, ...to }}>
        <span class="figure-title">{title}</span>
        <span class="figure-number">{number}</span>
        <span class="figure-more">{more}</span>
      </Go>
    </div>
  );
}

function Top({ metric, title, view }: { metric: string; title: string; view: string }) {
  const { state, source } = usePage();
  const q = question({ ...state, metric }, ["before_from", "before_to", "base"]);
  const asked = useAnswer(`${q}`, (signal) => source.sites(q, "site", 6, signal));
  return (
    <section class="top">
      <h2>
        <Go to={{ ...state, metric, view, sort: "", site: null }}>{title}</Go>
      </h2>
      <Waiting asked={asked} what="Adding up">
        {(sites) => <TopRows sites={sites} metric={metric} />}
      </Waiting>
    </section>
  );
}

function TopRows({ sites, metric }: { sites: Sites; metric: string }) {
  const { state } = usePage();
  const values = sites.columns.get("value") ?? new Float64Array();
  const whole = wholeOf(sites);
  const rows = Math.min(5, sites.left_out > 0 ? sites.rows - 1 : sites.rows);
  const to = (r: number) =>
    toHash({ ...state, view: "sites", group: "site", metric, metric_was: "", site: sites.id[r]!, sort: "" });
  if (whole <= 0) return <p class="muted">nothing</p>;
  return (
    <table class="plain">
      <tbody>
        {Array.from({ length: rows }, (_, r) => (
          <tr key={r}>
            <td class="right amount">{amountText(values[r]!, sites.unit)}</td>
            <td class="right percent">{percentText(values[r]!, whole)}</td>
            <td class="grow">
              <FrameText frame={siteFrame(sites, r)} to={to(r)} />
            </td>
            <td>
              <a class="show" href={to(r)} aria-label={`Show ${shown(sites.names.name[r])}`}>
                show
              </a>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Processes({ title }: { title: string }) {
  const { trace, state, change } = usePage();
  if (trace.processes.length < 2) return null;
  return (
    <section class="top">
      <h2>{title}</h2>
      <div class="plain-scroll">
        <table class="plain">
          <thead>
            <tr>
              <th>pid</th>
              <th>program</th>
              <th class="right">peak</th>
              <th class="right">live at end</th>
              <th class="right">allocations</th>
              <th class="right">threads</th>
              <th>from</th>
              <th>ended</th>
            </tr>
          </thead>
          <tbody>
            {trace.processes.slice(0, 200).map((p, i) => (
              <tr key={i}>
                <td>
                  <button
                    type="button"
                    class="link"
                    aria-pressed={state.process === String(p.pid)}
                    onClick={() => change({ process: String(p.pid) })}
                  >
                    {p.pid}
                  </button>
                </td>
                <td title={shown(p.command)}>
                  <bdi>{shown(baseName(p.program ?? p.command ?? ""))}</bdi>
                </td>
                <td class="right">{bytesText(p.peak_bytes ?? 0)}</td>
                <td class="right">{bytesText(p.live_bytes ?? 0)}</td>
                <td class="right">{grouped(p.allocations ?? 0)}</td>
                <td class="right">{grouped(p.threads ?? 0)}</td>
                <td>{durationText(p.start_ns ?? 0)}</td>
                <td>
                  {shown(p.end)}
                  {p.end_ns ? ` at ${durationText(p.end_ns)}` : ""}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {trace.processes.length > 200 && (
        <p class="muted">{`${grouped(trace.processes.length - 200)} more processes are not listed.`}</p>
      )}
    </section>
  );
}

function About() {
  const { trace } = usePage();
  const started = trace.started
    ? shown(trace.started)
    : trace.started_unix_ns
      ? new Date(trace.started_unix_ns / 1e6).toISOString()
      : null;
  // An exec goes on under the same pid; its last image has the end.
  const ended = trace.processes.filter((p) => p.pid === trace.processes[0]?.pid).at(-1);
  const facts: [string, string][] = [
    ["Command", shown(trace.command)],
    [
      "Recorded",
      `${durationText(cutTime(trace, 1000))}${started ? `, from ${started.slice(0, 19).replace("T", " ")} UTC` : ""}`,
    ],
    ...(ended?.end ? [["Ended", `${shown(ended.end)}${ended.end_ns ? ` at ${durationText(ended.end_ns)}` : ""}`] as [string, string]] : []),
    [
      "Stacks",
      `${grouped(trace.stacks ?? 0)}${trace.nodes ? ` in a tree of ${countText(trace.nodes, "node", "nodes")}` : ""}`,
    ],
    ["Processes and threads", `${grouped(trace.processes.length)} and ${grouped(trace.threads.length)}`],
    [
      "File",
      `${shown(trace.path ?? trace.name)}${trace.trace_bytes ? `, ${bytesText(trace.trace_bytes)}` : ""}${trace.events ? ` for ${countText(trace.events, "event", "events")}` : ""}`,
    ],
  ];
  return (
    <section class="top">
      <h2>The recording</h2>
      <dl class="facts">
        {facts.map(([k, v]) => (
          <div key={k}>
            <dt>{k}</dt>
            <dd>
              <bdi>{v}</bdi>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
