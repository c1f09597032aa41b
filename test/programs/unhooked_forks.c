// SPDX-License-Identifier: Apache-2.0
// Forks that no hook sees: inside libc, and by the system call. The parent frees
// all it had before the child looks at it, and an earlier fork was a plain one, so
// when the child was made can only be guessed; what it frees is still known to be
// inherited (F4).
//
// run: daemon n=500
// run: pty n=500
// run: without_handlers n=500
// run: raw_fork n=500
// run: raw_clone_while_threads_churn n=500
// run: pty_while_threads_allocate n=20 long=100
// expect: totals unmatched_frees=0
// expect daemon: totals inherited_frees=n
// expect pty: totals inherited_frees=n
// expect without_handlers: totals inherited_frees=n
// expect raw_fork: totals inherited_frees=n
// expect raw_clone_while_threads_churn: totals inherited_frees=n
// expect pty_while_threads_allocate: totals inherited_frees=1000*n
// expect pty_while_threads_allocate: processes count=n+2

#include <pthread.h>
#include <pty.h>
#include <stdatomic.h>

#include "known.h"

enum { kBlocks = 500 };
static void *blocks[kBlocks];

static int terminal;
static pid_t fork_into_terminal(void) { return forkpty(&terminal, NULL, NULL, NULL); }

// In the parent the child's pid, in the child 0.
static pid_t make_child(char **argv) {
  if (is(argv, "pty")) return fork_into_terminal();
  if (is(argv, "without_handlers")) return _Fork();
  if (is(argv, "raw_fork")) return (pid_t)syscall(SYS_fork);
  return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

// Newest first, by threads that go on with it.
struct Node {
  struct Node *next;
};
static _Atomic(struct Node *) newest;
static atomic_long nodes;
static atomic_int stop;

static void *churn_on(void *unused) {
  while (!stop) churn(100, 64);
  return unused;
}

static void *push(void *unused) {
  while (!stop) {
    if (nodes > 100000) {
      usleep(100);
      continue;
    }
    struct Node *node = malloc(sizeof *node + 24);
    node->next = newest;
    while (!atomic_compare_exchange_weak(&newest, &node->next, node)) {
    }
    ++nodes;
    churn(1, 40);
  }
  return unused;
}

static void free_nodes(long count) {
  struct Node *node = atomic_exchange(&newest, NULL);
  for (struct Node *next; node && count-- != 0; node = next) next = node->next, free(node);
}

static void fork_while_threads_allocate(long n) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, push, NULL);
  for (long i = 0; i < n; ++i) {
    while (nodes < 1100) usleep(100);  // A few may be counted that are gone.
    pid_t pid = fork_into_terminal();
    if (pid == 0) free_nodes(1000), _exit(0);
    MUST(pid > 0);
    free_nodes(-1);
    nodes = 0;
    int status;
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    close(terminal);
  }
  stop = 1;
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
  (void)argc;
  pid_t plain = fork();
  if (plain == 0) _exit(0);
  MUST(waitpid(plain, NULL, 0) == plain);
  if (is(argv, "pty_while_threads_allocate")) {
    fork_while_threads_allocate(number(argv, 20));
    say("done\n");
    return 0;
  }
  for (int i = 0; i < kBlocks; ++i) blocks[i] = malloc(64);
  if (is(argv, "daemon")) {
    MUST(daemon(1, 1) == 0);
    for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
    return 0;
  }
  pthread_t threads[2];
  int churning = is(argv, "raw_clone_while_threads_churn") ? 2 : 0;
  for (int i = 0; i < churning; ++i) pthread_create(&threads[i], NULL, churn_on, NULL);
  if (churning) usleep(20000);
  int freed[2];
  MUST(pipe(freed) == 0);
  pid_t pid = make_child(argv);
  MUST(pid >= 0);
  if (pid == 0) {
    char byte;
    MUST(read(freed[0], &byte, 1) == 1);
    for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
    _exit(7);
  }
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  MUST(write(freed[1], "!", 1) == 1);
  int status;
  MUST(waitpid(pid, &status, 0) == pid);
  tell_end(status);
  stop = 1;
  for (int i = 0; i < churning; ++i) pthread_join(threads[i], NULL);
  return 0;
}
