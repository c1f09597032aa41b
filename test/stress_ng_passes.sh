#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# stress-ng's own checks pass under the recorder.
. "$(dirname "$0")/here.sh"

command -v stress-ng >/dev/null || skip "no stress-ng"
for stressor in "--fork 1 --fork-ops 200" "--vfork 1 --vfork-ops 200" \
  "--pthread 1 --pthread-ops 100 --pthread-max 64" \
  "--sigsegv 1 --sigsegv-ops 200" "--clone 1 --clone-ops 100" "--dynlib 1 --dynlib-ops 50"; do
  timeout 50 "$malloscope" run --quiet --force -o t.mscope -- stress-ng -q $stressor >out 2>&1 ||
    fail "$stressor: exit $? $(cat out)"
done
