// SPDX-License-Identifier: Apache-2.0
// Waits for what the terminal sends: each line read and each signal is said.
//
// run: -

#include "known.h"

static volatile int interrupts;
static void on_interrupt(int unused) { (void)unused, ++interrupts, say("interrupted\n"); }
static void on_continue(int unused) { (void)unused, say("continued\n"); }

int main(int argc, char **argv) {
  (void)argc;
  keep(1000, 40);
  if (!is(argv, "default")) {
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
  }
  struct sigaction action = {.sa_handler = on_continue, .sa_flags = SA_RESTART};
  sigaction(SIGCONT, &action, NULL);
  tell("foreground", tcgetpgrp(0) == getpgrp());
  say("ready\n");
  char line[256];
  for (;;) {
    ssize_t n = read(0, line, sizeof line - 1);
    if (n == 0) break;
    if (n < 0) {
      if (errno == EINTR && interrupts >= 2) break;
      continue;
    }
    line[n] = 0;
    say("read "), say(line);
    if (strncmp(line, "quit", 4) == 0) break;
  }
  keep(1000, 40);
  return 7;
}
