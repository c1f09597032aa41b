// SPDX-License-Identifier: Apache-2.0
// The process is as alone as it was: no thread, no child, no SIGCHLD, no changed
// signal mask, handler or limit of its own (F10, F11).
//
// needs: proc
// run: all
// expect: keep allocations=1000

#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "known.h"

static volatile int child_signals;
static void on_child(int unused) { (void)unused, ++child_signals; }

static int entries(const char *folder) {
  DIR *d = opendir(folder);
  int count = 0;
  while (d && readdir(d)) ++count;
  if (d) closedir(d);
  return count - 2;
}

int main(void) {
  signal(SIGCHLD, on_child);
  keep(1000, 40);
  tell("tasks", entries("/proc/self/task"));
  MUST(wait(NULL) == -1 && errno == ECHILD);
  MUST(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
  pid_t pid = fork();
  if (pid == 0) _exit(0);
  MUST(wait(NULL) == pid);
  MUST(wait(NULL) == -1 && errno == ECHILD);
  tell("SIGCHLD", child_signals);

  sigset_t mask;
  sigprocmask(SIG_BLOCK, NULL, &mask);
  for (int s = 1; s < 65; ++s) {
    struct sigaction action;
    if (sigismember(&mask, s) == 1) tell("blocked", s);
    if (sigaction(s, NULL, &action) == 0 && action.sa_handler != SIG_DFL && s != SIGCHLD)
      tell("handled", s);
  }
  sigset_t pending;
  sigpending(&pending);
  for (int s = 1; s < 65; ++s)
    if (sigismember(&pending, s) == 1) tell("pending", s);
  struct rlimit limit;
  for (int r = 0; r < RLIM_NLIMITS; ++r)
    if (getrlimit((__rlimit_resource_t)r, &limit) == 0) tell("limit", (long)limit.rlim_cur);
  tell("nice", getpriority(PRIO_PROCESS, 0));
  tell("scheduler", sched_getscheduler(0));
  tell("umask", umask(022));
  tell("unshare", unshare(CLONE_NEWUSER) == 0 ? 0 : errno);
  return 0;
}
