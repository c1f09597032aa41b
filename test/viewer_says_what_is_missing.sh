#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A recording that is empty, cut, lossy, sampled or without names says so on the viewer's page, in every view, and
# each view opens all the same; what is no trace is refused before a page is served. While it loads, and when
# its server is gone, the page says that.
. "$(dirname "$0")/here.sh"
[ -d "$root/test/browser/node_modules" ] || skip "npm ci --prefix test/browser was not run"
export MALLOSCOPE=$malloscope

record whole.mscope "$programs/peak" >/dev/null || fail "exit $?"
"$malloscope" run --quiet -o nobody.mscope --only nobody_at_all -- "$programs/hello" 0 >/dev/null
echo 'int main(void) { return 0; }' | gcc -xc - -o nothing || fail "gcc"
record empty.mscope ./nothing || fail "exit $?"
record long.mscope "$programs/handover" 1000 >/dev/null || fail "exit $?"
head -c $(($(stat -c %s long.mscope) / 2)) long.mscope >cut.mscope
"$malloscope" run --quiet --sample 4K -o sampled.mscope -- "$programs/handover" 1000 >/dev/null || fail "exit $?"
record stripped.mscope "$programs/hello_stripped" 0 >/dev/null || fail "exit $?"
cp "$programs/leaky" program
record rebuilt.mscope ./program leaks 20 >/dev/null || fail "exit $?"
cp "$programs/peak" program
head -c 20000 /dev/urandom >broken.mscope

cat >busy.c <<'C'
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  sleep(1);
  for (long i = 0; i < 4000000; ++i) free(malloc(24 + i % 8));
  return write(1, "done\n", 5) != 5 || sleep(1);
}
C
gcc -O1 -g -fno-builtin busy.c -o busy || fail "busy.c"
record lossy.mscope ./busy >out &
launcher=$!
wait_for 5 collector_of lossy.mscope >/dev/null || fail "no collector found"
collector=$(collector_of lossy.mscope)
kill -STOP "$collector"
wait_for 15 grep -q 'done' out
kill -CONT "$collector"
wait $launcher

node "$root/test/browser/viewer_states.mjs" whole=whole.mscope nobody=nobody.mscope empty=empty.mscope \
  cut=cut.mscope lossy=lossy.mscope sampled=sampled.mscope stripped=stripped.mscope rebuilt=rebuilt.mscope broken=broken.mscope ||
  fail "see above"
