// SPDX-License-Identifier: Apache-2.0
// The server speaks as the command line does. Here its options are called what they are called on the page.

const fields: Record<string, string> = {
  where: "stack text",
  hide: "hidden frames",
  "only-under": "under",
  under: "under",
  thread: "thread",
  phase: "phase",
  process: "process",
  module: "module",
  type: "type",
  "min-size": "the size from",
  "max-size": "the size to",
  from: "the begin of the range",
  to: "the end of the range",
  metric: "the metric",
};
const names = Object.keys(fields).join("|");

// An error as the page tells it.
export function pageError(text: string): string {
  if (/min-size \S+ is more than --max-size/.test(text)) return "The size from is more than the size to.";
  return text
    .replace(new RegExp(`^(${names})(?= ['"(]|: )`), (_, name: string) => fields[name]!)
    .replace(/^--view \S+/, "this view")
    .replace(new RegExp(`--(${names})\\b`, "g"), (_, name: string) => fields[name]!);
}

// A note of an answer; null if it is about the command line alone.
export function pageNote(text: string): string | null {
  if (text.startsWith("--")) return null;
  return commands(text);
}

// What only the command line can do, with the whole command.
export function commands(text: string): string {
  return text
    .replace(/--repeat (\d+) tells/, "`malloscope replay TRACE --repeat $1` tells")
    .replace(/--show-suppressed lists them/, "`malloscope leaks TRACE --show-suppressed` lists them");
}
