// SPDX-License-Identifier: Apache-2.0
// Preloaded with every tool alike: puts the measured program, and nothing else,
// on a core of its own, and writes down what it used. A wrapper program could
// not do it: heaptrack takes LD_PRELOAD away from whatever it starts first.
//
// PIN_PROGRAM is the path of the executable, PIN_CORE the core or empty,
// PIN_RESULT the file for: seconds of CPU, KiB of peak RSS, seconds of wall time.

#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static struct timespec began;

static int measured(void) {
  char exe[PATH_MAX];
  const char *program = getenv("PIN_PROGRAM");
  ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  return program && n > 0 && (exe[n] = 0, strcmp(exe, program) == 0);
}

__attribute__((constructor)) static void pin(void) {
  const char *core = getenv("PIN_CORE");
  if (!measured()) return;
  clock_gettime(CLOCK_MONOTONIC, &began);
  if (!core || !*core) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(atoi(core), &set);
  sched_setaffinity(0, sizeof set, &set);
}

__attribute__((destructor)) static void result(void) {
  if (!began.tv_sec) return;
  struct rusage used;
  struct timespec now;
  getrusage(RUSAGE_SELF, &used);
  clock_gettime(CLOCK_MONOTONIC, &now);
  double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
               1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  double wall = (double)(now.tv_sec - began.tv_sec) + 1e-9 * (double)(now.tv_nsec - began.tv_nsec);
  char line[96];
  int n = snprintf(line, sizeof line, "%.6f %ld %.6f\n", cpu, used.ru_maxrss, wall);
  int fd = open(getenv("PIN_RESULT"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, line, (size_t)n) != n) _exit(95);
  close(fd);
}
