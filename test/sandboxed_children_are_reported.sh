#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program started from inside a sandbox is not recorded, since joining might kill it; info says so.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/seccomp_exec" spawned >out || fail "exit $?"
says t.mscope 'r["recorder"]["not_followed"]' 1
says t.mscope '[n for n in r["notes"] if "/proc/self/exe" in n and "sandbox" in n] != []' True
"$malloscope" info t.mscope >info || fail "info exits with $?"
grep -q "not recorded.*inside a sandbox" info || fail "info: $(cat info)"
record t.mscope "$programs/seccomp_exec" forked >out || fail "exit $?"
says t.mscope 'r["recorder"]["not_followed"]' 1
says t.mscope '[n for n in r["notes"] if "1 forked child" in n and "sandbox" in n] != []' True
# Nothing is said where nothing was lost.
record t.mscope "$programs/seccomp" filter >out || fail "exit $?"
says t.mscope '(r["recorder"]["not_followed"], r["notes"])' "(0, [])"
