#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every number on the viewer's page, in Chromium, is the one that reports have, in every view; and no view
# has an error or asks anybody but its own server.
. "$(dirname "$0")/here.sh"
[ -d "$root/test/browser/node_modules" ] || skip "npm ci --prefix test/browser was not run"
export MALLOSCOPE=$malloscope

record leaky.mscope "$programs/leaky" leaks 40 >/dev/null || fail "exit $?"
record threads.mscope "$programs/handover" 5000 >/dev/null || fail "exit $?"
record children.mscope sh -c '/usr/bin/python3 -c "import json; x = [json.loads(\"[1, {}]\") for _ in range(500)]"
  perl -e "@a = map { {n => \$_} } 1..2000"; sqlite3 :memory: "create table t(x); insert into t values(1);"' ||
  fail "exit $?"
"$malloscope" run --quiet --sample 1K -o sampled.mscope -- /usr/bin/python3 -c 'import json, email; x = [json.loads("[1, {}]") for _ in range(9000)]' ||
  fail "exit $?"
"$malloscope" run --quiet --cpu -o cpu.mscope -- /usr/bin/python3 -c 'import json; x = [json.loads(json.dumps(list(range(99)))) for _ in range(9000)]' ||
  fail "exit $?"
record demo.mscope "$(dirname "$malloscope")/malloscope-demo" >/dev/null || fail "exit $?"
# More functions, sites and leaks than a page has room for.
printf '#include <map>\n#include <string>\nint main() { return static_cast<int>(std::map<std::string, int>().size()); }\n' >hello.cc
record clang.mscope clang++-19 -O1 -c hello.cc || fail "exit $?"
node "$root/test/browser/viewer_numbers.mjs" leaky.mscope threads.mscope children.mscope sampled.mscope cpu.mscope demo.mscope clang.mscope ||
  fail "see above"
