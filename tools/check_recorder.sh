#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the recorder takes from libc and what it puts in its place are two lists in
# the tree; this compares them with the library. With --update it writes them.
set -eu
here=$(dirname "$(readlink -f "$0")")/../src/record
exports=$(nm -D --defined-only "$1" | awk '{print $3}' | sort)
imports=$(nm -D --undefined-only "$1" | awk '{sub(/@.*/, "", $2); print $2}' | sort -u)
if [ "${2:-}" = --update ]; then
  printf '%s\n' "$exports" >"$here/exports.txt"
  printf '%s\n' "$imports" >"$here/imports.txt"
  exit
fi
diff "$here/exports.txt" <(printf '%s\n' "$exports") || { echo "exports.txt differs (see above)"; exit 1; }
diff "$here/imports.txt" <(printf '%s\n' "$imports") || { echo "imports.txt differs (see above)"; exit 1; }
