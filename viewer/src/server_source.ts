// SPDX-License-Identifier: Apache-2.0
// Asks the server of `malloscope view`. Who asks twice for the same gets one request, recent answers are
// kept, and a request that nobody waits for any more is ended: the newest question wins.

import { type Columns, decodeColumns } from "./columns";
import type * as c from "./contract";
import { type FlameHow, type Source, answerOf, blocksOf, flameOf, sitesOf, sparksOf, timelineOf, traceOf } from "./source";

const kept = 48;
const session = Math.random().toString(36).slice(2); // Of several pages that ask one server.

interface Flight {
  promise: Promise<unknown>;
  waiting: number;
  controller: AbortController;
}

export class ServerSource implements Source {
  private answers = new Map<string, unknown>(); // The oldest first.
  private flights = new Map<string, Flight>();
  private questions = 0;

  async trace(signal?: AbortSignal): Promise<c.TraceHead | c.Trace> {
    return traceOf(await fetchJson("api/trace", signal));
  }
  async progress(signal?: AbortSignal): Promise<c.Job[]> {
    return (await fetchJson<{ jobs?: c.Job[] }>("api/progress", signal)).jobs ?? [];
  }
  timeline(question: URLSearchParams, by: string, signal?: AbortSignal): Promise<c.Timeline> {
    return this.columns("timeline", question, { by: by === "none" ? null : by }, timelineOf, signal);
  }
  detail(question: URLSearchParams, from: number, to: number, signal?: AbortSignal): Promise<c.Timeline> {
    const percent = (cut: number) => `${(cut / 10).toFixed(1)}%`;
    return this.columns("detail", question, { from: percent(from), to: percent(to) }, timelineOf, signal);
  }
  flame(question: URLSearchParams, how: FlameHow, signal?: AbortSignal): Promise<c.Flame> {
    return this.columns("flame", question, { ...how, inverted: how.inverted ? 1 : null }, flameOf, signal);
  }
  sites(question: URLSearchParams, by: string, most: number | null, signal?: AbortSignal): Promise<c.Sites> {
    return this.columns("sites", question, { by: by === "site" ? null : by, most }, sitesOf, signal);
  }
  sparks(question: URLSearchParams, signal?: AbortSignal): Promise<c.Sparks> {
    return this.columns("sparks", question, {}, sparksOf, signal);
  }
  stacks(question: URLSearchParams, site: number, signal?: AbortSignal): Promise<c.Stacks> {
    return this.json("stacks", question, { site }, signal);
  }
  async answer(name: string, question: URLSearchParams, signal?: AbortSignal): Promise<c.Answer> {
    return answerOf(await this.json<c.CompactAnswer>(`answer/${encodeURIComponent(name)}`, question, {}, signal));
  }
  blocks(question: URLSearchParams, site: number, each: boolean, signal?: AbortSignal): Promise<c.Blocks> {
    return this.columns("blocks", question, { site, each: each ? 1 : null }, blocksOf, signal);
  }
  sourceLines(file: string, line: number, signal?: AbortSignal): Promise<c.SourceLines> {
    return this.json("source", new URLSearchParams(), { file, line }, signal);
  }
  replay(signal?: AbortSignal): Promise<c.Replay> {
    return this.json("replay", new URLSearchParams(), {}, signal);
  }
  refusal(): string | null {
    return null;
  }
  remark(): string | null {
    return null;
  }

  private json<T>(name: string, question: URLSearchParams, more: Record<string, unknown>, signal?: AbortSignal) {
    return this.once<T>(address(name, question, more), signal, (url, s) => fetchJson<T>(url, s));
  }
  private columns<T>(
    name: string,
    question: URLSearchParams,
    more: Record<string, unknown>,
    decode: (columns: Columns) => T,
    signal?: AbortSignal,
  ) {
    return this.once<T>(address(name, question, more), signal, async (url, s) =>
      decode(decodeColumns(await (await fetchOk(url, s)).arrayBuffer())),
    );
  }

  private async once<T>(
    url: string,
    signal: AbortSignal | undefined,
    ask: (url: string, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (this.answers.has(url)) {
      const answer = this.answers.get(url) as T;
      this.answers.delete(url);
      this.answers.set(url, answer);
      return answer;
    }
    let flight = this.flights.get(url);
    if (!flight) {
      const controller = new AbortController();
      const asked = `asked=${session}.${++this.questions}`;
      const promise = ask(`${url}${url.includes("?") ? "&" : "?"}${asked}`, controller.signal).then((answer) => {
        this.answers.set(url, answer);
        if (this.answers.size > kept) this.answers.delete(this.answers.keys().next().value!);
        return answer;
      });
      // The server does not notice by itself, and would go on. What is asked instead goes first.
      const leave = () => fetch(`api/leave?${asked}`).then((reply) => reply.text(), () => "");
      controller.signal.addEventListener("abort", () => setTimeout(leave));
      const started: Flight = { promise, waiting: 0, controller };
      flight = started;
      this.flights.set(url, flight);
      const over = () => {
        if (this.flights.get(url) === started) this.flights.delete(url);
      };
      promise.then(over, over);
    }
    const joined = flight;
    ++joined.waiting;
    signal?.addEventListener(
      "abort",
      () => {
        if (--joined.waiting > 0 || this.flights.get(url) !== joined) return; // Others wait, or it is over.
        this.flights.delete(url);
        joined.controller.abort();
      },
      { once: true },
    );
    return joined.promise as Promise<T>;
  }
}

function address(name: string, question: URLSearchParams, more: Record<string, unknown>): string {
  const all = new URLSearchParams(question);
  for (const [key, value] of Object.entries(more))
    if (value !== null && value !== undefined) all.set(key, String(value));
  const text = all.toString();
  return `api/${name}${text ? `?${text}` : ""}`;
}

async function fetchJson<T>(url: string, signal?: AbortSignal): Promise<T> {
  return (await fetchOk(url, signal)).json() as Promise<T>;
}

async function fetchOk(url: string, signal?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, { signal: signal ?? null, cache: "no-store" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Error("The server does not answer. It may have ended: run `malloscope view` again.");
  }
  if (response.ok) return response;
  let sentence = `The server could not answer (${response.status}).`;
  try {
    const { error } = await response.json();
    if (typeof error === "string" && error) sentence = error;
  } catch {
    // It was no sentence.
  }
  throw new Error(sentence);
}
