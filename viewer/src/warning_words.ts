// SPDX-License-Identifier: Apache-2.0
// Warnings about modules without names, of which a program can have dozens: together they are one line, which opens.

import type { Warning } from "./contract";
import { baseName } from "./safe_text";

export interface Folded {
  others: Warning[];
  unnamed: Warning[]; // None if there is but one: that stays as it is.
  modules: string[]; // Whose they are.
}

export function foldedWarnings(warnings: Warning[]): Folded {
  const unnamed = warnings.filter((w) => moduleOf(w) !== null);
  if (unnamed.length < 2) return { others: warnings, unnamed: [], modules: [] };
  return {
    others: warnings.filter((w) => moduleOf(w) === null),
    unnamed,
    modules: unnamed.map((w) => baseName(moduleOf(w))),
  };
}

// "libfoo.so is stripped: ...". What was rebuilt is another matter: that can be put right, and is said by itself.
function moduleOf(warning: Warning): string | null {
  return warning.kind === "names" ? (/^(\S+) (?:is stripped|has no|was deleted|cannot be read)/.exec(warning.text)?.[1] ?? null) : null;
}
