// SPDX-License-Identifier: Apache-2.0
// Fields for a thread, phase, module or type hold regular expressions, with commas in between. What is chosen from
// the known values, such as "libstdc++.so.6" or "int[]", means just that; so does what is no expression.

import { literally, shown } from "./safe_text";

export function patternsOf(text: string, known: string[] = []): string[] {
  const values = new Map(known.map((value) => [shown(value), value]));
  const whole = text.trim();
  const parts = values.has(whole) ? [whole] : whole.split(",").map((part) => part.trim());
  return parts.filter(Boolean).map((part) => {
    const value = values.get(part);
    return value !== undefined || !isExpression(part) ? literally(value ?? part) : part;
  });
}

// And back, as it was typed.
export function typedText(patterns: string[]): string {
  return patterns
    .map((pattern) => {
      const plain = pattern.replace(/\\([\\^$.*+?()[\]{}|])/g, "$1");
      return literally(plain) === pattern ? plain : pattern;
    })
    .join(", ");
}

function isExpression(text: string): boolean {
  try {
    return !!new RegExp(text);
  } catch {
    return false;
  }
}
