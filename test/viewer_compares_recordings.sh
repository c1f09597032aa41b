#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `view AFTER --base BEFORE` tells what changed as `diff` does, site by site, although the program was edited,
# rebuilt and called differently in between; what is gone can still be looked at. A file of `html --base` shows the same.
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
"$malloscope" html after.mscope --base before.mscope -o report.html 2>said || fail "html: exit $?: $(cat said)"
[ ! -s said ] || fail "something was left out: $(cat said)"
if [ -d "$root/test/browser/node_modules" ]; then
  MALLOSCOPE=$malloscope node "$root/test/browser/report_compares.mjs" before.mscope after.mscope "$work/report.html" || fail "see above"
fi
# Where there is less room, less of the comparison; and it is said.
most=$(($("$malloscope" html after.mscope -o plain.html; stat -c %s plain.html) + 1000))
"$malloscope" html after.mscope --base before.mscope -o small.html --max-size $most 2>said || fail "exit $?: $(cat said)"
[ "$(stat -c %s small.html)" -le $most ] || fail "small.html is $(stat -c %s small.html) bytes"
grep -q "comparison with before.mscope" said || fail "nothing was said of the comparison: $(cat said)"
"$malloscope" html after.mscope --base before.mscope -o before.mscope --force 2>said
same "a file over the base" $? 2
"$malloscope" view after.mscope --base nothing.mscope --no-open 2>said
same "no such base" $? 2
echo no trace >text
"$malloscope" view after.mscope --base text --no-open 2>said
same "a base that is no trace" $? 3
