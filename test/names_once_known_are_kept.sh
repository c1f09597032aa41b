#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the cache knows of a build is used place by place: with what the trace says itself, whoever
# knew it, however little of it; and where it is not enough, that is said.
. "$(dirname "$0")/here.sh"
export XDG_CACHE_HOME=$work/cache

cat >app.cc <<'C'
#include <cstdlib>
#define F(n) extern "C" __attribute__((noinline)) void* fn_##n(int s) { void* p = malloc(s); asm volatile("" ::: "memory"); return p; }
F(a) F(b) F(c) F(d)
int main(int, char** v) { v[1][0] == '1' ? (void)fn_a(10) : (fn_b(20), fn_c(30), (void)fn_d(40)); }
C
g++ -g -O0 app.cc -o full || fail "g++"
[ -n "$(readelf -n full | sed -n 's/.*Build ID: //p')" ] || skip "the compiler writes no build-ids"
# names TRACE OPTIONS...: the functions that are known.
names() { "$malloscope" report "$@" --by site --metric live | grep -o 'fn_[a-d]' | sort | tr -d '\n'; }
# A recording of either part, app in place.
both() { cp full app && record one.mscope ./app 1 && record two.mscope ./app 2; }

# Some places of a build are known, others are not: it is said, and nothing is proven.
both
"$malloscope" report one.mscope >/dev/null
cp "$programs/hello" app
"$malloscope" report two.mscope --metric live | grep -q 'app has been rebuilt since' ||
  fail "the cache knows main, and nobody says that the rest is not known"
"$malloscope" check two.mscope --no-leaks-within 'fn_[a-d]' --no-default-suppressions >out 2>err
same "exit code of a check without names" $? 3
cat >partly.cc <<'C'
#include <cstdlib>
__attribute__((noinline)) void* leaky(int w) {
  void* p = malloc(9);
  free(p);
  return w == 1 ? nullptr : malloc(99);
}
int main(int, char** v) { void* volatile p = leaky(v[1][0] - '0'); (void)p; }
C
g++ -g -O0 partly.cc -o partly
record p1.mscope ./partly 1
record p2.mscope ./partly 2
"$malloscope" report p1.mscope >/dev/null
cp "$programs/hello" partly
"$malloscope" leaks p2.mscope --within leaky --fail >out 2>err
same "exit code of leaks in functions without names" $? 3

# The trace's own names count where the cache has none, and the other way round.
rm -rf cache
mkdir debug
both
cp full debug/app
strip -g app
cp app light
"$malloscope" symbolize -o named.mscope two.mscope >/dev/null || fail "symbolize"
"$malloscope" report one.mscope --debug-dir debug >/dev/null
rm app
same "names in the trace" "$(names named.mscope)" fn_bfn_cfn_d
same "names in the cache, of less detail" "$(names two.mscope)" fn_bfn_cfn_d

# A file that was only touched, and another recording of it, take nothing away.
rm -rf cache
both
"$malloscope" report two.mscope >/dev/null
touch app
"$malloscope" report one.mscope >/dev/null
rm app
same "names after a touch" "$(names two.mscope)" fn_bfn_cfn_d

# Of several files of the build the one that knows most.
rm -rf cache debug/*
strip -s full -o debug/app
objcopy --only-keep-debug full debug/app.debug
same "names from a debug file beside a stripped one" "$(names two.mscope --no-cache --debug-dir debug)" fn_bfn_cfn_d

# A stripped program has no names at all, which every report says.
strip -s full -o app
"$malloscope" report two.mscope --metric live --no-cache | grep -q 'app is stripped\|app has no symbols' ||
  fail "nothing is said of a stripped program"

# What lies in the cache's folder may be anything.
mkdir -p cache/malloscope
mkfifo "cache/malloscope/$(readelf -n full | sed -n 's/.*Build ID: //p')-0000000000000000.names"
timeout 20 "$malloscope" report two.mscope >/dev/null || fail "a pipe in the cache: exit code $?"

# Nor can one be compared with whose names are gone.
rm -rf cache app
cp "$programs/hello" app
"$malloscope" leaks named.mscope --max-new-against two.mscope --no-cache >/dev/null 2>err
same "exit code against a recording without names" $? 3
grep -q 'two.mscope cannot be compared with: .*/app is not as it was' err || fail "$(cat err)"

# A recording that was cut proves nothing.
head -c $(($(stat -c %s one.mscope) * 2 / 3)) one.mscope >cut.mscope
"$malloscope" leaks cut.mscope --max-bytes 1G >/dev/null 2>&1
same "exit code of leaks of a cut recording" $? 3
"$malloscope" check cut.mscope --max-peak 1G --junit check.xml >/dev/null 2>&1
same "exit code of check of a cut recording" $? 3
grep -q 'errors="1"' check.xml || fail "JUnit is green for a cut recording"
