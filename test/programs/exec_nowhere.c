// SPDX-License-Identifier: Apache-2.0
// An exec with pointers that lead nowhere is the kernel's to refuse, not ours to
// follow; without an environment it is given none.
//
// run: pointers
// expect: keep allocations=1000

#include <fcntl.h>

#include "known.h"

extern char **environ;

int main(int argc, char **argv) {
  (void)argc;
  keep(1000, 40);
  const char *nowhere = (const char *)8, *missing = "/no/such/file";
  char **volatile no_list = (char **)8;
  tell("path", execve(nowhere, argv, environ)), tell("errno", errno);
  tell("environment", execve(missing, argv, no_list)), tell("errno", errno);
  tell("path of a syscall", syscall(SYS_execve, nowhere, argv, environ)), tell("errno", errno);
  tell("its environment", syscall(SYS_execve, "/bin/true", argv, no_list)), tell("errno", errno);
  tell("path at", execveat(AT_FDCWD, nowhere, argv, environ, 0)), tell("errno", errno);
  tell("missing", syscall(SYS_execve, missing, argv, NULL)), tell("errno", errno);
  return 0;
}
