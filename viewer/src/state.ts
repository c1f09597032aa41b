// SPDX-License-Identifier: Apache-2.0
// The whole state of the page is in its address, behind the #, in the words of the question
// (docs/viewer_api.md): a link shows the same thing to a colleague, and the browser's back and forward
// work. Times are tenths of a percent of the recording, 0 to 1000, as numbers.

export interface State {
  view: string;
  // The question.
  metric: string;
  metric_was: string; // Before an instant was chosen, which is about what is live.
  from: number | null;
  to: number | null;
  where: string;
  hide: string[];
  under: string[];
  thread: string[];
  phase: string[];
  process: string;
  module: string[];
  type: string[];
  min_size: number | null;
  max_size: number | null;
  full_names: boolean;
  before_from: number | null;
  before_to: number | null;
  base: boolean;
  zoom: string; // Of the charts, as time_choice.ts has it.
  // What only one view minds.
  by: string; // Of the timeline.
  rss: string; // Whether its curve is drawn: "1", "0", or what suits.
  vm: boolean; // That of VmSize.
  group: string; // Of the sites.
  site: number | null;
  sort: string; // A column's key, with "-" in front: heaviest first.
  inverted: boolean;
  shape: string; // "icicle" or "flame".
  colour: string; // "module" or "severity".
  find: string;
  root: number | null; // A node that is zoomed into, from main inwards;
  way: string; // and from allocations outwards, as the symbols on the way to it.
  sandwich: number | null;
  answer: string;
  leaks_by: string; // "stack", "site", or what suits.
  row: number | null; // Of the leaks.
  unchanged: boolean; // Of the diff.
}

export const initial: State = {
  view: "overview",
  metric: "peak",
  metric_was: "",
  from: null,
  to: null,
  where: "",
  hide: [],
  under: [],
  thread: [],
  phase: [],
  process: "",
  module: [],
  type: [],
  min_size: null,
  max_size: null,
  full_names: false,
  before_from: null,
  before_to: null,
  base: false,
  zoom: "",
  by: "none",
  rss: "",
  vm: false,
  group: "site",
  site: null,
  sort: "",
  inverted: false,
  shape: "icicle",
  colour: "module",
  find: "",
  root: null,
  way: "",
  sandwich: null,
  answer: "churn",
  leaks_by: "",
  row: null,
  unchanged: false,
};

const times = new Set(["from", "to", "before_from", "before_to"]);
const wholeNumber = /^\d{1,15}$/;
const counts = new Set(["min_size", "max_size", "site", "root", "sandwich", "row"]);
// What a view alone minds, and what is lost when the question changes: places in an answer.
const places: (keyof State)[] = ["root", "way", "sandwich", "row"];
const questionWords: (keyof State)[] = [
  "metric",
  "from",
  "to",
  "where",
  "hide",
  "under",
  "thread",
  "phase",
  "process",
  "module",
  "type",
  "min_size",
  "max_size",
  "full_names",
  "before_from",
  "before_to",
  "base",
];
const filterWords: (keyof State)[] = [
  "where",
  "hide",
  "under",
  "thread",
  "phase",
  "process",
  "module",
  "type",
  "min_size",
  "max_size",
];

export function percentOf(tenths: number): string {
  return `${tenths / 10}%`;
}

export function tenthsOf(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)%$/.exec(text.trim());
  const tenths = match ? Math.round(Number(match[1]) * 10) : NaN;
  return tenths <= 1000 ? tenths : null;
}

function pairs(state: Partial<State>, words: readonly (keyof State)[]): [string, string][] {
  const found: [string, string][] = [];
  for (const word of words) {
    const value = state[word];
    if (value === null || value === undefined || value === "" || value === false) continue;
    if (Array.isArray(value)) value.forEach((v) => v && found.push([word, v]));
    else if (times.has(word)) found.push([word, percentOf(value as number)]);
    else found.push([word, value === true ? "1" : String(value)]);
  }
  return found;
}

// What goes behind the #: only what is not as it was in the beginning.
export function toHash(state: State): string {
  const words = (Object.keys(initial) as (keyof State)[]).filter((w) => state[w] !== initial[w]);
  const text = pairs(state, words)
    .map(([k, v]) => `${k}=${encodeURIComponent(v)}`)
    .join("&");
  return text ? `#${text}` : "#";
}

export function fromHash(hash: string): State {
  return fromPairs([...new URLSearchParams(hash.replace(/^#/, ""))]);
}

// The words of an address that mean nothing, as they were written. Which views there are the page knows.
export function notUnderstood(hash: string): string[] {
  const pairs = [...new URLSearchParams(hash.replace(/^#/, ""))];
  return pairs.filter(([key, value]) => !isUnderstood(key, value)).map(([key, value]) => `${key}=${value}`);
}

function isUnderstood(key: string, value: string): boolean {
  if (!Object.hasOwn(initial, key)) return false;
  if (value === "") return true;
  if (times.has(key)) return tenthsOf(value) !== null;
  if (counts.has(key)) return wholeNumber.test(value);
  return typeof initial[key as keyof State] !== "boolean" || ["0", "1", "true", "false"].includes(value);
}

// From the state that a line of the overview points to; a list may be a list.
export function fromWords(words: Record<string, unknown>): State {
  const all: [string, string][] = [];
  for (const [key, value] of Object.entries(words))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== null && one !== undefined && one !== false) all.push([key, one === true ? "1" : String(one)]);
  return fromPairs(all);
}

function fromPairs(all: [string, string][]): State {
  const state: Record<string, unknown> = { ...initial };
  for (const [key, value] of all) {
    if (!Object.hasOwn(initial, key)) continue;
    const was = initial[key as keyof State];
    if (times.has(key)) state[key] = tenthsOf(value);
    else if (counts.has(key)) state[key] = wholeNumber.test(value) ? Number(value) : null;
    else if (typeof was === "boolean") state[key] = value === "1" || value === "true";
    else if (Array.isArray(was)) state[key] = [...(state[key] as string[]), value].filter(Boolean);
    else state[key] = value;
  }
  return state as unknown as State;
}

// The question as the server is asked; `without` leaves words out.
export function question(state: State, without: (keyof State)[] = []): URLSearchParams {
  const words = questionWords.filter((w) => !without.includes(w));
  return new URLSearchParams(pairs(state, words));
}

// The question of a curve: everything but the time. Which frames are shown matters to layers by site alone,
// so that hiding some does not draw the same curve again.
export function curveQuestion(state: State, by: string): URLSearchParams {
  const shown: (keyof State)[] = by === "site" ? [] : ["hide"];
  return question(state, ["metric", "from", "to", "before_from", "before_to", "base", "full_names", ...shown]);
}

export function isFiltered(state: State): boolean {
  return pairs(state, filterWords).length > 0;
}

// Whether the filters leave out stacks, and not only frames of them.
export function leavesOut(state: State): boolean {
  return isFiltered({ ...state, hide: [] });
}

export function isCompared(state: State): boolean {
  return state.base || state.before_from !== null || state.before_to !== null;
}

export const noFilters: Partial<State> = Object.fromEntries(
  [...filterWords, "from", "to", "before_from", "before_to", "base"].map((w) => [w, initial[w as keyof State]]),
);

// A new question makes places in the old answer meaningless. Functions of a flame graph stay where they are as
// long as the same stacks are asked about, whatever is counted of them and when.
export function changed(state: State, change: Partial<State>): State {
  const next = { ...state, ...change };
  const differ = (without: (keyof State)[]) =>
    question(state, without).toString() !== question(next, without).toString() || state.inverted !== next.inverted;
  const kept: (keyof State)[] = differ(["metric", "from", "to"]) ? [] : ["root", "way", "sandwich"];
  if (differ([]))
    for (const word of places) if (!(word in change) && !kept.includes(word)) (next[word] as unknown) = initial[word];
  if ("sandwich" in change && !("root" in change)) ((next.root = null), (next.way = ""));
  if ("metric" in change && !("metric_was" in change)) next.metric_was = "";
  if ("view" in change && change.view !== state.view && !("sort" in change)) next.sort = "";
  return next;
}

const leastPause = 60; // Milliseconds.

// The one place that holds the state. `push` is a step that "back" undoes; without it the address changes
// in place, as while something is being dragged: then not more often than browsers put up with.
export class Store {
  state: State = fromHash(location.hash);
  ignored = notUnderstood(location.hash); // Of the address that was opened, until something is changed.
  private listeners = new Set<(state: State) => void>();
  private written = -Infinity;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    const read = () => {
      clearTimeout(this.timer);
      this.timer = undefined;
      const ignored = notUnderstood(location.hash);
      const said = ignored.join() !== this.ignored.join();
      this.ignored = ignored;
      this.set(fromHash(location.hash), said);
    };
    addEventListener("popstate", read);
    addEventListener("hashchange", read);
  }

  change(change: Partial<State>, push = true): void {
    const next = changed(this.state, change);
    this.ignored = [];
    if (toHash(next) !== toHash(this.state)) {
      if (push) {
        if (this.timer !== undefined) this.write(toHash(this.state), false);
        this.write(toHash(next), true);
      } else if (performance.now() - this.written > leastPause) {
        this.write(toHash(next), false);
      } else {
        this.timer ??= setTimeout(() => this.write(toHash(this.state), false), leastPause);
      }
    }
    this.set(next);
  }

  private write(hash: string, push: boolean): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.written = performance.now();
    try {
      if (push) history.pushState(null, "", hash);
      else history.replaceState(null, "", hash);
    } catch {
      // Where a file may not write history, it may go to another place in itself.
      if (push) location.hash = hash;
      else location.replace(hash);
    }
  }

  subscribe(listener: (state: State) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private set(state: State, anyway = false): void {
    if (toHash(state) === toHash(this.state) && !anyway) return;
    this.state = state;
    this.listeners.forEach((listener) => listener(state));
  }
}
