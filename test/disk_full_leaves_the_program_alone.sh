#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A full disk: the program is untouched, what was written is kept, run says so and exits with 3.
. "$(dirname "$0")/here.sh"

[ "$(id -u)" = 0 ] || skip "only root can mount a small disk"
mkdir small && unshare -m true 2>/dev/null || skip "no mount namespaces here"
cat >busy.c <<'C'
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
  unsigned r = 1;
  void *slots[1024] = {0};
  for (long i = 0; i < 2000000; ++i) {
    if (i == 1000) usleep(400000);  // So that something is on the disk before it fills.
    r = r * 1664525 + 1013904223;
    free(slots[r >> 22]);
    slots[r >> 22] = malloc(8 + (r >> 8) % 2000);
  }
  return write(1, "done\n", 5) == 5 && argc > 1 ? atoi(argv[1]) : 0;
}
C
gcc -O1 -fno-builtin busy.c -o busy || fail "busy.c"
cat >inside.sh <<'S'
mount -t tmpfs -o size=64k none small || exit 77
"$1" run -o small/t.mscope -- ./busy 2>err >out; echo $? >code
mv small/t.mscope .
"$1" run -o small/u.mscope -- ./busy 9 2>/dev/null >/dev/null; echo $? >code9
S
unshare -m sh inside.sh "$malloscope" || skip "mounting is not permitted"
same stdout "$(cat out)" "done"
same "exit code" "$(cat code)" 3
same "exit code of a program with its own" "$(cat code9)" 9
grep -qi 'space\|full' err || fail "not said: $(cat err)"
says t.mscope 'r["trace"]["complete"], t["allocations"] > 0' "(False, True)"
