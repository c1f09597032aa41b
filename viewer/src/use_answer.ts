// SPDX-License-Identifier: Apache-2.0
// How a view asks: `key` says what; a new key ends the request of the old one. Until the new answer is
// there the old one stays, marked as busy, so that nothing flickers. The question is sent before the page
// is painted: who waits for it should not wait for that as well.

import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { pageError } from "./command_words";
import type { Job } from "./contract";
import type { Source } from "./source";

export interface Asked<T> {
  value: T | null;
  key: string | null; // What `value` answers.
  error: string | null;
  busy: boolean;
}

export function useAnswer<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>): Asked<T> {
  const [last, setLast] = useState<Asked<T>>(unasked);
  useLayoutEffect(() => {
    if (key === null) return;
    const controller = new AbortController();
    ask(controller.signal).then(
      (value) => {
        if (!controller.signal.aborted) setLast({ value, key, error: null, busy: false });
      },
      (error: unknown) => {
        if (controller.signal.aborted) return;
        setLast({ value: null, key, error: sentence(error), busy: false });
      },
    );
    return () => controller.abort();
  }, [key]);
  if (key === null) return unasked;
  return last.key === key ? last : { ...last, busy: true };
}

const unasked = { value: null, key: null, error: null, busy: false };

// What the server is reading, while somebody waits for it.
export function useProgress(source: Source, active: boolean): Job[] {
  const [jobs, setJobs] = useState(noJobs);
  useEffect(() => {
    if (!active) return setJobs(noJobs);
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

const noJobs: Job[] = []; // Always the same, so that to be idle is not a change.

export function sentence(error: unknown): string {
  const text = pageError(error instanceof Error ? error.message : String(error));
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
