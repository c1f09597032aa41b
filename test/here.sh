# SPDX-License-Identifier: Apache-2.0
# Sourced by each promise: where things are, a folder to work in, and words to judge with.

set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${MSCOPE_BUILD:-$root/build/release}
malloscope=${MALLOSCOPE:-$build/bin/malloscope}
programs=$build/test/programs
recorder=$(find "$(dirname "$malloscope")/.." -name libmalloscope.so -print -quit)

[ -x "$malloscope" ] || { echo "no $malloscope: build it first"; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/mscope-promise.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

fail() { echo "FAILED: $*"; exit 1; }
skip() { echo "skipped: $*"; exit 77; }

# record TRACE PROGRAM ARGUMENTS...
record() { local trace=$1; shift; "$malloscope" run --quiet --force -o "$trace" -- "$@"; }

# same WHAT GOT WANTED
same() { [ "$2" = "$3" ] || fail "$1: '$2', should be '$3'"; }

# ask TRACE EXPRESSION: a Python expression over the JSON report r.
# t, calls, processes and sites are parts of it; site(NAME, KEY) is the sum over
# the sites in the function of that name.
ask() {
  "$malloscope" report "$1" --json >"$work/ask.json" || fail "report of $1 exits with $?"
  python3 - "$work/ask.json" <<ASK
import json, re, sys
r = json.load(open(sys.argv[1]))
t, calls, processes, sites = r["totals"], r["calls"], r["processes"], r["sites"]
def site(name, key):
    return sum(s[key] for s in sites if re.match(name + r"\b", s["function"]))
print(($2))
ASK
}

# says TRACE EXPRESSION VALUE: as ask, and judges.
says() { same "$2" "$(ask "$1" "$2")" "$3"; }

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
  local left=$(($1 * 20)); shift
  until "$@" 2>/dev/null; do
    [ $((left -= 1)) -gt 0 ] || return 1
    sleep 0.05
  done
}

# The recorded program's own process: a child of the launcher, by its name.
program_of() { # LAUNCHER NAME
  for p in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
    [ "$(readlink /proc/"$p"/exe)" = "$(realpath "$2")" ] && echo "$p" && return
  done
  return 1
}

# The collector of a recording, which no tool names: the other process of
# malloscope's that has the trace open.
collector_of() { # TRACE
  find /proc/[0-9]*/fd -lname "$(realpath "$1")" 2>/dev/null | cut -d/ -f3 | grep -m 1 .
}
