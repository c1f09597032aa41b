#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Results and errno of every entry point are libc's own.
. "$(dirname "$0")/here.sh"

"$malloscope" run --quiet -o t.mscope -- "$programs/api" >out || fail "$(cat out)"
same stdout "$(cat out)" "api ok"
same calls "$(ask t.mscope '[r["calls"][c] for c in "malloc calloc realloc reallocarray free".split()]')" \
  "[5, 2, 4, 2, 11]"
