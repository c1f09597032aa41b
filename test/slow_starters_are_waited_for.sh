#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that is started just before its parent ends, and takes its time to load, is recorded:
# also when both the fork and the exec are bare system calls.
. "$(dirname "$0")/here.sh"

echo '#include <unistd.h>
__attribute__((constructor)) static void load(void) { usleep(400000); }
void loaded(void) {}' | gcc -xc - -shared -fPIC -o libslow.so || fail "library"
cat >slow.c <<'C'
#include <stdlib.h>
void loaded(void);
static void keep(void) {
  for (int i = 0; i < 1000; ++i) *(volatile char *)malloc(40) = 1;
}
int main(void) {
  loaded();
  keep();
  return 0;
}
C
gcc -O1 -g -fno-builtin slow.c -L. -lslow -Wl,-rpath,"$work" -o slow || fail "slow.c"
cat >mother.c <<'C'
#define _GNU_SOURCE
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv) {
  char *command[] = {"./slow", NULL};
  pid_t pid = 0;
  if (argc > 1 && !strcmp(argv[1], "spawn"))
    return posix_spawn(&pid, command[0], NULL, NULL, command, environ);
  if (argc > 1 && !strcmp(argv[1], "fork") && fork() == 0) return execv(command[0], command);
  if (argc > 1 && !strcmp(argv[1], "raw") && syscall(SYS_fork) == 0)
    return (int)syscall(SYS_execve, command[0], command, environ);
  return 0;
}
C
gcc -O1 mother.c -o mother || fail "mother.c"
for way in spawn fork raw; do
  record t.mscope ./mother $way || fail "$way: exit $?"
  says t.mscope "site('keep', 'allocations'), '$way'" "(1000, '$way')"
  says t.mscope 'r["trace"]["complete"]' True
done
