#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target for so many seconds, starting from its corpus. A find is
# kept as fuzz/finds/<target>-*; once mended it goes to the corpus.
set -eu
seconds=$1
cd "$(dirname "$0")"
mkdir -p finds
for target in events trace_file eh_frame elf names index workload; do
  echo "== $target"
  work=$(mktemp -d)
  ../build/fuzz/bin/fuzz_$target -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 \
    -artifact_prefix="finds/$target-" -print_final_stats=0 -verbosity=0 "$work" "corpus/$target"
  rm -rf "$work"
done
