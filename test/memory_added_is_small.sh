#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the recorder maps in the target: at most 64 MiB at the start, 16 KiB for a live thread that
# does little, 128 bytes for a distinct stack.
. "$(dirname "$0")/here.sh"

cat >memory.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_barrier_t all_there, all_seen;

__attribute__((noipa)) static void leaf(void) {
  void *volatile p = malloc(8);
  free(p);
}
__attribute__((noipa)) static void zero(unsigned path, int left);
__attribute__((noipa)) static void one(unsigned path, int left) {
  if (!left) return leaf();
  if (path & 1) { one(path >> 1, left - 1); __asm__(""); } else { zero(path >> 1, left - 1); __asm__(""); }
}
__attribute__((noipa)) static void zero(unsigned path, int left) {
  if (!left) return leaf();
  if (path & 1) { one(path >> 1, left - 1); __asm__(""); } else { zero(path >> 1, left - 1); __asm__(""); }
}
static void *little(void *unused) {
  for (int i = 0; i < 400; ++i) leaf();  // 800 events.
  pthread_barrier_wait(&all_there);
  pthread_barrier_wait(&all_seen);
  return unused;
}
static void say_mapped(void) {
  char line[256];
  FILE *status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status))
    if (!strncmp(line, "VmSize:", 7)) printf("%ld\n", atol(line + 7));
}
int main(int argc, char **argv) {
  int threads = atoi(argv[1]);
  long stacks = atol(argv[2]);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  pthread_barrier_init(&all_there, NULL, threads + 1);
  pthread_barrier_init(&all_seen, NULL, threads + 1);
  for (int i = 0; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &small, little, NULL)) return 1;
  }
  if (threads) pthread_barrier_wait(&all_there);
  for (long i = 0; i < stacks; ++i) zero((unsigned)i, 18);
  say_mapped();
  if (threads) pthread_barrier_wait(&all_seen);
  return 0;
}
C
gcc -O1 -pthread memory.c -o memory || fail "no compiler"

# Threads get an arena of glibc's each by chance: one for all.
export MALLOC_ARENA_MAX=1
added() { # THREADS STACKS: KiB that the recording adds
  local native recorded
  native=$(./memory "$1" "$2") || fail "exit $?"
  recorded=$(record t.mscope ./memory "$1" "$2") || fail "exit $?"
  echo $((recorded - native))
}
start=$(added 0 0)
threads=$(($(added 1000 0) - start))
stacks=$(($(added 0 200000) - start))
echo "at the start $start KiB, 1000 threads $threads KiB, 200,000 stacks $stacks KiB"
[ "$start" -le 65536 ] || fail "$start KiB at the start"
[ "$threads" -le 16000 ] || fail "$threads KiB for 1000 threads"
[ "$stacks" -le $((200000 * 128 / 1024)) ] || fail "$stacks KiB for 200,000 stacks"
same stacks "$(ask t.mscope 'r["recorder"]["stacks"]')" 200003
