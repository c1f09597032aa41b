#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `leaks` names the function that asked (no std or allocator frames), counts exactly, lists what
# grows before what was made once, and says what it ignored and what it could not judge.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/leaky" leaks 40 >/dev/null
record deep.mscope "$programs/leaky" deep 40 >/dev/null
echo "leak:known_*pool" >known.supp

"$malloscope" leaks t.mscope --within Algorithm::sysExecute --suppressions known.supp \
  --no-default-suppressions >text || fail "exit $?"
head -1 text | grep -q '^48 leaks, 2 unique, in `Algorithm::sysExecute`; ignored 1 unique by 1 filter\.' ||
  fail "the summary is: $(head -1 text)"
# The first row is what the program leaked in every event.
sed -n 4p text | grep -q 'growing 10/10.*shop::make_hit  leaky.cc:' || fail "$(cat text)"
grep -q 'std::' text && fail "a frame of the standard library: $(cat text)"

"$malloscope" leaks t.mscope --json --suppressions known.supp --show-suppressed >leaks.json ||
  fail "exit $?"
python3 - <<'P' || exit 1
import json
r = json.load(open("leaks.json"))
t, leaks = r["totals"], r["leaks"]
by = {l["function"]: l for l in leaks}
def is_(what, got, wanted):
    assert got == wanted, f"{what}: {got!r}, should be {wanted!r}"
hit, cells, tables = (by[f"shop::{n}()"] for n in ("make_hit", "make_cells", "load_tables"))
is_("hits", (hit["blocks"], hit["bytes"], hit["recurrence"], hit["periods"]), (40, 960, "growing", 10))
is_("tables", (tables["blocks"], tables["bytes"], tables["recurrence"]), (1, 1000, "once"))
# The vector and its numbers are two stacks with one site, and look the same.
is_("cells", (cells["blocks"], cells["bytes"]), (8, 4 * (24 + 400)))
assert cells["recurrence"] != "once" and cells["file"].endswith("leaky.cc") and cells["line"] > 0
is_("stack", [f["function"] for f in hit["stack"]][:3],
    ["shop::make_hit()", "shop::Algorithm::sysExecute(int)", "main"])
for l in leaks:
    assert l["stack"][0]["function"] == l["function"] and {"file", "line", "module"} <= l.keys()
order = [l["recurrence"] for l in leaks]
is_("order", order, sorted(order, key=["growing", "repeated", "once"].index))
assert 0 < hit["first_ns"] < hit["last_ns"] <= r["trace"]["duration_ns"]
is_("sums", (t["blocks"], t["bytes"], t["unique"]),
    (sum(l["blocks"] for l in leaks), sum(l["bytes"] for l in leaks), len(leaks)))
# Ours, the program's own, and what is shipped, each by its line.
lines = {s["where"]: s for s in r["suppressions"]}
is_("ours", (lines["known.supp:1"]["blocks"], lines["known.supp:1"]["bytes"]), (40, 20000))
own = lines["__lsan_default_suppressions() of leaky:2"]
is_("its own", (own["unique"], own["bytes"], own["line"]), (1, 700, "leak:embedded_pool"))
assert any(w.startswith("libstdc++.supp:") for w in lines), lines
is_("ignored", (t["ignored_unique"], t["ignored_bytes"], t["ignored_by"]),
    (len(r["suppressed"]), sum(s["bytes"] for s in lines.values()), len(lines)))
P

# A stack too deep to be recorded whole may or may not be within; that is said.
"$malloscope" leaks deep.mscope --within ^main$ >text
grep -q '^1 more stack (1 block, 33 B) could not be judged' text || fail "$(cat text)"
"$malloscope" leaks deep.mscope --within shop::dive | grep -q '^1 leak, 1 unique, in `shop::dive`' ||
  fail "the deep one is not found by what is there of it"
