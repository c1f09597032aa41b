#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the recorder takes from libc and what it puts in its place are two lists in
# the tree; this compares them with the library. With --update it writes them. The detailed
# recorder puts a few more in place, which are a list of their own.
set -eu
here=$(dirname "$(readlink -f "$0")")/../src/record
library=$1
exports() { nm -D --defined-only "$library" | awk '{print $3}' | LC_ALL=C sort; }
imports() { nm -D --undefined-only "$library" | awk '{sub(/@.*/, "", $2); print $2}' | LC_ALL=C sort -u; }
case $library in
  *detailed*)
    more=$here/exports_detailed.txt
    if [ "${2:-}" = --update ]; then LC_ALL=C comm -13 "$here/exports.txt" <(exports) >"$more"; exit; fi
    ;;
  *)
    more=/dev/null
    if [ "${2:-}" = --update ]; then exports >"$here/exports.txt"; imports >"$here/imports.txt"; exit; fi
    ;;
esac
diff <(LC_ALL=C sort "$here/exports.txt" "$more") <(exports) || { echo "exports.txt differs (see above)"; exit 1; }
diff "$here/imports.txt" <(imports) || { echo "imports.txt differs (see above)"; exit 1; }
