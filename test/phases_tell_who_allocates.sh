#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a program allocates in each phase that it names, counted by itself and by malloscope: by C and C++,
# however it is linked, of processes and of threads, with the index and without.
source "$(dirname "$0")/here.sh"
export NO_COLOR=1
include=$root/include

cat >phases.cc <<'P'
#include "malloscope.h"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

// The program's own count. Its books are made before anything is counted.
struct Count { std::atomic<unsigned long> blocks, bytes, left; };
static Count counts[8];
static const char* const names[] = {"load", "load index", "event", "worker", "in order", "never ends", "twice", "(no phase)"};
static std::vector<int> process_open;
static thread_local std::vector<int> thread_open;
static void* take(size_t size, bool kept) {
  void* volatile block = malloc(size);
  bool any = false;
  bool met[8] = {};
  auto add = [&](int phase) {
    if (met[phase]) return;
    any = met[phase] = true;
    ++counts[phase].blocks, counts[phase].bytes += size, counts[phase].left += kept ? size : 0;
  };
  for (int phase : process_open) add(phase);
  for (int phase : thread_open) add(phase);
  if (!any) add(7);
  if (!kept) { free(block); return nullptr; }
  return block;
}
static void begin(int phase) { process_open.push_back(phase); malloscope_phase_begin(names[phase]); }
static void end(int phase) {
  malloscope_phase_end(names[phase]);
  for (size_t i = process_open.size(); i-- > 0;)
    if (process_open[i] == phase) { process_open.erase(process_open.begin() + i); return; }
}
static void* kept[100000];

int main(int argc, char** argv) {
  process_open.reserve(64), thread_open.reserve(64);
  size_t next = 0;
  take(10, false);
  malloscope_mark("begin");
  begin(0);
  for (int i = 0; i < 1000; ++i) kept[next++] = take(100 + i % 7, i % 3 == 0);
  begin(1);  // Inside.
  for (int i = 0; i < 500; ++i) take(33, false);
  end(0);  // They overlap.
  for (int i = 0; i < 200; ++i) kept[next++] = take(34, true);
  end(1);
  end(1);  // Of nothing.
  for (int round = 0; round < 300; ++round) {
    process_open.push_back(2);
    { malloscope::Phase phase("event"); for (int i = 0; i < 7; ++i) take(50 + i, false); if (round % 10 == 0) kept[next++] = take(7, true); }
    process_open.pop_back();
    take(11, false);
  }
  begin(6), begin(6);
  take(21, false);
  end(6);
  take(22, false);
  end(6);
  take(23, false);
  // Threads that work at once, one of them in a phase of its own.
  std::atomic<int> go{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      thread_open.reserve(64);
      ++go;
      while (go < 3) {}
      if (t == 0) { thread_open.push_back(3); malloscope_thread_phase_begin("worker"); }
      for (int i = 0; i < 20000; ++i) take(64, false);
      if (t == 0) { malloscope_thread_phase_end("worker"); thread_open.pop_back(); }
      for (int i = 0; i < 100; ++i) take(65, false);
    });
  for (auto& thread : threads) thread.join();
  // What another thread begins is begun for all.
  std::thread other([] { malloscope_phase_begin("in order"); });
  other.join();
  process_open.push_back(4);
  for (int i = 0; i < 50; ++i) take(70, false);
  end(4);
  if (fork() == 0) {  // A child begins outside of all phases, and has its own.
    malloscope_phase_begin("child");
    void* volatile block = malloc(1234);
    free(block);
    _exit(0);
  }
  int status;
  wait(&status);
  static char hostile[400] = "\x1b[31m<b>", buffer[4096];
  for (size_t i = 8; i + 1 < sizeof hostile; ++i) hostile[i] = 'x';
  FILE* out = fopen(argv[argc - 1], "w");
  setvbuf(out, buffer, _IOFBF, sizeof buffer);
  begin(5);
  kept[next++] = take(5, true);
  malloscope_mark(hostile);
  malloscope_mark("end");
  for (int i = 0; i < 8; ++i)
    fprintf(out, "%s\t%lu\t%lu\t%lu\n", names[i], counts[i].blocks.load(), counts[i].bytes.load(), counts[i].left.load());
  fclose(out);
  _exit(0);
}
P
for how in "-fPIE -pie" "-no-pie" "-fPIE -pie -O2 -std=c++11 -Wall -Wextra -Wpedantic -Wold-style-cast -Werror=old-style-cast"; do
  c++ -g $how -I"$include" phases.cc -o phases -pthread 2>errors || fail "it does not compile with $how: $(cat errors)"
  grep -q malloscope.h errors && fail "the header is warned about: $(cat errors)"
  ./phases alone.txt || fail "it does not run alone"
  rm -f t.mscope t.mscope.index
  record t.mscope ./phases counted.txt || fail "it cannot be recorded"
  cmp -s alone.txt counted.txt || fail "it does something else when it is recorded"
  pid=$("$malloscope" report t.mscope --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["processes"][0]["pid"])')
  for index in never always; do
    export MALLOSCOPE_INDEX=$index
    "$malloscope" report t.mscope --view phases --process "$pid" --json >view.json || fail "no view"
    "$malloscope" report t.mscope --process "$pid" --json >whole.json || fail "no report"
    "$malloscope" report t.mscope --by phase --metric allocated --process "$pid" --json >by.json || fail "no groups"
    python3 - <<'P' || fail "with an index $index, linked with $how"
import json, subprocess, sys, os
rows = {r["phase"]: r for r in json.load(open("view.json"))["phases"]}
good = True
for line in open("counted.txt"):
    name, blocks, size, left = line.rstrip("\n").split("\t")
    row = rows[name]
    told = (row["allocations"], row["allocated_bytes"], row["live_bytes"])
    wanted = (int(blocks), int(size), int(left))
    if name == "(no phase)":  # There the program's own library and books are too.
        good &= all(a >= b for a, b in zip(told, wanted))
    elif told != wanted:
        good = False
        print(name, told, "and by itself", wanted)
assert rows["event"]["times"] == 300, rows["event"]
assert rows["twice"]["times"] == 2
assert rows["never ends"]["times"] == 1
assert "child" not in rows
# By phase each block is of the innermost: the groups add up to the whole.
by = json.load(open("by.json"))
whole = json.load(open("whole.json"))["totals"]["allocated_bytes"]
assert sum(g["allocated_bytes"] for g in by["phases"]) == whole, (by["phases"], whole)
sys.exit(not good)
P
    # The filter is what the view says.
    for phase in load "load index" event worker; do
      sum=$("$malloscope" report t.mscope --phase "^$phase\$" --metric allocated --by site --process "$pid" --json |
        python3 -c 'import json, sys; r = json.load(sys.stdin); print(sum(x["allocated_bytes"] for x in r["sites"]))')
      wanted=$(awk -F'\t' -v n="$phase" '$1 == n { print $3 }' counted.txt)
      [ "$sum" = "$wanted" ] || fail "--phase $phase with an index $index: $sum, and by itself $wanted"
    done
    leaked=$("$malloscope" leaks t.mscope --phase '^event$' --process "$pid" --no-default-suppressions --json 2>/dev/null |
      python3 -c 'import json, sys; print(sum(x["bytes"] for x in json.load(sys.stdin)["leaks"]))')
    [ "$leaked" = "$(awk -F'\t' '$1 == "event" { print $4 }' counted.txt)" ] || fail "leaks of a phase: $leaked"
  done
done
unset MALLOSCOPE_INDEX

# A whole name is cut, and what is hostile in it is not printed.
"$malloscope" info t.mscope >info.txt || fail "info"
grep -q $'\x1b' info.txt && fail "a name reached the terminal as it is"
grep -q 'Phases (8' info.txt || fail "info does not list the phases: $(grep -i phase info.txt)"
"$malloscope" info t.mscope --json | python3 -c '
import json, sys
info = json.load(sys.stdin)
marks = [m["name"] for m in info["marks"]]
assert marks[0] == "begin" and marks[-1] == "end" and len(marks) == 3, marks
assert len(marks[1].encode()) == 256, len(marks[1])
spans = [p for p in info["phases"] if p["name"] == "event"]
assert len(spans) == 300 and all(p["from_ns"] <= p["to_ns"] and p["ended"] for p in spans)
assert [p["ended"] for p in info["phases"] if p["name"] == "never ends"] == [False]
assert len([p for p in info["phases"] if p["name"] == "worker" and p["thread"]]) == 1
' || fail "info --json"

# What matches no phase is said, with how a program names them if it names none.
"$malloscope" report t.mscope --phase nonsense --by site 2>errors >/dev/null; grep -q "no phase of t.mscope" errors || fail "$(cat errors)"
record plain.mscope true && "$malloscope" report plain.mscope --phase x --by site 2>errors >/dev/null
grep -q "docs/phases.md" errors || fail "$(cat errors)"
"$malloscope" report plain.mscope --view phases | grep -q "names no phases" || fail "the view of a program without phases"

# Left out, there is nothing of it in the program; and C may use it too.
c++ -DMALLOSCOPE_OFF -I"$include" phases.cc -o off -pthread || fail "it does not compile without"
nm -u off | grep -q dlsym && fail "the loader is asked though it was left out"
cat >c.c <<'P'
#include "malloscope.h"
#include <stdlib.h>
int main(void) {
  malloscope_phase_begin("c");
  void* volatile block = malloc(77);
  free(block);
  malloscope_phase_end("c");
  malloscope_phase_begin(0); /* Nothing to say. */
  return 0;
}
P
cc -std=c99 -Wall -Wextra -pedantic -Werror -I"$include" c.c -o c || fail "it is no C"
record c.mscope ./c && "$malloscope" report c.mscope --view phases --json |
  python3 -c 'import json, sys; r, = [p for p in json.load(sys.stdin)["phases"] if p["phase"] == "c"]; assert (r["allocations"], r["allocated_bytes"]) == (1, 77), r' ||
  fail "phases of a C program"
