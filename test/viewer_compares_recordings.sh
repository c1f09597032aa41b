#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `view AFTER --base BEFORE` tells what changed as `diff` does, site by site, although the program was edited,
# rebuilt and called differently in between; what is gone can still be looked at.
. "$(dirname "$0")/here.sh"

cat >before.cc <<'C'
#include <cstdlib>
#include <vector>
struct Table {
  std::vector<void*> rows;
  __attribute__((noinline)) void fill(int n) { for (int i = 0; i < n; ++i) rows.push_back(malloc(64)); }
  __attribute__((noinline)) void drop() { for (void* row : rows) free(row); rows.clear(); }
};
__attribute__((noinline)) void* settings() { return malloc(1000); }
__attribute__((noinline)) void* mended() { return malloc(900); }
void* volatile kept;
__attribute__((noinline)) void* retired() { return malloc(5000); }
int main() {
  Table t;
  for (int i = 0; i < 5; ++i) { t.fill(100); t.drop(); }
  t.fill(300);
  kept = mended();
  return settings() == retired();
}
C
# Lines have moved, a function is gone, another is new, one allocates more, one leaks no more.
sed '1i // Edited.\n\n#include <string>' before.cc | sed 's/retired/added/g; s/malloc(5000)/malloc(7000)/; s/fill(300)/fill(450)/; s/kept = mended();/free(mended());/' >after.cc
g++ -O1 -g before.cc -o old_program && g++ -O1 -g after.cc -o new_program || fail "g++"
record before.mscope ./old_program || fail "exit $?"
record after.mscope ./new_program || fail "exit $?"
python3 "$root/test/viewer_compares.py" "$malloscope" before.mscope after.mscope || fail "see above"
"$malloscope" view after.mscope --base nothing.mscope --no-open 2>said
same "no such base" $? 2
echo no trace >text
"$malloscope" view after.mscope --base text --no-open 2>said
same "a base that is no trace" $? 3
