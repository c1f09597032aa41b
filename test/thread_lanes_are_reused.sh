#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Threads that come and go leave no memory behind: 5,000 in turn need as much as 8.
. "$(dirname "$0")/here.sh"

peak() { ask $1 'r["rss"]["peak_bytes"] // 1024'; }
record few.mscope "$programs/thread_churn" churn 8 >/dev/null || fail "exit $?"
record many.mscope "$programs/thread_churn" churn 5000 >/dev/null || fail "exit $?"
says many.mscope 'r["recorder"]["threads"]' 5001
says many.mscope 'r["recorder"]["lost"]' 0
added=$(($(peak many.mscope) - $(peak few.mscope)))
[ $added -le 16384 ] || fail "$added KiB more for 5,000 threads in turn"
