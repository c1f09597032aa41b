// SPDX-License-Identifier: Apache-2.0
// Names are hostile text: what would turn or hide it is shown, and links go only where the user said.

import assert from "node:assert/strict";
import { test } from "node:test";
import { contrast, inkOn, palette } from "../src/colors";
import { editorLink, usualTemplate, whyRefused } from "../src/editor";
import { toldApart } from "../src/file_timeline";
import { Labels, shorterNames } from "../src/labels";
import { threadName } from "../src/page";
import { addressParts, bothTexts, literally, patternOf, patternText, place, shortAddress, shown } from "../src/safe_text";

test("control characters and marks of direction are shown", () => {
  assert.equal(shown("plain::name<int>(char)"), "plain::name<int>(char)");
  assert.equal(shown("a\u202eb"), "a<U+202E>b");
  assert.equal(shown("a\u0007b\n"), "a\u2407b\u240a");
  assert.equal(shown("\u2066x\u200b\ufeff"), "<U+2066>x<U+200B><U+FEFF>");
  assert.equal(shown("\ud800x"), "<U+D800>x");
  assert.equal(shown("\u00fc\u4e2d\ud83d\ude00"), "\u00fc\u4e2d\ud83d\ude00");
  assert.equal(shown("x\u{e0041}"), "x<U+E0041>");
  assert.equal(shown(null), "");
  assert.equal(place("/a/b\u202e.cc", 7), "b<U+202E>.cc:7");
});

test("a name as a pattern matches itself", () => {
  for (const name of ["operator()", "a|b", "x[1]{2}", "/usr/$x^", "std::vector<int*>"])
    (assert.match(name, new RegExp(`^${literally(name)}$`)), assert.equal(patternText(patternOf(name, "")), name));
});

test("a thread is called the same everywhere", () => {
  const trace = { threads: [{ pid: 1, tid: 12125, name: "leak" }] };
  assert.deepEqual([12125, 7, 0].map((tid) => threadName(trace, tid)), ["leak (12125)", "7", ""]);
});

test("addresses keep their ends", () => {
  const name = "libclang-cpp.so.19.1+0x1e4c20";
  assert.deepEqual(addressParts(name), { module: "libclang-cpp.so.19.1", offset: "+0x1e4c20" });
  assert.equal(addressParts("operator+"), null);
  assert.equal(shortAddress(name, 40), name);
  assert.equal(shortAddress(name, 18), "libclang\u2026+0x1e4c20");
  assert.equal(shortAddress(name, 10), "+0x1e4c20");
  assert.equal(shortAddress(name, 6), "\u2026e4c20");
  const labels = new Labels([name], (text) => text.length * 6);
  assert.equal(labels.fitting(0, 120), "libclang\u2026+0x1e4c20");
  assert.equal(labels.fitting(0, 60), "+0x1e4c20");
});

test("links open only what an editor's scheme says", () => {
  assert.equal(editorLink("/a b/c?.cc", 5, usualTemplate), "vscode://file//a%20b/c%3F.cc:5");
  for (const template of [
    "javascript:alert(1)//{file}",
    "JavaScript:{file}",
    "https://evil/{file}",
    "http:{file}",
    "data:text/html,{file}",
    "{file}",
    "vscode://x",
  ])
    assert.ok(whyRefused(template), template);
  assert.equal(editorLink("/a", 1, "https://x/{file}"), null);
  assert.equal(editorLink("relative.cc", 1, usualTemplate), null);
  assert.equal(
    editorLink("/x/{line}$&.cc", 3, "idea://open?file={file}&line={line}"),
    "idea://open?file=/x/%7Bline%7D%24%26.cc&line=3",
  );
});

test("a label keeps the end of a name", () => {
  assert.deepEqual(shorterNames("a::b::Table<std::string, int>::insert(char)"), [
    "a::b::Table<std::string, int>::insert(char)",
    "a::b::Table::insert",
    "Table::insert",
    "insert",
  ]);
  assert.equal(shorterNames("operator<<").at(-1), "operator<<");
  assert.equal(
    shorterNames("(anonymous namespace)::sell((anonymous namespace)::Shop&, int)")[1],
    "(anonymous namespace)::sell",
  );
  const labels = new Labels(["a::b::Table::insert"], (text) => text.length * 6);
  assert.equal(labels.fitting(0, 1000), "a::b::Table::insert");
  assert.equal(labels.fitting(0, 80), "Table::insert");
  assert.equal(labels.fitting(0, 36), "insert");
  assert.equal(labels.fitting(0, 30), "ins\u2026");
  assert.equal(labels.fitting(0, 5), "");
});

test("what is written can be read on every colour", () => {
  for (const theme of ["light", "dark"] as const) {
    const p = palette(theme);
    for (const fill of [...p.modules, p.plumbing, ...p.heat, ...p.diverging, p.match])
      assert.ok(contrast(fill, inkOn(fill)) >= 4.5, `${theme} ${fill}`);
    for (const ink of [p.ink, p.muted, p.accent, p.rss, p.peak])
      assert.ok(contrast(ink, p.panel) >= 4.5, `${theme} ${ink}`);
    for (const line of p.series) assert.ok(contrast(line, p.panel) >= 2, `${theme} ${line}`);
  }
});

test("a stack text that asks for both", () => {
  assert.equal(bothTexts("", "/^f$/"), "/^f$/");
  assert.equal(bothTexts(" /^f$/ ", "/^f$/"), "/^f$/");
  assert.equal(bothTexts("a or -b", "/^f$/"), "(a or -b) and /^f$/");
});

test("sites of one name have their lines with them", () => {
  const at = (name: string, file?: string, line?: number) => ({ name, file: file ?? null, line: line ?? null });
  const frames = [at("f", "/a/x.cc", 3), at("g", "/a/x.cc", 4), at("f", "/a/y.cc", 5), at("h"), at("h")];
  assert.deepEqual(toldApart(frames), ["f x.cc:3", "g", "f y.cc:5", "h", "h"]);
});
