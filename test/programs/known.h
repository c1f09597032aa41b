// SPDX-License-Identifier: Apache-2.0
// What the torture programs share: calls whose number is known, out of the
// optimiser's reach, and output that allocates nothing.
//
// The comment at the head of each program is read by test/torture.py:
//
//     // build: FLAGS...                     beside -O1 -g -fno-builtin -pthread
//     // run: VARIANT [n=N] [long=N] [exit=N]   argv is VARIANT N; exit -n is signal n
//     // expect [VARIANT]: WHO key=VALUE...  WHO is a function that allocates, or totals,
//                                           calls, recorder, processes; VALUE may use n and >=
//     // stack: INNERMOST ... OUTER         the frames of that site's stack; ... is any number
//     // needs: root | proc | ...           skipped, with the reason, where it is missing
//     // counter: off                       the independent counter would be in the way
//     // stderr: ignored

#pragma once

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPAQUE __attribute__((noipa, unused))

// n blocks of `size` that are never freed.
OPAQUE static void keep(long n, size_t size) {
  for (long i = 0; i < n; ++i) {
    volatile char *p = (volatile char *)malloc(size);
    if (p && size) p[0] = 1;
  }
}

// n blocks of `size`, each freed before the next one: all temporary.
OPAQUE static void churn(long n, size_t size) {
  for (long i = 0; i < n; ++i) {
    volatile char *p = (volatile char *)malloc(size);
    if (p && size) p[0] = 1;
    free((void *)p);
  }
}

OPAQUE static void say(const char *text) {
  if (write(1, text, strlen(text)) < 0) _exit(99);
}

// "what value\n", without stdio.
OPAQUE static void tell(const char *what, long value) {
  char line[128], digits[24];
  size_t length = strlen(what), count = 0;
  memcpy(line, what, length);
  line[length++] = ' ';
  unsigned long rest = value < 0 ? 0UL - (unsigned long)value : (unsigned long)value;
  if (value < 0) line[length++] = '-';
  do digits[count++] = (char)('0' + rest % 10);
  while (rest /= 10);
  while (count) line[length++] = digits[--count];
  line[length++] = '\n';
  if (write(1, line, length) < 0) _exit(99);
}

// Says what went wrong and gives up; for what must hold natively too.
#define MUST(condition)                                           \
  do {                                                            \
    if (!(condition)) say("FAILED: " #condition "\n"), _exit(98); \
  } while (0)

// The variant asked for, and the number after it.
OPAQUE static int is(char **argv, const char *variant) {
  return argv[1] && strcmp(argv[1], variant) == 0;
}
OPAQUE static long number(char **argv, long otherwise) {
  return argv[1] && argv[2] ? atol(argv[2]) : otherwise;
}

// How a child ended, printed as "code 3" or "signal 9".
OPAQUE static void tell_end(int status) {
  if (WIFSIGNALED(status))
    tell("signal", WTERMSIG(status));
  else
    tell("code", WEXITSTATUS(status));
}
