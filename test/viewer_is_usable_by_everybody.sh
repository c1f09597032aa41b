#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The viewer's page passes axe's audit in every view, light and dark, and everything on it can be done with
# the keyboard alone, with the focus always to be seen.
. "$(dirname "$0")/here.sh"
[ -d "$root/test/browser/node_modules" ] || skip "npm ci --prefix test/browser was not run"
export MALLOSCOPE=$malloscope

record t.mscope sh -c '"$0"/handover 5; "$0"/leaky leaks 40; /usr/bin/python3 -c "import json"' "$programs" \
  >/dev/null || fail "exit $?"
node "$root/test/browser/viewer_audit.mjs" t.mscope || fail "see above"
