// SPDX-License-Identifier: Apache-2.0
// Names come from the program that was recorded, and may be anything. The page only ever shows them as
// text; here they also lose what would make text lie: control characters and marks that turn the
// direction of writing are shown instead of obeyed.

const kinds = [
  "\\u0000-\\u001f\\u007f-\\u009f", // Controls.
  "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069", // Direction.
  "\\u00ad\\u180e\\u200b-\\u200d\\u2028\\u2029\\u2060-\\u2065\\u206a-\\u206f\\ufe00-\\ufe0f\\ufeff\\ufff9-\\ufffb", // Not seen.
  "\\u115f\\u1160\\u3164\\uffa0\\u{e0000}-\\u{e0fff}",
  "\\ud800-\\udfff", // Half a character.
];
const hostile = new RegExp(`[${kinds.join("")}]`, "gu");
const anyHostile = new RegExp(hostile.source, "u");

export function shown(text: string | null | undefined): string {
  if (!text) return "";
  if (!anyHostile.test(text)) return text;
  return text.replace(hostile, (c) => {
    const code = c.codePointAt(0)!;
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
  });
}

export function baseName(path: string | null | undefined): string {
  return path ? path.slice(path.lastIndexOf("/") + 1) : "";
}

// A function that has no name is "libfoo.so+0x1e4c20": what tells it from others is at the end. Null: it has one.
export function addressParts(name: string): { module: string; offset: string } | null {
  const match = /^(.+)(\+0x[0-9a-f]+)$/.exec(name);
  return match && { module: match[1]!, offset: match[2]! };
}

// Such a name in fewer letters, cut in the middle: "libclang\u2026+0x1e4c20".
export function shortAddress(name: string, letters: number): string {
  const parts = addressParts(name);
  if (!parts || name.length <= letters) return name;
  const kept = letters - parts.offset.length - 1;
  if (kept >= 3) return `${parts.module.slice(0, kept)}\u2026${parts.offset}`;
  return parts.offset.length <= letters ? parts.offset : `\u2026${parts.offset.slice(1 - Math.max(4, letters))}`;
}

// "demo.cc:75", or nothing.
export function place(file: string | null | undefined, line: number | null | undefined): string {
  if (!file) return "";
  return shown(line ? `${baseName(file)}:${line}` : baseName(file));
}

// A regular expression that matches just this text.
export function literally(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

// The pattern that the server knows a function by: filters look at whole names.
export function patternOf(name: string, full: string | null | undefined): string {
  return `^${literally(full || name)}$`;
}

// The stack text that finds just this function.
export function stackTextOf(name: string, full: string | null | undefined): string {
  return `/${patternOf(name, full).replaceAll("/", "\\/")}/`;
}

// A stack text that asks for both.
export function bothTexts(first: string, second: string): string {
  return !first.trim() || first.trim() === second ? second : `(${first}) and ${second}`;
}

// And back, for people.
export function patternText(pattern: string): string {
  const whole = /^\^(.*)\$$/s.exec(pattern);
  return whole ? whole[1]!.replace(/\\([\\^$.*+?()[\]{}|])/g, "$1") : pattern;
}
