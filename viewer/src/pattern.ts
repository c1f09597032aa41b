// SPDX-License-Identifier: Apache-2.0
// Regular expressions as the command line takes them, RE2's, made into the browser's. What the two write
// differently and people use is translated; what only the browser's can do is refused, so that a link
// means the same here and there.

const classes: Record<string, string> = {
  alnum: "0-9A-Za-z",
  alpha: "A-Za-z",
  ascii: "\\x00-\\x7f",
  blank: "\\t ",
  cntrl: "\\x00-\\x1f\\x7f",
  digit: "0-9",
  graph: "!-~",
  lower: "a-z",
  print: " -~",
  punct: "!-\\/:-@\\[-`{-~",
  space: "\\t\\n\\v\\f\\r ",
  upper: "A-Z",
  word: "0-9A-Za-z_",
  xdigit: "0-9A-Fa-f",
};

// `option` is what the user typed it for, such as "--hide".
export function makePattern(text: string, option: string): RegExp {
  const wrong = (why: string) => new Error(`${option} '${text}' is not a regular expression: ${why}`);
  let flags = "";
  const leading = /^\(\?([ims]+)\)/.exec(text);
  if (leading) flags = [...new Set(leading[1])].join("");
  const source = translated(text.slice(leading?.[0].length ?? 0), wrong);
  try {
    // Strictly first: it takes characters whole. But RE2 lets any sign be escaped.
    return strict(source, flags) ?? new RegExp(source, flags);
  } catch (error) {
    throw wrong(String(error instanceof Error ? error.message : error).replace(/^.*\/[a-z]*: /s, ""));
  }
}

export function matchesAny(patterns: RegExp[], text: string): boolean {
  return patterns.some((p) => p.test(text));
}

function strict(source: string, flags: string): RegExp | null {
  try {
    return new RegExp(source, `${flags}u`);
  } catch {
    return null;
  }
}

function translated(text: string, wrong: (why: string) => Error): string {
  let out = "",
    inClass = false;
  for (let i = 0; i < text.length; ++i) {
    const rest = text.slice(i, i + 12);
    if (text[i] === "\\") {
      const next = text[i + 1] ?? "";
      if (next === "Q" && !inClass) {
        const end = text.indexOf("\\E", i + 2);
        out += text.slice(i + 2, end < 0 ? undefined : end).replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
        i = end < 0 ? text.length : end + 1;
        continue;
      }
      if (/[1-9k]/.test(next)) throw wrong(`\\${next} is not known`);
      out += next === "A" && !inClass ? "^" : next === "z" && !inClass ? "$" : `\\${next}`;
      ++i;
    } else if (inClass) {
      const posix = /^\[:(\^?)([a-z]+):\]/.exec(rest);
      if (posix && !posix[1] && classes[posix[2]!]) {
        out += classes[posix[2]!];
        i += posix[0].length - 1;
        continue;
      }
      if (text[i] === "]") inClass = false;
      out += text[i] === "[" ? "\\[" : text[i];
    } else if (text[i] === "[") {
      inClass = true;
      const head = /^\[\^?\]?/.exec(rest)![0];
      out += head.replace("]", "\\]");
      i += head.length - 1;
    } else if (rest.startsWith("(?")) {
      const named = /^\(\?P?<([A-Za-z_]\w*)>/.exec(text.slice(i, i + 80));
      if (!named && !rest.startsWith("(?:")) throw wrong(`${rest.slice(0, 4)} is not known here`);
      out += named ? "(" : "(?:";
      i += (named?.[0].length ?? 3) - 1;
    } else {
      out += text[i];
    }
  }
  return out;
}
