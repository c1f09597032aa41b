// SPDX-License-Identifier: Apache-2.0
// The newest question goes first: what nobody waits for any more is left after it, and what was answered is
// not left at all.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ServerSource } from "../src/server_source";

// A server that answers `stacks` when it is told to, and notes what it is asked.
function served() {
  const asked: string[] = [],
    waiting: (() => void)[] = [];
  globalThis.fetch = ((url: string, how?: RequestInit) => {
    asked.push(url.replace(/[?&]asked=.*\./, " "));
    if (url.startsWith("api/leave")) return Promise.resolve(new Response(""));
    return new Promise((reply, refuse) => {
      how?.signal?.addEventListener("abort", () => refuse(new Error("aborted")));
      waiting.push(() => reply(new Response('{"stacks": []}')));
    });
  }) as typeof fetch;
  return { asked, answer: () => waiting.splice(0).forEach((reply) => reply()) };
}

const nothing = new URLSearchParams();
const later = () => new Promise((next) => setTimeout(next, 5));

test("what nobody waits for is left, after what is asked instead", async () => {
  const { asked, answer } = served();
  const source = new ServerSource(),
    first = new AbortController();
  source.stacks(nothing, 1, first.signal).catch(() => {});
  first.abort();
  const second = source.stacks(nothing, 2);
  await later();
  assert.deepEqual(asked, ["api/stacks?site=1 1", "api/stacks?site=2 2", "api/leave 1"]);
  answer();
  assert.deepEqual(await second, { stacks: [] });
});

test("each block is told apart only if that is wanted", async () => {
  const { asked } = served();
  const source = new ServerSource();
  for (const each of [false, true]) source.blocks(nothing, 3, each).catch(() => {});
  await later();
  assert.deepEqual(asked, ["api/blocks?site=3 1", "api/blocks?site=3&each=1 2"]);
});

test("what was answered is not left", async () => {
  const { asked, answer } = served();
  const source = new ServerSource(),
    reader = new AbortController();
  const stacks = source.stacks(nothing, 1, reader.signal);
  answer();
  await stacks;
  await later();
  reader.abort();
  await later();
  assert.deepEqual(asked, ["api/stacks?site=1 1"]);
});

test("who asks for the same gets the same, and one may go while the other waits", async () => {
  const { asked, answer } = served();
  const source = new ServerSource(),
    one = new AbortController();
  source.stacks(nothing, 1, one.signal).catch(() => {});
  const other = source.stacks(nothing, 1);
  one.abort();
  await later();
  answer();
  assert.equal(await other, await source.stacks(nothing, 1));
  assert.deepEqual(asked, ["api/stacks?site=1 1"]);
});
