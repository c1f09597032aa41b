// SPDX-License-Identifier: Apache-2.0
// vfork and posix_spawn share the parent's memory: its account goes on as if
// nothing had happened, and the programs started are recorded too (F5).
//
// run: exec
// run: allocates
// run: spawn
// run: system
// run: popen
// run: failing_exec
// expect: keep allocations=2000 allocated_bytes=80000
// expect allocates: in_vfork_child allocations=100 allocated_bytes=2400
// expect exec: processes count=2
// expect allocates: processes count=1
// expect spawn: processes count=2
// expect system: processes count=>=2
// expect failing_exec: processes count=1

#include <spawn.h>
#include <stdio.h>

#include "known.h"

extern char **environ;

OPAQUE static void in_vfork_child(void) {
  for (int i = 0; i < 100; ++i) {
    volatile char *p = malloc(24);
    p[0] = 1;
  }
}

int main(int argc, char **argv) {
  (void)argc;
  char *echo[] = {"echo", "from the child", NULL};
  int status = -1;
  keep(1000, 40);
  if (is(argv, "spawn")) {
    pid_t pid;
    MUST(posix_spawnp(&pid, "echo", NULL, NULL, echo, environ) == 0);
    MUST(waitpid(pid, &status, 0) == pid);
  } else if (is(argv, "system")) {
    status = system("echo from the child; exit 3");
  } else if (is(argv, "popen")) {
    FILE *pipe = popen("echo from the child", "r");
    char line[64];
    MUST(pipe && fgets(line, sizeof line, pipe));
    say(line);
    status = pclose(pipe);
  } else {
    pid_t pid = vfork();
    if (pid == 0) {
      if (is(argv, "exec")) execvp("echo", echo);
      if (is(argv, "failing_exec")) execvp("/no/such/program", echo);
      if (is(argv, "allocates")) in_vfork_child();
      _exit(9);
    }
    MUST(waitpid(pid, &status, 0) == pid);
  }
  tell_end(status);
  keep(1000, 40);
  return 0;
}
