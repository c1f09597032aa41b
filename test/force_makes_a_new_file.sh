#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --force puts a new file in the place of the old one: who has that open goes on reading it.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/hello" >/dev/null || fail "exit $?"
cp t.mscope before
exec 5<t.mscope
record t.mscope "$programs/ends" exit >/dev/null
cmp before /dev/fd/5 || fail "the old trace was changed under its reader"
says before 'site("keep", "allocations")' 1000
says t.mscope 'site("keep", "allocations")' 100000
