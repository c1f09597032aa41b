#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The target has the descriptors it would have alone, and no more.
. "$(dirname "$0")/here.sh"

ls -l /proc/self/fd | wc -l >native
record t.mscope ls -l /proc/self/fd | wc -l >recorded
same descriptors "$(cat recorded)" "$(cat native)"
record u.mscope "$programs/fds" numbers >out
same numbers "$(cat out)" "$("$programs/fds" numbers)"
