// SPDX-License-Identifier: Apache-2.0
// Four threads that live all the time and take turns at having 32 MiB: never two of them at once,
// though nothing but the time tells them to.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *turn(void *number) {
  void *small = malloc(100);
  usleep(50000 * (1 + (size_t)number));
  void *large = malloc(32 << 20);
  usleep(10000);
  free(large);
  usleep(50000 * (4 - (size_t)number));
  free(small);
  return large;
}

int main(void) {
  pthread_t threads[4];
  for (size_t i = 0; i < 4; ++i)
    if (pthread_create(&threads[i], NULL, turn, (void *)i) != 0) return 1;
  for (size_t i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
}
