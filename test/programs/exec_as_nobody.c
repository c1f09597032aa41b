// SPDX-License-Identifier: Apache-2.0
// A child becomes another user and execs: it may not reach the recording's
// private folder, and nobody may notice that there is one.
//
// needs: root
// run: start
// expect: keep allocations=>=1000
// counter: off

#include "known.h"

int main(int argc, char **argv) {
  (void)argc;
  keep(1000, 40);
  if (is(argv, "again")) {
    tell("user", getuid());
    return 3;
  }
  pid_t pid = fork();
  if (pid == 0) {
    MUST(setgid(65534) == 0 && setuid(65534) == 0);
    execl("/proc/self/exe", argv[0], "again", (char *)NULL);
    _exit(1);
  }
  int status;
  MUST(waitpid(pid, &status, 0) == pid);
  tell_end(status);
  return 0;
}
