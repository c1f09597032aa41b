#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# speedscope's own page, in Chromium, shows an exported profile with the report's sums.
. "$(dirname "$0")/here.sh"
[ -d "$root/test/browser/node_modules" ] || skip "npm ci --prefix test/browser was not run"

record demo.mscope "$build/bin/malloscope-demo" >/dev/null
"$malloscope" export demo.mscope --format speedscope -o demo.json || fail "export: $?"
node "$root/test/browser/speedscope.mjs" demo.json >shown.json || fail "speedscope: $?"
"$malloscope" report demo.mscope --json >report.json || fail "report: $?"
python3 - <<'P' || exit 1
import json
shown, totals = json.load(open("shown.json")), json.load(open("report.json"))["totals"]
assert not shown["errors"], shown["errors"]
assert shown["title"].startswith("demo.mscope"), shown["title"]
profiles = {row[1]: row[2] for row in shown["rows"] if row[0].isdigit()}
assert profiles["allocations"] == f"{totals['allocations']:,}", (profiles, totals)
assert profiles["temporary allocations"] == f"{totals['temporary']:,}", (profiles, totals)
assert profiles["bytes at the peak"] == f"{totals['peak_bytes'] / 2**20:.2f} MB", (profiles, totals)
top = next(row for row in shown["rows"] if not row[0].isdigit())
assert top[2].startswith("journal::Journal::append"), top
P
