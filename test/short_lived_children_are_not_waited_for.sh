#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A child that is exec'd and dies before it joins the recording (killed at once, or without a
# library it needs) is not taken for one that is still to come.
. "$(dirname "$0")/here.sh"

echo 'int needed(void) { return 0; }' | gcc -xc - -shared -o libneeded.so || fail "library"
echo 'int needed(void); int main(void) { return needed(); }' |
  gcc -xc - -L. -lneeded -o needy && rm libneeded.so || fail "needy"
cat >mother.c <<'C'
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv) {
  for (int i = 0; i < 20; ++i) {
    pid_t pid;
    if (posix_spawn(&pid, argv[1], NULL, NULL, argv + 1, environ)) return 1;
    if (argc > 2) kill(pid, SIGKILL);
  }
  return 0;  // Nobody waits for them.
}
C
gcc -O1 mother.c -o mother || fail "mother.c"
for child in "./needy" "/bin/sleep 100"; do
  "$malloscope" run -o t.mscope --force -- ./mother $child >out 2>err
  same "exit code, with $child" $? 0
  grep -q "still running" err && fail "of $child: $(grep 'still running' err)"
  says t.mscope 'r["trace"]["complete"]' True
done
