#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What replay left beside a trace is on the viewer's page, number by number: the table and the advice, memory
# and fragmentation over time, cycles by size. Without it there is no such tab.
. "$(dirname "$0")/here.sh"
[ -d "$root/test/browser/node_modules" ] || skip "npm ci --prefix test/browser was not run"
export MALLOSCOPE=$malloscope

record t.mscope sqlite3 :memory: "create table t as with recursive n(i) as (select 1 union all select i+1 from n
  where i<60000) select i, hex(randomblob(20)) h from n; select count(*), max(h) from t; drop table t;" >/dev/null ||
  fail "exit $?"
record plain.mscope "$programs/hello" 0 >/dev/null || fail "exit $?"
"$malloscope" replay t.mscope --allocators glibc,jemalloc --tunables 'glibc.malloc.arena_max=1,2' --repeat 3 >/dev/null ||
  fail "replay: exit $?"
node "$root/test/browser/viewer_replay.mjs" t.mscope plain.mscope || fail "see above"
