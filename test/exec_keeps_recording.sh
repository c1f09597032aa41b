#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each exec'd image is told apart, with its own command line.
. "$(dirname "$0")/here.sh"

record t.mscope env -i "$programs/hello" 4 >out
same "exit code" $? 4
same stdout "$(cat out)" hello
says t.mscope 'len(processes)' 2
says t.mscope 'len({p["pid"] for p in processes})' 1
says t.mscope 'site("keep", "allocations")' 1000
case $(ask t.mscope 'processes[1]["command"]') in *hello*4*) ;; *) fail "command line" ;; esac
