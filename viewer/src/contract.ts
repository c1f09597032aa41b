// SPDX-License-Identifier: Apache-2.0
// The server's answers as types: docs/viewer_api.md, word for word. What a newer or older server may leave
// out is optional here, and the page does without.

export type Unit = "bytes" | "count" | "ns";

export interface Totals {
  allocations?: number;
  reallocations?: number;
  frees?: number;
  allocated_bytes?: number;
  freed_bytes?: number;
  live_bytes?: number;
  live_blocks?: number;
  peak_bytes?: number;
  peak_time_ns?: number;
  temporary?: number;
  [other: string]: unknown;
}

export interface Process {
  pid: number;
  program?: string;
  command?: string;
  start_ns?: number;
  end_ns?: number;
  end?: string;
  peak_bytes?: number;
  live_bytes?: number;
  allocations?: number;
  threads?: number;
}

export interface Thread {
  pid: number;
  tid: number;
  name: string;
  allocations?: number;
  allocated_bytes?: number;
}

export interface Warning {
  kind: "cut" | "lossy" | "sampled" | "empty" | "names" | "other" | "left out"; // The last: of this file.
  text: string;
}

// Of those that come again and again there may be one for several.
export interface Phase {
  name: string;
  pid: number;
  thread?: string; // Of which alone it is.
  from_ns: number;
  to_ns: number;
  times: number;
}

export interface Mark {
  name: string;
  pid: number;
  time_ns: number;
  times: number;
}

// What is known before anything was counted, and while it is counted.
export interface TraceHead {
  state: "loading" | "ready" | "failed";
  stage?: string;
  share?: number;
  error?: string | null;
  name?: string;
  path?: string;
  version?: string;
  base?: { name: string } | null;
}

export interface Trace extends TraceHead {
  command: string;
  started?: string | null;
  started_unix_ns?: number | null;
  events?: number;
  trace_bytes?: number;
  duration_ns: number;
  cuts_ns: number[];
  totals: Totals;
  peak_time_ns?: number;
  peak_rss_bytes?: number;
  processes: Process[];
  threads: Thread[];
  modules: string[];
  types?: boolean; // Not told: there may be some.
  metrics: string[];
  metric_help?: Record<string, string>;
  nodes?: number;
  stacks?: number;
  warnings: Warning[];
  overview: { text: string; to?: Record<string, unknown> }[];
  phases?: Phase[];
  phases_left_out?: number;
  phase_names?: string[];
  marks?: Mark[];
  marks_left_out?: number;
  has?: { replay?: boolean; access?: boolean; free_stacks?: boolean; call_times?: boolean; cpu?: boolean; source?: boolean };
}

export interface Job {
  what: string;
  share?: number;
}

export interface Timeline {
  slices: number;
  by: string;
  exact_max: boolean; // Else live_max is only the higher of a slice's two ends.
  groups: { name: string }[];
  time: Float64Array;
  live_max: Float64Array;
  live: Float64Array;
  blocks: Float64Array;
  running_blocks: Float64Array; // Without what ended processes have left, as live_max is.
  allocations: Float64Array;
  allocated: Float64Array;
  frees: Float64Array; // None: nobody knows of these blocks.
  rss_time: Float64Array;
  rss: Float64Array;
  vm_time: Float64Array;
  vm_size: Float64Array; // From its time on, until the next.
  cpu: Float64Array; // Nanoseconds of CPU time in each slice; none if nobody knows.
  group_live: Float64Array;
}

// Names as columns of strings, which several answers have.
export interface Names {
  id?: number[];
  name: string[];
  full?: string[];
  file?: (string | null)[];
  line?: (number | null)[];
  module?: (string | null)[];
}

export const kFunction = 0;
export const kOthers = 1;
export const kRoot = 2;

export interface Flame {
  metric: string;
  unit: Unit;
  total: number;
  unfiltered?: number;
  nodes_of_all?: number;
  others?: { stacks?: number; nodes?: number; amount: number };
  total_before?: number;
  symbols: Names;
  parent: Uint32Array;
  symbol: Uint32Array;
  kind: Uint8Array;
  total_of: Float64Array;
  self_of: Float64Array;
  id: Uint32Array;
  before_of: Float64Array | null;
}

// From here on, sites are of the recording that is compared with alone: their blocks cannot be asked for.
export const onlyBefore = 2 ** 31;

export const siteNumbers = [
  "value",
  "allocations",
  "reallocations",
  "allocated",
  "live",
  "live_blocks",
  "peak",
  "temporary",
  "samples",
  "stacks",
] as const;

export interface Sites {
  metric: string;
  unit: Unit;
  rows: number;
  left_out: number;
  names: Names;
  total?: number;
  totals?: Totals;
  peak_time_ns?: number; // Of metric peak: when that was, of all stacks of what is selected.
  id: Uint32Array;
  columns: Map<string, Float64Array>; // Those of siteNumbers, and cumulative, before.
}

// How sites went through the whole time: `points` values for each.
export interface Sparks {
  points: number;
  id: Uint32Array;
  spark: Float64Array;
}

export interface Frame {
  name?: string;
  function?: string;
  full?: string | null;
  file?: string | null;
  line?: number | null;
  module?: string | null;
}

export interface Stacks {
  stacks: { value: number; samples?: number; allocations?: number; live?: number; peak?: number; frames: Frame[] }[];
  left_out?: number;
}

export type Cell = null | number | string | boolean | { part: number; whole: number } | Frame | Frame[];

export interface AnswerColumn {
  key: string;
  title: string;
  kind: "count" | "bytes" | "duration" | "time" | "share" | "ratio" | "text" | "frame" | "stack";
  shown?: boolean;
}

export interface AnswerTable {
  key: string;
  title: string;
  left_out?: number;
  list?: boolean;
  columns: AnswerColumn[];
  rows: { cells: Cell[]; depth?: number; main?: boolean }[];
}

// As it comes: a stack is an array of places in `frames`, where each frame is once.
export interface CompactAnswer extends Answer {
  frames?: Frame[];
}

export interface Answer {
  headline: string;
  facts?: Record<string, unknown>;
  notes?: string[];
  tables: AnswerTable[];
}

export interface Blocks {
  blocks: number;
  bars: number;
  coarse?: boolean; // Some bars stand for blocks that could be told apart.
  bytes_min: number;
  bytes_max: number;
  end_ns: number; // What died later is still live.
  born: Float64Array;
  died: Float64Array;
  size: Float64Array;
  stands_for: Uint32Array;
  tid: Uint32Array | null; // Of the thread that made them; 0 if it is not one. Null: not told.
  site: Frame | null; // Whose they are. Null: not told.
}

export interface SourceLines {
  file: string;
  first: number;
  lines: string[];
}

export interface Replay {
  process?: string;
  reference?: string | null; // The set-up that the others are compared with.
  advice?: unknown;
  touch?: string;
  pace?: string;
  runs?: Record<string, any>[];
  over_time?: Record<string, any>[];
  cycles_by_size?: Record<string, any>[];
  notes?: string[];
}
