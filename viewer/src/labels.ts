// SPDX-License-Identifier: Apache-2.0
// What of a function's name fits into a rectangle. The end of a C++ name says more than its beginning,
// so namespaces go first, then template arguments, and only then letters.

import { addressParts, shortAddress, shown } from "./safe_text";

function withoutBrackets(name: string): string {
  let out = "",
    depth = 0;
  for (let i = 0; i < name.length; ++i) {
    const c = name[i]!;
    const operator = /operator(<{1,2}|<=>|<=|->|>{1,2})?$/.test(name.slice(Math.max(0, i - 10), i));
    // "(anonymous namespace)" and "(anon)" are a part of the name.
    const anonymous = depth === 0 && c === "(" ? /^\(anon[a-z ]*\)/.exec(name.slice(i))?.[0] : undefined;
    if (anonymous) {
      out += anonymous;
      i += anonymous.length - 1;
      continue;
    }
    if ((c === "<" || c === "(") && !operator) ++depth;
    if (depth === 0) out += c;
    if ((c === ">" || c === ")") && depth > 0) --depth;
  }
  return depth === 0 ? out : name;
}

export function shorterNames(full: string): string[] {
  const forms = [shown(full)];
  const address = addressParts(forms[0]!);
  if (address) return [forms[0]!, shortAddress(forms[0]!, address.offset.length + 9), address.offset];
  const bare = withoutBrackets(forms[0]!).trim();
  if (bare && bare !== forms[0]) forms.push(bare);
  const parts = (bare || forms[0]!).split("::");
  if (parts.length > 2) forms.push(parts.slice(-2).join("::"));
  if (parts.length > 1) forms.push(parts[parts.length - 1]!);
  return forms;
}

export class Labels {
  private forms: (string[] | undefined)[];
  private widths: (Float32Array | undefined)[];

  constructor(
    private names: string[],
    private measure: (text: string) => number,
  ) {
    this.forms = new Array(names.length);
    this.widths = new Array(names.length);
  }

  fitting(symbol: number, room: number): string {
    let forms = this.forms[symbol],
      widths = this.widths[symbol];
    if (!forms || !widths) {
      forms = this.forms[symbol] = shorterNames(this.names[symbol] ?? "?");
      widths = this.widths[symbol] = Float32Array.from(forms, (f) => this.measure(f));
    }
    for (let i = 0; i < forms.length; ++i) if (widths[i]! <= room) return forms[i]!;
    const last = forms.length - 1;
    const letters = Math.floor((forms[last]!.length * room) / widths[last]!) - 2;
    return letters >= 2 ? `${forms[last]!.slice(0, letters)}\u2026` : "";
  }
}
