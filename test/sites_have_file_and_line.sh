#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A site in a program built with -g has its function, file, line and module.
. "$(dirname "$0")/here.sh"

"$malloscope" run --quiet -o t.mscope -- "$programs/hello" >/dev/null || fail "exit $?"
where='[(s["file"] or "").split("/")[-1] + ":" + str(s["line"]) + " " + s["module"].split("/")[-1] for s in r["sites"] if s["function"].startswith("keep")]'
line=$(grep -n 'malloc(size)' "$root/test/programs/known.h" | head -1 | cut -d: -f1)
same "site of keep" "$(ask t.mscope "$where")" "['known.h:$line hello']"
same "its caller" "$(ask t.mscope '[f["function"] for s in r["sites"] if s["function"].startswith("keep") for f in s["stack"]][:2]')" "['keep', 'main']"
"$malloscope" run --quiet -o s.mscope -- "$programs/hello_stripped" >/dev/null || fail "exit $?"
same "a stripped program's frames" "$(ask s.mscope 'all(s["function"] for s in r["sites"])')" True
same "never the previous symbol" "$(ask s.mscope 'any("hello_stripped+0x" in s["function"] for s in r["sites"])')" True
