// SPDX-License-Identifier: Apache-2.0
// The page's own reading of stack text finds what the command line's finds: the cases of
// src/analyze/stack_text_test.cc.

import assert from "node:assert/strict";
import { test } from "node:test";
import { makePattern } from "../src/pattern";
import { StackText } from "../src/stack_text";

function finds(text: string, functions: string[]): boolean {
  const parsed = StackText.parse(text, "--where");
  let low = 0,
    high = 0;
  for (const name of functions) {
    const [l, h] = parsed.wordsIn(name);
    low |= l;
    high |= h;
  }
  return parsed.holds(low, high);
}

function complaint(text: string): string {
  try {
    StackText.parse(text, "--where");
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

const yes = (text: string, functions: string[]) => assert.equal(finds(text, functions), true, text);
const no = (text: string, functions: string[]) => assert.equal(finds(text, functions), false, text);

test("a word is found in any function", () => {
  yes("parse", ["main", "json::Parser::run"]);
  no("parse", ["main", "json::run"]);
  no("parse", []);
});

test("a capital letter is meant as one", () => {
  yes("Parse", ["json::Parser"]);
  no("Parse", ["json::parser"]);
});

test("words are joined", () => {
  yes("main json", ["main", "json::run"]);
  yes("main and json", ["main", "json::run"]);
  no("main xml", ["main", "json::run"]);
  yes("xml or json", ["main", "json::run"]);
  yes("xml | json", ["main", "json::run"]);
  no("-json", ["main", "json::run"]);
  no("main and not json", ["main", "json::run"]);
  yes("main -xml", ["main", "json::run"]);
  yes("NOT xml", ["main"]);
});

test("and goes before or", () => {
  yes("main or xml json", ["main"]);
  no("(main or xml) json", ["main"]);
  yes("not (xml or json)", ["main"]);
  yes("not not main", ["main"]);
});

test("names are taken as they are", () => {
  yes("f(int)", ["f(int)"]);
  yes("(f(int) or g)", ["f(int)"]);
  no("f(int)", ["fint"]);
  yes("operator->", ["Pointer::operator->()"]);
  yes("vector<int>", ["std::vector<int>::push_back"]);
  yes('"operator new"', ["operator new(unsigned long)"]);
  yes("order", ["order"]); // Begins as "or" does.
  yes("android notes", ["android", "notes"]);
});

test("between slashes is a regular expression", () => {
  yes("/^json::.*n$/", ["json::run"]);
  no("/^run/", ["json::run"]);
  yes("/a\\/b/", ["a/b"]);
});

test("the 33rd word and the 64th have bits of their own", () => {
  const words = Array.from({ length: 64 }, (_, i) => `<w${i}>`);
  yes(words.join(" "), words);
  no(words.join(" "), words.slice(0, 63));
  yes(words.join(" or "), [words[32]!]);
  yes(words.join(" or "), [words[63]!]);
});

test("what is wrong is said", () => {
  assert.equal(complaint("(a"), "--where '(a': a '(' has no ')'");
  assert.equal(complaint("a)"), "--where 'a)': a ')' has no '('");
  assert.equal(complaint("a and"), "--where 'a and': a word is missing");
  assert.equal(complaint(""), "--where '': a word is missing");
  assert.equal(complaint("/a"), "--where '/a': a / is missing at the end");
  assert.match(complaint("/a(/"), /is not a regular expression/);
  assert.notEqual(complaint("(".repeat(10_000)), "");
  assert.notEqual(complaint(`${"!".repeat(10_000)}a`), "");
  assert.match(complaint("w ".repeat(65)), /more than 64 words/);
});

test("patterns are those of the command line", () => {
  const matches = (pattern: string, text: string) => makePattern(pattern, "--hide").test(text);
  assert.ok(matches("(?i)PARSE", "parse"));
  assert.ok(matches("^std::vector\\<", "std::vector<int>"));
  assert.ok(matches('a\\-b\\"c', 'a-b"c'));
  assert.ok(matches("[[:upper:]][[:digit:]]+$", "xQ12"));
  assert.ok(matches("[]x]y", "]y"));
  assert.ok(matches("\\Qf(int)\\E$", "f(int)"));
  assert.ok(matches("\\Af\\z", "f"));
  assert.ok(!matches("\\Af\\z", "ff"));
  assert.ok(matches("(?P<name>a)b", "ab"));
  for (const bad of ["(", "(?=a)", "(?!a)", "(?<=a)b", "(a)\\1", "*a"])
    assert.throws(() => makePattern(bad, "--hide"), /^Error: --hide .* is not a regular expression: ./);
});
