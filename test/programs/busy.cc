// SPDX-License-Identifier: Apache-2.0
// Computes for stated times, and does with SIGPROF and with masks what programs do: nothing of it
// may be other than without samples of CPU time, which come by that signal.
//
// run: own
// run: waits
// run: resets
// run: vforks
// run: within
// run: small
// run: otherwise

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long thread_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static volatile double sink;

// Inlined, so that each of those below has a time of its own. What it took goes to `told`.
__attribute__((always_inline)) static inline void compute(int ms, volatile long long *told) {
  long long began = thread_ns(), now;
  do {
    double x = 1;
    for (int i = 0; i < 20000; ++i) x = x * 1.0000001 + i;
    sink = x;
    now = thread_ns();
  } while (now - began < ms * 1000000LL);
  *told = now - began;
}

static volatile long long of_heavy, of_light, of_worker, of_child, of_blocked, of_anything;
__attribute__((noinline)) static void heavy() { compute(600, &of_heavy); }
__attribute__((noinline)) static void light() { compute(200, &of_light); }
// Makes no call that a heap profiler sees.
__attribute__((noinline)) static void *worker(void *) {
  compute(400, &of_worker);
  return nullptr;
}
__attribute__((noinline)) static void childs_work() { compute(200, &of_child); }
__attribute__((noinline)) static void *blocked_work(void *) {
  compute(100, &of_blocked);
  return nullptr;
}

static long long rusage_ns(int who) {
  rusage u;
  getrusage(who, &u);
  return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000LL +
         (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL;
}

static void fail(const char *what) {
  printf("%s\n", what);
  exit(1);
}

static void in_thread(void *(*work)(void *)) {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, work, nullptr) || pthread_join(thread, nullptr))
    fail("no thread");
}

static int works() {
  heavy();
  light();
  in_thread(worker);
  pid_t child = fork();
  if (child == 0) {
    childs_work();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  printf("heavy %lld\nlight %lld\nworker %lld\ntotal %lld\n", of_heavy, of_light, of_worker,
         rusage_ns(RUSAGE_SELF) + rusage_ns(RUSAGE_CHILDREN));
  return 0;
}

static volatile int handled, code_seen;
static void on_signal(int) { handled = handled + 1; }
static void on_info(int, siginfo_t *info, void *) { code_seen = info->si_code; }

// A profiler of its own, as gprof is.
static int has_its_own() {
  struct sigaction action = {}, before = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaddset(&action.sa_mask, SIGUSR1);
  if (sigaction(SIGPROF, &action, &before) || before.sa_handler != SIG_DFL) fail("no default");
  itimerval ten_ms = {{0, 10000}, {0, 10000}}, never = {};
  setitimer(ITIMER_PROF, &ten_ms, nullptr);
  while (handled < 5) compute(1, &of_anything);
  setitimer(ITIMER_PROF, &never, nullptr);
  if (handled > 50) fail("signals that are not its own");
  if (sigaction(SIGPROF, nullptr, &before) || before.sa_handler != on_signal ||
      !sigismember(&before.sa_mask, SIGUSR1))
    fail("another handler");
  if (signal(SIGPROF, SIG_IGN) != on_signal) fail("another handler before");
  raise(SIGPROF);
  action = {};
  action.sa_sigaction = on_info;
  action.sa_flags = SA_SIGINFO | SA_RESETHAND;
  if (sigaction(SIGPROF, &action, &before) || before.sa_handler != SIG_IGN) fail("not ignored");
  raise(SIGPROF);
  if (code_seen != SI_TKILL) fail("another sender");
  if (sigaction(SIGPROF, nullptr, &before) || before.sa_handler != SIG_DFL) fail("not reset");
  compute(100, &of_anything);
  printf("its own\n");
  return 0;
}

static int dies() {
  itimerval ten_ms = {{0, 10000}, {0, 10000}};
  setitimer(ITIMER_PROF, &ten_ms, nullptr);
  for (;;) compute(1, &of_anything);
}

// A thread that waits for any signal gets none that is not for it.
static int waits_for_any() {
  sigset_t all, before;
  sigfillset(&all);
  compute(50, &of_anything);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (sigismember(&before, SIGPROF)) fail("it was blocked");
  in_thread(blocked_work);
  compute(100, &of_anything);
  timespec patience = {0, 50000000};
  if (int got = sigtimedwait(&all, nullptr, &patience); got != -1 || errno != EAGAIN) {
    printf("signal %d\n", got);
    return 1;
  }
  sigset_t pending;
  if (sigpending(&pending) || sigismember(&pending, SIGPROF)) fail("one is pending");
  sigprocmask(SIG_SETMASK, &before, nullptr);
  compute(100, &of_anything);
  printf("none\n");
  return 0;
}

// As daemons do.
static int resets_all() {
  compute(50, &of_anything);
  for (int i = 1; i < NSIG; ++i) signal(i, SIG_DFL);
  compute(200, &of_anything);
  struct sigaction action = {};
  for (int i = 1; i < NSIG; ++i) sigaction(i, &action, nullptr);
  compute(200, &of_anything);
  printf("alive\n");
  return 0;
}

// A child of vfork has signals of its own, but its parent's memory.
static pid_t start_child() {
  pid_t child = vfork();
  if (child != 0) return child;
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  signal(SIGPROF, SIG_IGN);
  execl("/bin/true", "true", nullptr);
  _exit(1);
}
static int vforks() {
  for (int i = 0; i < 20; ++i) {
    compute(10, &of_anything);
    pid_t child = start_child();
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) fail("a child failed");
  }
  struct sigaction now;
  if (sigaction(SIGPROF, nullptr, &now) || now.sa_handler != SIG_DFL) fail("a child's action");
  printf("children\n");
  return 0;
}

static long long process_ns() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// The CPU clock goes on through an exec; what was told before must not be told again.
static int execs(char **argv) {
  if (argv[2]) {
    childs_work();
    printf("total %lld\n", process_ns());
    return 0;
  }
  light();
  char again[] = "again";
  char *words[] = {argv[0], argv[1], again, nullptr};
  execv("/proc/self/exe", words);
  return 1;
}

static void *never_ends(void *) {
  for (;;) compute(1, &of_anything);
}

// A thread that blocks all signals and is still there at the end.
static int leaves_a_thread() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, never_ends, nullptr)) fail("no thread");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  heavy();
  printf("total %lld\n", process_ns());
  fflush(stdout);
  return 0;
}

static volatile long long of_masked;
__attribute__((noinline)) static void masked() {
  long long began = thread_ns();
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  of_masked = of_masked + thread_ns() - began;
}
__attribute__((noinline)) static void unmasked() { compute(1, &of_anything); }

// Who unblocks signals has no more time than he uses.
static int masks_often() {
  for (int i = 0; i < 600; ++i) {
    unmasked();
    masked();
  }
  printf("masked %lld\ntotal %lld\n", of_masked, process_ns());
  return 0;
}

static void on_alarm(int) {
  sigset_t prof, before;
  sigemptyset(&prof);
  sigaddset(&prof, SIGPROF);
  sigprocmask(SIG_BLOCK, &prof, &before);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

// A handler changes the mask while the thread does.
static int masks_within() {
  signal(SIGALRM, on_alarm);
  itimerval often = {{0, 200}, {0, 200}}, never = {};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (long long end = thread_ns() + 300000000; thread_ns() < end;) on_alarm(0);
  setitimer(ITIMER_REAL, &never, nullptr);
  sigset_t pending;
  if (sigpending(&pending) || sigismember(&pending, SIGPROF)) fail("one is pending");
  printf("within\n");
  return 0;
}

// It computes on its own small stack for signals, below which there is something.
static char guarded[16384];
static void on_small_stack(int) {
  volatile char local[1024];
  local[0] = 1;
  compute(60, &of_anything);
  local[1] = local[0];
}
static int has_a_small_stack() {
  memset(guarded, 7, sizeof guarded);
  stack_t stack = {};
  stack.ss_sp = guarded + 8192;
  stack.ss_size = 8192;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = on_small_stack;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR2, &action, nullptr);
  for (int i = 0; i < 4; ++i) raise(SIGUSR2);
  for (int i = 0; i < 8192; ++i)
    if (guarded[i] != 7) fail("something was overwritten");
  printf("small\n");
  return 0;
}

// All ways that libc has to say it.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static int resets_otherwise() {
  sigset(SIGPROF, SIG_DFL);
  compute(30, &of_anything);
  sysv_signal(SIGPROF, SIG_DFL);
  compute(30, &of_anything);
  sysv_signal(SIGPROF, on_signal);
  compute(60, &of_anything);
  if (handled != 0) fail("signals that are not its own");
  raise(SIGPROF);
  if (handled != 1) fail("none of its own");
  sigignore(SIGPROF);
  raise(SIGPROF);
  compute(30, &of_anything);
  printf("otherwise\n");
  return 0;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "works")) return works();
  if (!strcmp(what, "own")) return has_its_own();
  if (!strcmp(what, "dies")) return dies();
  if (!strcmp(what, "waits")) return waits_for_any();
  if (!strcmp(what, "resets")) return resets_all();
  if (!strcmp(what, "vforks")) return vforks();
  if (!strcmp(what, "execs")) return execs(argv);
  if (!strcmp(what, "leaves")) return leaves_a_thread();
  if (!strcmp(what, "masks")) return masks_often();
  if (!strcmp(what, "within")) return masks_within();
  if (!strcmp(what, "small")) return has_a_small_stack();
  if (!strcmp(what, "otherwise")) return resets_otherwise();
  return 2;
}
