#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --quiet adds not a byte to either stream.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/hello" >out 2>err || fail "exit $?"
same stdout "$(cat out)" hello
same stderr "$(cat err)" ""
