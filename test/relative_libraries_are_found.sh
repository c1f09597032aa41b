#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A library that is loaded by a relative path is known by where it is: its names are found from any
# folder, wherever the program worked when it was loaded.
. "$(dirname "$0")/here.sh"

mkdir plugins elsewhere
cat >plugin.c <<'C'
#include <stdlib.h>
void* NAME(int n) { return malloc(n); }
C
cat >app.c <<'C'
#include <dlfcn.h>
#include <unistd.h>
static void* visit(const char* path, const char* name) {
  void* library = dlopen(path, RTLD_NOW);
  if (!library) _exit(3);
  void* (*make)(int);
  *(void**)&make = dlsym(library, name);
  return make(1000);
}
int main(int argc, char** argv) {
  visit("./libhere.so", "make_here");
  visit("plugins/../plugins/libbelow.so", "make_below");
  if (chdir("plugins") != 0) return 4;
  visit("./libthere.so", "make_there");
  if (chdir("../elsewhere") != 0) return 4;
  if (argc > 1) usleep(500000);  // Somebody looks while it is at a third place.
  return 0;
}
C
for name in here below there; do
  folder=plugins
  [ $name = here ] && folder=.
  gcc -g -shared -fPIC -DNAME=make_$name plugin.c -o $folder/lib$name.so || fail "gcc"
done
gcc -g app.c -o app -ldl || fail "gcc"
paths() { "$malloscope" info "$1" --json | grep -o '"path": "[^"]*lib\(here\|below\|there\).so"' | cut -d'"' -f4 | sort | tr '\n' ' '; }

record long.mscope ./app long
record short.mscope ./app
cd / || fail "cd"
here=$(realpath "$work")
same "paths" "$(paths "$work/long.mscope")" "$here/libhere.so $here/plugins/libbelow.so $here/plugins/libthere.so "
for name in here below there; do
  same "names of lib$name.so" "$("$malloscope" report "$work/long.mscope" --by site --metric live --no-cache | grep -c "make_$name")" 1
done
"$malloscope" report "$work/short.mscope" --by site --metric live --no-cache >"$work/short" || fail "report exits with $?"
grep -q make_here "$work/short" || fail "a program that is gone already: $(cat "$work/short")"
rm "$work/libhere.so"
"$malloscope" info "$work/long.mscope" >"$work/info"
grep -q 'libhere.so *(gone since)' "$work/info" || fail "info does not mark what is gone"
exit 0
