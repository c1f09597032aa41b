// SPDX-License-Identifier: Apache-2.0
// Which stacks somebody looks for, as text: the same language as src/analyze/stack_text.h, for the file
// that has no server to ask. Each word is looked for in every function by itself, so a stack is told by
// which words it has met: a number with a bit for each, in two halves.

import { makePattern } from "./pattern";
import { literally } from "./safe_text";

const mostWords = 64;
const deepest = 200; // Brackets in brackets.

const enum Step {
  and = -1,
  or = -2,
  not = -3, // And a word's number.
}

export class StackText {
  constructor(
    private words: RegExp[],
    private steps: number[], // What to do with the truths found so far, the last ones first.
  ) {}

  // `option` is what the user typed it for, such as "--where". An error is a sentence.
  static parse(text: string, option: string): StackText {
    const parser = new Parser(text, option);
    parser.all();
    return new StackText(parser.words, parser.steps);
  }

  // The words that a function's name has in it: the first 32, and the others.
  wordsIn(name: string): [low: number, high: number] {
    let low = 0,
      high = 0;
    for (let i = 0; i < this.words.length; ++i)
      if (this.words[i]!.test(name)) {
        if (i < 32) low |= 1 << i;
        else high |= 1 << (i - 32);
      }
    return [low, high];
  }

  // Whether that is what was looked for, of a stack whose functions have these words.
  holds(low: number, high: number): boolean {
    const truths: boolean[] = [];
    for (const step of this.steps) {
      if (step >= 0) truths.push((((step < 32 ? low : high) >>> (step & 31)) & 1) === 1);
      else if (step === Step.not) truths.push(!truths.pop());
      else {
        const b = truths.pop()!,
          a = truths.pop()!;
        truths.push(step === Step.and ? a && b : a || b);
      }
    }
    return truths.length === 1 && truths[0]!;
  }
}

// Read from left to right by one function for each kind of joint.
class Parser {
  words: RegExp[] = [];
  steps: number[] = [];
  private at = 0;
  private depth = 0;

  constructor(
    private text: string,
    private option: string,
  ) {}

  all(): void {
    this.either();
    this.skipBlanks();
    if (this.at < this.text.length) throw this.wrong("a ')' has no '('");
  }

  private either(): void {
    this.together();
    while (this.takeWord("or") || this.take("|")) {
      this.together();
      this.steps.push(Step.or);
    }
  }

  private together(): void {
    this.one();
    for (;;) {
      const joined = this.takeWord("and") || this.take("&");
      this.skipBlanks();
      const c = this.text[this.at];
      if (!joined && (c === undefined || c === ")" || c === "|" || this.isWord("or"))) return;
      this.one();
      this.steps.push(Step.and);
    }
  }

  private one(): void {
    if (++this.depth > deepest) throw this.wrong("there are too many brackets in brackets");
    if (this.takeWord("not") || this.take("!") || this.takeMinus()) {
      this.one();
      this.steps.push(Step.not);
    } else if (this.take("(")) {
      this.either();
      if (!this.take(")")) throw this.wrong("a '(' has no ')'");
    } else if (this.take("/")) {
      this.add(this.upTo("/"));
    } else if (this.take('"')) {
      this.addPlain(this.upTo('"'));
    } else {
      this.addPlain(this.plain());
    }
    --this.depth;
  }

  // A word ends with a blank, or with a bracket that was not opened in it: "f(int)" is one.
  private plain(): string {
    this.skipBlanks();
    const from = this.at;
    let open = 0;
    for (; this.at < this.text.length && !isBlank(this.text[this.at]!); ++this.at) {
      if (this.text[this.at] === "(") ++open;
      if (this.text[this.at] === ")" && open-- === 0) break;
    }
    return this.text.slice(from, this.at);
  }

  // What is before `end`; a backslash makes it part of that.
  private upTo(end: string): string {
    let found = "";
    for (; this.at < this.text.length && this.text[this.at] !== end; ++this.at) {
      if (this.text[this.at] === "\\" && this.text[this.at + 1] === end) ++this.at;
      found += this.text[this.at];
    }
    if (this.at === this.text.length) throw this.wrong(`a ${end} is missing at the end`);
    ++this.at;
    return found;
  }

  private addPlain(word: string): void {
    if (word === "") throw this.wrong("a word is missing");
    this.add((/[A-Z]/.test(word) ? "" : "(?i)") + literally(word));
  }

  private add(pattern: string): void {
    if (this.words.length === mostWords) throw this.wrong(`there are more than ${mostWords} words`);
    this.steps.push(this.words.length);
    this.words.push(makePattern(pattern, this.option));
  }

  private wrong(what: string): Error {
    return new Error(`${this.option} '${this.text}': ${what}`);
  }

  private skipBlanks(): void {
    while (this.at < this.text.length && isBlank(this.text[this.at]!)) ++this.at;
  }
  private take(c: string): boolean {
    this.skipBlanks();
    if (this.text[this.at] !== c) return false;
    ++this.at;
    return true;
  }
  private takeMinus(): boolean {
    const next = this.text[this.at + 1];
    return this.text[this.at] === "-" && next !== undefined && next !== ">" && !isBlank(next) && this.take("-");
  }
  private isWord(word: string): boolean {
    this.skipBlanks();
    const end = this.at + word.length,
      behind = this.text[end];
    if (behind !== undefined && !isBlank(behind) && behind !== "(") return false;
    return this.text.slice(this.at, end).toLowerCase() === word;
  }
  private takeWord(word: string): boolean {
    if (!this.isWord(word)) return false;
    this.at += word.length;
    return true;
  }
}

function isBlank(c: string): boolean {
  return c === " " || (c >= "\t" && c <= "\r");
}
