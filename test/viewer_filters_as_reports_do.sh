#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A range brushed on the viewer's timeline, an instant clicked, a filter typed, a function focused or hidden
# shows what a report with the same question says; back, forward and a link show it again.
. "$(dirname "$0")/here.sh"
[ -d "$root/test/browser/node_modules" ] || skip "npm ci --prefix test/browser was not run"
export MALLOSCOPE=$malloscope

record t.mscope sh -c '"$0"/handover 500; "$0"/phased 3000; "$0"/leaky leaks 40; /usr/bin/python3 -c "import json"' "$programs" \
  >/dev/null || fail "exit $?"
node "$root/test/browser/viewer_use.mjs" t.mscope || fail "see above"
