// SPDX-License-Identifier: Apache-2.0
// How a view asks: `key` says what; a new key ends the request of the old one. Until the new answer is
// there the old one stays, marked as busy, so that nothing flickers.

import { useEffect, useState } from "preact/hooks";
import { pageError } from "./command_words";
import type { Job } from "./contract";
import type { Source } from "./source";

export interface Asked<T> {
  value: T | null;
  key: string; // What `value` answers.
  error: string | null;
  busy: boolean;
}

export function useAnswer<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>): Asked<T> {
  const [asked, setAsked] = useState<Asked<T>>({ value: null, key: "", error: null, busy: key !== null });
  useEffect(() => {
    if (key === null) return;
    const controller = new AbortController();
    setAsked((was) => ({ ...was, busy: true }));
    ask(controller.signal).then(
      (value) => {
        if (!controller.signal.aborted) setAsked({ value, key, error: null, busy: false });
      },
      (error: unknown) => {
        if (controller.signal.aborted) return;
        setAsked({ value: null, key, error: sentence(error), busy: false });
      },
    );
    return () => controller.abort();
  }, [key]);
  return key === null ? { value: null, key: "", error: null, busy: false } : asked;
}

// What the server is reading, while somebody waits for it.
export function useProgress(source: Source, active: boolean): Job[] {
  const [jobs, setJobs] = useState<Job[]>([]);
  useEffect(() => {
    if (!active) return setJobs([]);
    const controller = new AbortController();
    const timer = setInterval(() => {
      source.progress(controller.signal).then(setJobs, () => {});
    }, 400);
    return () => {
      clearInterval(timer);
      controller.abort();
    };
  }, [active]);
  return jobs;
}

export function sentence(error: unknown): string {
  const text = pageError(error instanceof Error ? error.message : String(error));
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
