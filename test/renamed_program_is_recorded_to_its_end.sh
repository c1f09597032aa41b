#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that renames or deletes its own file is recorded to its end, and so are its children.
. "$(dirname "$0")/here.sh"

# It lives for longer than one that has exec'd something else would be believed to be the same.
cat >restless.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void keep(void) {
  for (int i = 0; i < 1000; ++i) *(volatile char *)malloc(40) = 1;
}
int main(int argc, char **argv) {
  keep();
  if (argc > 2) return 3;
  if (argc > 1 && (strcmp(argv[1], "-") ? rename(argv[0], argv[1]) : unlink(argv[0]))) return 1;
  int status;
  pid_t forked = fork();
  sleep(3);
  keep();
  if (forked == 0) _exit(4);
  pid_t started = fork();
  if (started == 0) execl("/proc/self/exe", argv[0], "after", "all", NULL);
  for (int i = 0; i < 2; ++i)
    if (wait(&status) < 0 || (WEXITSTATUS(status) != 3 && WEXITSTATUS(status) != 4)) return 2;
  return 5;
}
C
gcc -O1 -fno-builtin restless.c -o restless || fail "restless.c"
for name in moved -; do
  cp restless "for$name"
  record "$name.mscope" "./for$name" "$name" &
done
wait %1; same "exit code of the renamed one" $? 5
wait %2; same "exit code of the deleted one" $? 5
for name in moved -; do
  [ -e "for$name" ] && fail "the program did not move away"
  says "./$name.mscope" 'r["trace"]["complete"]' True
  says "./$name.mscope" 'len(processes)' 4
  says "./$name.mscope" '(t["allocations"], t["allocated_bytes"])' "(4000, 160000)"
done
