// SPDX-License-Identifier: Apache-2.0
// Names its phases and moments (include/malloscope.h): inside each other, again and again, of one
// thread, from a signal handler that interrupts whatever the recorder is at, in a child, and out of
// order.
//
// run: n=2000 long=200000
// expect: totals order_violations=0 unmatched_frees=0
// expect: keep live_blocks=n/10 live_bytes=48*n/10
// expect: churn allocations=n+3*(n/2) live_blocks=0

#include <sys/time.h>

#include <atomic>
#include <thread>

#include "../../include/malloscope.h"
#include "known.h"

static std::atomic<long> interrupts;
static void interrupt(int) {
  malloscope_mark("alarm");
  malloscope_thread_phase_begin("in a handler");
  malloscope_thread_phase_end("in a handler");
  ++interrupts;
}

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 2000;
  struct sigaction action = {};
  action.sa_handler = interrupt;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  itimerval often = {{0, 300}, {0, 300}};
  setitimer(ITIMER_REAL, &often, nullptr);

  malloscope_mark("begin");
  malloscope_phase_begin("load");
  for (long i = 0; i < n / 10; ++i) {
    malloscope::Phase event("event");
    keep(1, 48);
    churn(10, 32);
  }
  malloscope_phase_end("load");
  malloscope_phase_end("load");    // Once too often.
  malloscope_phase_begin("open");  // And this one never ends.

  std::thread threads[3];
  for (int t = 0; t < 3; ++t)
    threads[t] = std::thread([t, n] {
      malloscope::ThreadPhase phase(t == 0 ? "first" : "others");
      churn(n / 2, 64);
    });
  for (std::thread &thread : threads) thread.join();

  if (pid_t child = fork(); child == 0) {
    setitimer(ITIMER_REAL, &(often = {}), nullptr);
    malloscope::Phase phase("child");
    free(malloc(100));
    _exit(0);
  } else {
    int status;
    while (waitpid(child, &status, 0) < 0) {
    }
  }
  setitimer(ITIMER_REAL, &(often = {}), nullptr);
  malloscope_mark("end");
  say("done\n");
}
