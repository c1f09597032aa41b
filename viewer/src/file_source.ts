// SPDX-License-Identifier: Apache-2.0
// Answers out of the self-contained file of `malloscope html`: what the server would say, as far as the
// file knows it, and a sentence where it does not. Nothing here asks the network.

import type * as c from "./contract";
import { kFunction, onlyBefore } from "./contract";
import { FileComparison } from "./file_comparison";
import { type FileData, damaged } from "./file_data";
import { flameOf, shapeAsked } from "./file_flame";
import { type FileQuestion, isProcess, notHere, questionOf, rangeOf, refusalOf } from "./file_question";
import { FileRows } from "./file_rows";
import { type Asked, type Groups, frameOf, groupsOf, namesOf, sitesOf, sparksOf, stacksOf } from "./file_sites";
import { timelineOf as timelineOfRows } from "./file_timeline";
import { meantRows, nodeValues, treeOf } from "./file_tree";
import { durationText } from "./format";
import { cutTime } from "./page";
import { type FlameHow, type Source, answerOf, blocksOf, timelineOf, traceOf } from "./source";
import { tenthsOf } from "./state";

// Views that a file has of the whole recording alone.
const ofTheWhole = ["leaks", "sizes", "lifetimes", "threads", "phases", "access", "more"];

export class FileSource implements Source {
  private made: Promise<c.Trace> | null = null;
  private rowsMade: Promise<FileRows> | null = null;
  private trees = new Latest<ReturnType<typeof treeOf>>(3);
  private meant = new Latest<Uint8Array>(6);
  private groups = new Latest<Groups>(8);
  private answers = new Latest<unknown>(32);
  private known: { trace: c.Trace; slices: number } | null = null; // For what cannot wait.

  private comparison: FileComparison;

  constructor(private data: FileData) {
    this.comparison = new FileComparison(data);
  }

  trace(): Promise<c.Trace> {
    return (this.made ??= this.readTrace());
  }
  async progress(): Promise<c.Job[]> {
    return [];
  }

  async timeline(asked: URLSearchParams, by: string, signal?: AbortSignal): Promise<c.Timeline> {
    if ([...asked.values()].every((value) => value === "")) {
      const name = by === "none" ? "timeline" : `timeline-${by}`;
      if (!this.data.has(name)) throw notHere(by === "none" ? "The timeline" : `The timeline by ${by}`);
      return timelineOf(await this.data.columns(name));
    }
    return this.once(signal, `timeline ${by} ${asked}`, async () => {
      // No metric is asked for, so none can be refused.
      const words = new URLSearchParams(asked);
      words.set("metric", "live");
      return timelineOfRows(await this.ask(words), by, await this.trace());
    });
  }

  flame(asked: URLSearchParams, how: FlameHow, signal?: AbortSignal): Promise<c.Flame> {
    return this.once(signal, `flame ${asked} ${JSON.stringify(how)}`, async () =>
      asked.get("base") ? this.comparison.flame(asked, how) : this.drawn(await this.ask(asked), how),
    );
  }
  sites(asked: URLSearchParams, by: string, most: number | null, signal?: AbortSignal): Promise<c.Sites> {
    return this.once(signal, `sites ${by} ${most} ${asked}`, async () =>
      asked.get("base") ? this.comparison.sites(asked, by) : sitesOf(await this.ask(asked), by, most),
    );
  }
  sparks(asked: URLSearchParams, signal?: AbortSignal): Promise<c.Sparks> {
    return this.once(signal, `sparks ${asked}`, async () => sparksOf(await this.ask(ofThisOne(asked))));
  }
  async stacks(asked: URLSearchParams, site: number): Promise<c.Stacks> {
    if (asked.get("base") && site >= onlyBefore) throw notHere("The stacks of a site that only the other recording has");
    return stacksOf(await this.ask(ofThisOne(asked)), site);
  }

  async answer(name: string, asked: URLSearchParams): Promise<c.Answer> {
    if (!this.data.has(`answer-${name}`)) throw notHere(`The answer "${name}"`);
    if (isPart(asked)) throw notHere(`The answer "${name}" under filters, or of a part of the time,`);
    const answer = await this.data.json(`answer-${name}`);
    if (!Array.isArray(answer.tables)) throw damaged(`answer-${name}`, "tables are missing");
    return answerOf({ ...answer, headline: String(answer.headline ?? "") });
  }

  async blocks(asked: URLSearchParams, site: number): Promise<c.Blocks> {
    const refusal = this.refusal("site", String(site));
    if (refusal) throw new Error(refusal);
    if (isPart(asked, ["from", "to", "hide"])) throw notHere("Which blocks the filters leave of this site");
    const blocks = blocksOf(await this.data.columns(`blocks-${site}`));
    const trace = await this.trace();
    const from = cutTime(trace, tenthsOf(asked.get("from") ?? "") ?? 0),
      to = cutTime(trace, tenthsOf(asked.get("to") ?? "") ?? 1000);
    return isPart(asked, ["hide"]) ? between(blocks, from, to, to < cutTime(trace, 1000) ? to : Infinity) : blocks;
  }

  async sourceLines(): Promise<c.SourceLines> {
    throw notHere("The source");
  }
  async replay(): Promise<c.Replay> {
    if (!this.data.has("replay")) throw notHere("What `malloscope replay` found");
    return this.data.json("replay");
  }

  refusal(word: string, value = ""): string | null {
    if (word === "base") return this.comparison.refusal(value);
    if (word === "site")
      return this.data.has(`blocks-${value}`)
        ? null
        : notHere("The single blocks of this site, which is none of the heaviest,").message;
    if (word === "part")
      return ofTheWhole.includes(value)
        ? notHere("This view under filters, or of a part of the time,").message
        : null;
    if (word === "answer") return this.data.has(`answer-${value}`) ? null : notHere(`The answer "${value}"`).message;
    if (word === "by")
      return value === "none" || this.data.has(`timeline-${value}`) ? null : notHere(`The timeline by ${value}`).message;
    if (word === "range" && this.known?.slices === 0) return notHere("What happened in a part of the time").message;
    return refusalOf(word, value);
  }

  // Where the numbers are of a little more than was asked for, or of a little less.
  remark(asked: URLSearchParams): string | null {
    if (!this.known) return null;
    const { trace, slices } = this.known;
    const from = tenthsOf(asked.get("from") ?? ""),
      to = tenthsOf(asked.get("to") ?? "");
    const wide = slices > 0 ? 1000 / slices : 1;
    if (((from ?? 0) % wide === 0 && (to ?? 1000) % wide === 0) || slices === 0) return null;
    const range = rangeOf(from, to, slices);
    const [first, last] = [range.first * wide, range.end * wide].map((tenths) => durationText(cutTime(trace, tenths)));
    return asked.get("metric") === "live" && from === null
      ? `numbers are of ${last}, the end of a slice of this file`
      : `numbers are of ${first} to ${last}, whole slices of this file`;
  }

  private async readTrace(): Promise<c.Trace> {
    const json = await this.data.json("trace");
    if (json.state !== "ready") throw damaged("trace", "it was not ready");
    const list = (value: unknown): any[] => (Array.isArray(value) ? value : []);
    const leftOut = list(json.file?.left_out).map((text) => ({ kind: "left out", text: String(text) }));
    const trace = traceOf({
      ...json,
      warnings: [...list(json.warnings), ...leftOut],
      has: { ...json.has, source: false, replay: this.data.has("replay") },
    }) as c.Trace;
    this.known = { trace, slices: this.data.has("slices") ? Number(json.file?.slices) || 0 : 0 };
    return trace;
  }

  private rows(): Promise<FileRows> {
    this.rowsMade ??= (async () => {
      const slices = this.data.has("slices") ? this.data.columns("slices") : null;
      return new FileRows(await this.data.columns("tree"), await slices);
    })();
    return this.rowsMade;
  }

  private async ask(words: URLSearchParams): Promise<Asked> {
    const rows = await this.rows();
    const question = questionOf(words, rows.slices, rows.images);
    const tree = this.trees.get(question.framesKey, () => treeOf(rows, question));
    const meant = this.meant.get(question.rowsKey, () => meantRows(rows, question, tree));
    const asked = { rows, question, tree, meant };
    const key = `${question.rowsKey} ${question.framesKey} ${question.fullNames}`;
    return { ...asked, groups: (by) => this.groups.get(`${by} ${key}`, () => groupsOf(asked, by)) };
  }

  private drawn(asked: Asked, how: FlameHow): c.Flame {
    const { rows, question, tree, meant } = asked;
    const placeOf = new Map(rows.symbols.id!.map((id, place) => [id, place]));
    const place = (id: number) => {
      const found = placeOf.get(id) ?? (id < tree.symbols ? id : undefined);
      if (found === undefined) throw new Error("There is no such function in this tree.");
      return found;
    };
    const byRow = rows.value(question.parts, question.range);
    const arrays = flameOf(
      tree,
      nodeValues(tree, byRow, meant),
      question.before ? nodeValues(tree, rows.value(question.parts, question.before), meant) : null,
      shapeAsked(how, how.root ?? 0, place),
    );
    if (!arrays) throw new Error("There is no such node in this tree.");
    const { others, ...columns } = arrays;
    return {
      metric: question.metric,
      unit: question.unit,
      total: columns.total_of[0] ?? 0,
      unfiltered: unfilteredOf(asked, byRow),
      nodes_of_all: tree.parent.length,
      others,
      ...(columns.before_of ? { total_before: columns.before_of[0] ?? 0 } : {}),
      ...columns,
      ...symbolsOf(rows, question, columns),
    };
  }

  // Not at once: while a range is dragged, the next question may be there before this one is begun.
  private async once<T>(signal: AbortSignal | undefined, key: string, make: () => Promise<T>): Promise<T> {
    await new Promise((begin) => setTimeout(begin));
    signal?.throwIfAborted();
    return this.answers.get(key, make) as Promise<T>;
  }
}

// The latest few of what was made.
class Latest<T> {
  private list = new Map<string, T>(); // The oldest first.
  constructor(private most: number) {}

  get(key: string, make: () => T): T {
    const value = this.list.has(key) ? this.list.get(key)! : make();
    this.list.delete(key);
    this.list.set(key, value);
    if (this.list.size > this.most) this.list.delete(this.list.keys().next().value!);
    return value;
  }
}

// Without the recording that this one is compared with.
function ofThisOne(asked: URLSearchParams): URLSearchParams {
  const words = new URLSearchParams(asked);
  words.delete("base");
  return words;
}

// Whether a question leaves something out; `but` are words that may.
function isPart(asked: URLSearchParams, but: string[] = []): boolean {
  const cut = { from: 0, to: 1000 };
  return [...asked].some(([word, value]) => {
    if (value === "" || ["metric", "full_names", "base"].includes(word) || but.includes(word)) return false;
    return word === "from" || word === "to" ? (tenthsOf(value) ?? cut[word]) !== cut[word] : true;
  });
}

// With the stacks that the filters leave out, but not those of other processes.
function unfilteredOf({ rows, question }: Asked, byRow: Float64Array): number {
  const inside = rows.images.map((_, i) => !question.process || isProcess(question.process, rows.images, i));
  return byRow.reduce((sum, value, row) => ((inside[rows.image[row]!] ?? !question.process) ? sum + value : sum), 0);
}

// The functions of a picture, numbered as they come.
function symbolsOf(
  rows: FileRows,
  question: FileQuestion,
  { symbol, kind }: Pick<c.Flame, "symbol" | "kind">,
): Pick<c.Flame, "symbol" | "symbols"> {
  const placeOf = new Map<number, number>();
  const places = symbol.map((one, node) => {
    if (kind[node] !== kFunction) return one;
    let place = placeOf.get(one);
    if (place === undefined) placeOf.set(one, (place = placeOf.size));
    return place;
  });
  const met = [...placeOf.keys()];
  return {
    symbol: places,
    symbols: {
      id: met.map((one) => rows.symbols.id![one] ?? one),
      ...namesOf(met.map((one) => frameOf(rows, rows.symbols, one, question.fullNames))),
    },
  };
}

// The bars that reach into a time. Which blocks of a merged bar do is not known.
function between(blocks: c.Blocks, from: number, to: number, end: number): c.Blocks {
  if (blocks.blocks > blocks.bars) throw notHere("Which of the merged blocks of this site lived in this time");
  const inside: number[] = [];
  for (let i = 0; i < blocks.born.length; ++i) if (blocks.born[i]! <= to && blocks.died[i]! >= from) inside.push(i);
  const of = (column: ArrayLike<number>) => inside.map((i) => column[i]!);
  const size = Float64Array.from(of(blocks.size));
  return {
    blocks: inside.length,
    bars: inside.length,
    bytes_min: size.reduce((a, b) => Math.min(a, b), Infinity),
    bytes_max: size.reduce((a, b) => Math.max(a, b), 0),
    end_ns: Math.min(blocks.end_ns, end), // As the server has it: what dies later is still live.
    born: Float64Array.from(of(blocks.born)),
    died: Float64Array.from(of(blocks.died)),
    size,
    stands_for: Uint32Array.from(of(blocks.stands_for)),
    tid: blocks.tid && Uint32Array.from(of(blocks.tid)),
    site: blocks.site,
  };
}
