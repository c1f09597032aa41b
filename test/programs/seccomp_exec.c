// SPDX-License-Identifier: Apache-2.0
// Programs started from inside a sandbox that kills who opens a socket, as the
// recorder does to join: they run, unrecorded. Where setting the filter failed there
// is no sandbox, and the child is recorded. A vfork child's sandbox is not its parent's (F8).
//
// run: in_place exit=5
// run: by_syscall exit=5
// run: forked
// run: spawned
// run: by_shell
// run: refused
// run: vforked
// run: vforked_exit
// expect in_place: keep allocations=1000
// expect by_syscall: keep allocations=1000
// expect forked: keep allocations=1000
// expect spawned: keep allocations=1000
// expect by_shell: keep allocations=1000
// expect refused: keep allocations=3000
// expect vforked: keep allocations=2000
// expect vforked_exit: keep allocations=2000
// expect in_place: processes count=1
// expect by_syscall: processes count=1
// expect forked: processes count=1
// expect spawned: processes count=1
// expect by_shell: processes count=1
// expect refused: processes count=4
// expect vforked: processes count=2
// expect vforked: recorder not_followed=1
// expect vforked_exit: processes count=2
// expect vforked_exit: recorder not_followed=0
// counter: off

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "known.h"

extern char **environ;

#define FORBID(call)                                         \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

// In a vfork child also who asks for its pid, as the recorder does before.
static int also_forbidden = SYS_socketpair;

static long set_filter(unsigned short instructions) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), FORBID(SYS_socket),
      FORBID(SYS_socketpair), FORBID(also_forbidden), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {instructions ? sizeof code / sizeof *code : 0, code};
  MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void spawn(char **child) {
  pid_t pid;
  int status;
  MUST(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, child, environ) == 0);
  MUST(waitpid(pid, &status, 0) == pid);
  tell_end(status);
}

int main(int argc, char **argv) {
  keep(1000, 40);
  if (argc > 2) {
    say("child\n");
    return 5;
  }
  char *child[] = {argv[0], argv[1], (char *)"child", NULL}, line[600];
  snprintf(line, sizeof line, "'%s' x child; exit $?", argv[0]);
  int refused = is(argv, "refused"), exits = is(argv, "vforked_exit");
  if (is(argv, "vforked") || exits) {
    also_forbidden = SYS_getpid;
    pid_t pid = vfork();
    if (pid == 0) {
      if (set_filter(1) != 0) _exit(8);
      free(malloc(100));
      if (!exits) execv("/proc/self/exe", child);
      _exit(9);
    }
    int status;
    MUST(waitpid(pid, &status, 0) == pid);
    tell_end(status);
    spawn(child);
    return 0;
  }
  tell("filter", set_filter(!refused));
  if (is(argv, "in_place")) execv("/proc/self/exe", child);
  if (is(argv, "by_syscall")) syscall(SYS_execve, "/proc/self/exe", child, environ);
  if (is(argv, "forked")) {
    pid_t pid = fork();
    if (pid == 0) execv("/proc/self/exe", child), _exit(9);
    int status;
    MUST(waitpid(pid, &status, 0) == pid);
    tell_end(status);
  }
  if (is(argv, "spawned") || refused) spawn(child);
  if (is(argv, "by_shell") || refused) tell_end(system(line));
  return 0;
}
