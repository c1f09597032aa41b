// SPDX-License-Identifier: Apache-2.0
// The page from top to bottom: what trace this is, what is wrong with it, the filters, the timeline, and
// the chosen view below.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Theme } from "./colors";
import type { Trace, TraceHead, Warning } from "./contract";
import { editorTemplate, keepTemplate, usualTemplate, whyRefused } from "./editor";
import { durationText } from "./format";
import { PageContext, cutTime, isMetric } from "./page";
import { baseName, shown } from "./safe_text";
import type { Source } from "./source";
import { type Store, initial, isCompared, isFiltered } from "./state";
import { useTheme } from "./theme";
import { foldedWarnings } from "./warning_words";
import { isWholeTime } from "./time_words";
import { sentence } from "./use_answer";
import { AnswerView } from "./views/answer_table";
import { BlocksView } from "./views/blocks";
import { DiffView } from "./views/diff";
import { FlameView } from "./views/flame";
import { LeaksView } from "./views/leaks";
import { LifetimesView } from "./views/lifetimes";
import { MoreView } from "./views/more";
import { OverviewView } from "./views/overview";
import { PeakView } from "./views/peak";
import { PhasesView } from "./views/phases";
import { ReplayView } from "./views/replay";
import { SitesView } from "./views/sites";
import { SizesView } from "./views/sizes";
import { Strip } from "./views/strip";
import { ThreadsView } from "./views/threads";
import { TimelineView } from "./views/timeline";
import { FilterBar, FullNames } from "./widgets/filter_bar";
import { Keys } from "./widgets/keys";
import { Progress } from "./widgets/progress";
import { Tabs } from "./widgets/tabs";

const views: { key: string; title: string; view: () => preact.ComponentChild; when?: (trace: Trace) => unknown }[] = [
  { key: "overview", title: "Overview", view: OverviewView },
  { key: "timeline", title: "Timeline", view: TimelineView },
  { key: "flame", title: "Flame graph", view: FlameView },
  { key: "sites", title: "Sites", view: SitesView },
  { key: "leaks", title: "Leaks", view: LeaksView },
  { key: "peak", title: "Peak", view: PeakView },
  { key: "sizes", title: "Sizes", view: SizesView },
  { key: "lifetimes", title: "Lifetimes", view: LifetimesView },
  { key: "threads", title: "Threads", view: ThreadsView },
  { key: "blocks", title: "Blocks", view: BlocksView },
  { key: "diff", title: "Diff", view: DiffView },
  { key: "phases", title: "Phases", view: PhasesView, when: (trace) => trace.phases?.length },
  { key: "replay", title: "Replay", view: ReplayView, when: (trace) => trace.has?.replay },
  { key: "access", title: "Access", view: () => <AnswerView name="access" />, when: (trace) => trace.has?.access },
  { key: "more", title: "More", view: MoreView },
];

export function App({ source, store }: { source: Source; store: Store }) {
  const [head, setHead] = useState<TraceHead | Trace | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [theme, setTheme] = useTheme();
  useEffect(() => {
    let over = false,
      timer: ReturnType<typeof setTimeout>;
    const ask = () =>
      source.trace().then(
        (now) => {
          if (over) return;
          setHead(now);
          setError(null);
          if (now.state === "loading") timer = setTimeout(ask, 200);
        },
        (e) => !over && setError(sentence(e)),
      );
    ask();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, []);
  useEffect(() => {
    document.title = head?.name ? `${shown(head.name)} - Malloscope` : "Malloscope";
  }, [head?.name]);

  if (error || head?.state === "failed") {
    return (
      <Framed head={head} theme={theme} setTheme={setTheme}>
        <p class="sentence error" role="alert">
          {shown(error ?? head?.error ?? "The trace cannot be read.")}
        </p>
      </Framed>
    );
  }
  if (!head || head.state === "loading") {
    return (
      <Framed head={head} theme={theme} setTheme={setTheme}>
        <div class="loading" role="status">
          <Progress what={head?.stage ? capital(head.stage) : "Opening the trace"} share={head?.share ?? null} />
        </div>
      </Framed>
    );
  }
  return <Ready trace={head as Trace} source={source} store={store} theme={theme} setTheme={setTheme} />;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function Framed({
  head,
  theme,
  setTheme,
  children,
}: {
  head: TraceHead | null;
  theme: Theme;
  setTheme: (theme: Theme) => void;
  children: preact.ComponentChildren;
}) {
  return (
    <div class="page">
      <header class="top-bar">
        <h1>Malloscope</h1>
        {head?.name && <bdi class="trace-name">{shown(head.name)}</bdi>}
        <span class="spacer" />
        <ThemeButton theme={theme} setTheme={setTheme} />
      </header>
      <main>{children}</main>
    </div>
  );
}

function Ready({
  trace,
  source,
  store,
  theme,
  setTheme,
}: {
  trace: Trace;
  source: Source;
  store: Store;
  theme: Theme;
  setTheme: (theme: Theme) => void;
}) {
  const [asked, setState] = useState(store.state);
  useEffect(() => {
    setState(store.state);
    return store.subscribe(setState);
  }, []);
  const state = useMemo(
    () => (isMetric(trace, asked.metric) ? asked : { ...asked, metric: initial.metric }),
    [trace, asked],
  );
  const page = useMemo(
    () => ({ source, trace, state, theme, change: store.change.bind(store) }),
    [trace, state, theme],
  );
  const unknown = [
    ...(views.some((v) => v.key === state.view) ? [] : [`view=${state.view}`]),
    ...(isMetric(trace, asked.metric) ? [] : [`metric=${asked.metric}`]),
    ...(asked === store.state ? store.ignored : []),
  ];
  const tabs = useMemo(() => views.filter((v) => !v.when || v.when(trace)), [trace]);
  const view = tabs.find((v) => v.key === state.view) ?? tabs[0]!;
  const View = view.view;
  // The other recording is nothing to views that compare nothing.
  const part = isFiltered(state) || (isCompared(state) && !state.base) || !isWholeTime(state);
  const offered = useMemo(
    () => tabs.map(({ key, title }) => ({ key, title, refusal: part ? source.refusal("part", key) : null })),
    [tabs, part],
  );
  const command = trace.command || trace.processes[0]?.command || "";
  return (
    <PageContext.Provider value={page}>
      <div class="page">
        <a
          class="skip"
          href="#view"
          onClick={(event) => {
            event.preventDefault();
            document.getElementById("view")?.focus();
          }}
        >
          Skip to the view
        </a>
        <header class="top-bar">
          <h1>Malloscope</h1>
          <bdi class="trace-name" title={shown(trace.path ?? "")}>
            {shown(trace.name ?? baseName(trace.path))}
          </bdi>
          <bdi class="command" title={shown(command)}>
            {shown(command)}
          </bdi>
          <span class="ran">{durationText(cutTime(trace, 1000))}</span>
          <span class="spacer" />
          <FullNames />
          <Settings />
          <Keys />
          <ThemeButton theme={theme} setTheme={setTheme} />
        </header>
        <Warnings trace={trace} />
        {unknown.length > 0 && <Unknown words={unknown} view={view.title} />}
        <FilterBar />
        <Strip />
        <Tabs
          tabs={offered}
          chosen={view.key}
          panel="view"
          onChoose={(key) => store.change({ view: key })}
        />
        <main>
          <div id="view" role="tabpanel" aria-labelledby={`tab-${view.key}`} tabIndex={-1}>
            <View key={view.key} />
          </div>
        </main>
      </div>
    </PageContext.Provider>
  );
}

const kinds: Record<string, string> = {
  cut: "Cut",
  lossy: "Lossy",
  sampled: "Sampled",
  empty: "Empty",
  names: "Names",
  other: "Note",
  "left out": "Left out",
};

// An address that was typed, or is of another version, should not quietly show something else.
function Unknown({ words, view }: { words: string[]; view: string }) {
  return (
    <p class="unknown" role="status">
      {`The address has ${words.length > 1 ? "words" : "a word"} that this page does not understand: `}
      <b>{shown(words.join(", "))}</b>
      {`. It shows ${view} without ${words.length > 1 ? "them" : "it"}.`}
    </p>
  );
}

function Warnings({ trace }: { trace: Trace }) {
  const [hidden, setHidden] = useState(false);
  if (trace.warnings.length === 0 || hidden) return null;
  const line = (w: Warning, i: number) => (
    <li key={i}>
      <b>{kinds[w.kind] ?? "Note"}</b> {shown(w.text)}
    </li>
  );
  const { others, unnamed, modules } = foldedWarnings(trace.warnings);
  return (
    <div class="warnings" role="status">
      <ul>
        {others.map(line)}
        {unnamed.length > 0 && (
          <li>
            <details>
              <summary>
                <b>Names</b> {`${modules.length} modules lack names or lines: ${shown(modules.join(", "))}`}
              </summary>
              <ul>{unnamed.map(line)}</ul>
            </details>
          </li>
        )}
      </ul>
      <button type="button" class="close" aria-label="Hide these warnings" onClick={() => setHidden(true)}>
        {"\u00d7"}
      </button>
    </div>
  );
}

function ThemeButton({ theme, setTheme }: { theme: Theme; setTheme: (theme: Theme) => void }) {
  const other = theme === "dark" ? "light" : "dark";
  return (
    <button type="button" class="small" onClick={() => setTheme(other)} aria-label={`Make the page ${other}`}>
      {other === "dark" ? "Dark" : "Light"}
    </button>
  );
}

function Settings() {
  const [open, setOpen] = useState(false);
  const [template, setTemplate] = useState(editorTemplate);
  const problem = whyRefused(template);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const close = (event: Event) => {
      const inside = box.current?.contains(event.target as Node);
      if (event instanceof KeyboardEvent ? event.key === "Escape" : !inside) setOpen(false);
    };
    addEventListener("pointerdown", close);
    addEventListener("keydown", close);
    return () => {
      removeEventListener("pointerdown", close);
      removeEventListener("keydown", close);
    };
  }, [open]);
  return (
    <div class="settings" ref={box}>
      <button type="button" class="small" aria-expanded={open} onClick={() => setOpen(!open)}>
        Editor
      </button>
      {open && (
        <div class="settings-box" role="dialog" aria-label="Editor">
          <label class="field">
            <span>Links to sources open with</span>
            <input
              type="text"
              value={template}
              spellcheck={false}
              aria-invalid={problem ? true : undefined}
              onInput={(event) => {
                const now = event.currentTarget.value;
                setTemplate(now);
                if (!whyRefused(now)) keepTemplate(now);
              }}
            />
          </label>
          <p class={problem ? "error-text" : "muted"}>
            {problem ?? `{file} and {line} are filled in. As installed: ${usualTemplate}`}
          </p>
          <button
            type="button"
            class="small"
            onClick={() => {
              setTemplate(usualTemplate);
              keepTemplate(usualTemplate);
            }}
          >
            As installed
          </button>
          <button type="button" class="small" onClick={() => setOpen(false)}>
            Close
          </button>
        </div>
      )}
    </div>
  );
}
