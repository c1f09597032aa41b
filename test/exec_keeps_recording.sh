#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each exec'd image is told apart, with its own command line.
. "$(dirname "$0")/here.sh"

"$malloscope" run --quiet -o t.mscope -- env -i "$programs/hello" 4 >out
same "exit code" $? 4
same stdout "$(cat out)" hello
same images "$(ask t.mscope 'len(r["processes"])')" 2
same "one process" "$(ask t.mscope 'len({p["pid"] for p in r["processes"]})')" 1
same allocations "$(ask t.mscope 'site("keep", "allocations")')" 1000
case $(ask t.mscope 'r["processes"][1]["command"]') in *hello*4*) ;; *) fail "command line" ;; esac
