// SPDX-License-Identifier: Apache-2.0
// In an empty root, and as another user, there are no files to find: threads
// and forked children are recorded all the same (F31).
//
// needs: root
// run: empty_root
// run: other_user
// run: other_namespaces
// expect: keep allocations=3000 allocated_bytes=120000
// expect: processes count=2
// counter: off

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>

#include "known.h"

static void *allocate(void *unused) {
  keep(1000, 40);
  return unused;
}

int main(int argc, char **argv) {
  (void)argc;
  if (is(argv, "empty_root")) {
    char root[] = "/tmp/emptyXXXXXX";
    MUST(mkdtemp(root) && chroot(root) == 0 && chdir("/") == 0);
  } else if (is(argv, "other_user")) {
    MUST(setgid(65534) == 0 && setuid(65534) == 0);
  } else {
    MUST(unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWPID) == 0);
  }
  keep(1000, 40);
  int status;
  pid_t pid = fork();
  if (pid == 0) keep(1000, 40), _exit(0);
  MUST(waitpid(pid, &status, 0) == pid);
  tell_end(status);
  if (!is(argv, "other_namespaces")) {
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, allocate, NULL) == 0);
    pthread_join(thread, NULL);
  } else {
    keep(1000, 40);
  }
  return 0;
}
