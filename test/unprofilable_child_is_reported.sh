#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A child that cannot be recorded runs on, and info names it.
. "$(dirname "$0")/here.sh"

record t.mscope sh -c '"$0" 2; "$0"_static 3; echo $?' "$programs/hello" >out 2>err
same stdout "$(tr '\n' ' ' <out)" "hello hello 3 "
says t.mscope 'site("keep", "allocations")' 1000
"$malloscope" info t.mscope >info || fail "info exits with $?"
grep -q hello_static info || fail "info does not name it: $(cat info)"
