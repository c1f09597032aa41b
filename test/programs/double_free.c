// SPDX-License-Identifier: Apache-2.0
// Frees a block twice, another that realloc has moved away, and an address inside a third.
// The allocator behind it, slow_malloc.c, lets it.
//
// run: -

#include "known.h"

OPAQUE static char *make_session(void) { return malloc(100); }
OPAQUE static void close_session(char *session) { free(session); }
OPAQUE static void destroy_session(char *session) { free(session); }
OPAQUE static void free_moved(char *old) { free(old); }
OPAQUE static void free_inside(char *block) { free(block + 16); }
OPAQUE static char *grow(char *block) { return realloc(block, 100000); }

int main(void) {
  char *session = make_session();
  close_session(session);
  destroy_session(session);

  char *old = make_session();
  char *moved = grow(old);
  MUST(moved != old);
  free_moved(old);

  free_inside(moved);
  free(moved);
  return 0;
}
