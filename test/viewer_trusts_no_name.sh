#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names of functions, files, libraries, threads, programs and traces are text on the viewer's page, whatever
# is in them: HTML, scripts, marks that turn the direction of writing, control characters.
. "$(dirname "$0")/here.sh"
[ -d "$root/test/browser/node_modules" ] || skip "npm ci --prefix test/browser was not run"
export MALLOSCOPE=$malloscope

cat >named.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
__attribute__((noinline)) void* image(void) { return calloc(1, 1000); }
__attribute__((noinline)) void* script(void) { return calloc(1, 2000); }
__attribute__((noinline)) void* turned(void) { return calloc(1, 3000); }
void* in_file(void);
static void* run(void* name) {
  prctl(PR_SET_NAME, name);
  void* volatile kept[] = {image(), script(), turned(), in_file()};
  (void)kept;
  free(script());
  return NULL;
}
int main(void) {
  const char* names[] = {"<img src=x id=t", "\"><svg/onload=", "\xe2\x80\xae" "evil\x1b[31m", "\xff\xfe&lt;b"};
  for (int i = 0; i < 4; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, run, (void*)names[i]);
    pthread_join(thread, NULL);
  }
}
C
cat >file.c <<'C'
#include <stdlib.h>
#line 7 "/tmp/<img src=x onerror=hacked=4>\"'/javascript:hacked=5.c"
__attribute__((noinline)) void* in_file(void) { void* volatile p = calloc(1, 4000); return p; }
C
image='<img src=x onerror=hacked1=1>'
script='</td><script>hacked2=1</script>'
library='lib<img src=x onerror=hacked3=1>.so'
program='"><img src=x onerror=hacked6=1> &amp; ${hacked}'
gcc -O1 -fno-builtin -fno-optimize-sibling-calls -c named.c -o plain.o &&
  gcc -O1 -g -fno-builtin -shared -fPIC file.c -o "$library" || fail "gcc"
objcopy --redefine-sym "image=$image" --redefine-sym "script=$script" \
  --redefine-sym $'turned=\xe2\x80\xaegnp.\xe2\x80\xac\x1b[31m\x01evil\xe2\x80\x8b' plain.o named.o || fail "objcopy"
gcc -pthread named.o "$library" -Wl,-rpath,"$work" -o "$program" || fail "ld"
record '<u>t&amp;.mscope' sh -c '"$0" "$@"; true' "./$program" '<script>hacked7=1</script>' $'\xe2\x80\xaearg\n\x1b]0;title\x07' || fail "exit $?"
node "$root/test/browser/viewer_names.mjs" '<u>t&amp;.mscope' "$image" "$script" \
  '<U+202E>gnp.<U+202C>␛[31m␁evil<U+200B>' in_file || fail "see above"
