#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every format of export is read by the tool that it is for, and its sums are the report's.
. "$(dirname "$0")/here.sh"

for tool in go callgrind_annotate ms_print node sqlite3 jq; do
  command -v $tool >/dev/null || skip "$tool is not installed"
done

sums_agree() { # TRACE [OPTIONS...]: of every format, by the same part of the recording.
  local trace=$1
  shift
  "$malloscope" report "$trace" --json "$@" >report.json || fail "report $*: exit $?"
  for format in folded speedscope pprof callgrind dhat massif perfetto igprof sqlite csv json; do
    "$malloscope" export "$trace" --format $format "$@" -o "out.$format" --force ||
      fail "$format of $trace $*: exit $?"
    /usr/bin/python3 -B "$root/test/exports.py" $format "out.$format" >sums.json ||
      fail "$format of $trace $* is not read"
    /usr/bin/python3 - "$format of $trace $*" <<'P' || exit 1
import json, sys
want, got = json.load(open("report.json"))["totals"], json.load(open("sums.json"))
wrong = {k: (v, want[k]) for k, v in got.items() if v != want[k]}
sys.exit(f"FAILED: {sys.argv[1]}: (got, wanted) {wrong}" if wrong or not got else 0)
P
  done
}

record reallocs.mscope "$programs/reallocs" >/dev/null || fail "exit $?"
record fork.mscope "$programs/fork" plain >/dev/null || fail "exit $?"
record perl.mscope perl -e 'my %h = map { $_ => "x" x ($_ % 300) } 1..3000; undef %h; system "true"'
sums_agree reallocs.mscope
sums_agree fork.mscope
sums_agree perl.mscope
# Wide enough that something is allocated in it, however long the child takes.
sums_agree perl.mscope --from 2% --to 98%

# A process that lives long enough has its resident size in it, too.
record sleep.mscope perl -e 'select undef, undef, undef, 0.4' || fail "exit $?"
"$malloscope" export sleep.mscope --format perfetto -o - | grep -q '"resident bytes"' ||
  fail "no resident bytes"
