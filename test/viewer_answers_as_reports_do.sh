#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the page is told is what reports say, number by number: flame graphs, functions, sites, files,
# modules, types, threads, phases and sizes, of any metric, range and filter; leaks, lifetimes and who frees whose blocks.
. "$(dirname "$0")/here.sh"

agree() { # TRACE QUESTION...
  python3 "$root/test/viewer.py" "$malloscope" "$@" || fail "$1"
}

record threads.mscope "$programs/handover" 20000 >/dev/null || fail "exit $?"
agree threads.mscope "" "metric=allocated from=10% to=60%" "metric=live to=33.3%" \
  "metric=allocated thread=handover" "metric=peak min_size=64" "metric=allocated max_size=100" \
  "metric=overhead" "metric=overhead from=20% to=70% min_size=20 max_size=500" "metric=leaked from=20% to=70%" \
  "metric=lifetime from=10% to=60% thread=handover" "metric=temporary from=15% to=85% max_size=50"
record phases.mscope "$programs/phased" 5000 >/dev/null || fail "exit $?"
agree phases.mscope "metric=peak" "metric=allocated phase=event" "metric=live phase=^load$" "metric=allocated phase=first from=10% to=90%" \
  "metric=allocated phase=others thread=phased min_size=64" "metric=calls phase=nowhere" "metric=lifetime phase=event" \
  "metric=lifetime phase=event from=20% min_size=100" "metric=overhead phase=load to=80%" "metric=leaked phase=event from=10%"
record python.mscope python3 -c 'import json; x = [json.loads("[1, {\"a\": [2.5]}]") for _ in range(3000)]' ||
  fail "exit $?"
agree python.mscope "metric=peak" "metric=allocated where='json or dict -Parser'" \
  "metric=live where='not /^_?Py/'" "metric=allocated hide=Eval" "metric=allocated hide=." "metric=peak under=PyImport" \
  "metric=peak module=libc" "metric=temporary from=50%" "metric=live from=20% to=60% min_size=64 max_size=255" "metric=peak from=12.5% to=77.7%" \
  "metric=lifetime" "metric=peak to=12ms" "metric=lifetime from=12.5% to=60% min_size=100" "metric=overhead where=json from=20%" \
  "metric=peak from=20% to=80% min_size=100 max_size=1000 where='not dict'" "metric=leaked from=30% to=90% max_size=77"
"$malloscope" run --quiet --sample 2K -o sampled.mscope -- python3 -c 'import json; x = [json.loads("[1, {\"a\": [2.5]}]") for _ in range(3000)]' ||
  fail "exit $?"
agree sampled.mscope "metric=peak" "metric=allocated from=10% to=60%" "metric=live to=33.3%" "metric=temporary from=50%" "metric=lifetime" \
  "metric=allocated min_size=64" "metric=calls where=Py" "metric=overhead from=10% to=90%" "metric=leaked from=30% min_size=100" \
  "metric=peak from=20% to=80% min_size=100"
"$malloscope" run --quiet --cpu -o cpu.mscope -- python3 -c 'import json, threading
def work():
    for _ in range(60): json.loads(json.dumps(list(range(9000))))
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()' || fail "exit $?"
agree cpu.mscope "metric=cpu" "metric=cpu from=10% to=60%" "metric=cpu where='json or dict -Parser' hide=Eval" \
  "metric=cpu module=libc thread=python from=20%"
"$malloscope" run --quiet --cpu -o busy.mscope -- "$programs/busy" works >/dev/null || fail "exit $?"
agree busy.mscope "metric=cpu" "metric=cpu process=$(ask busy.mscope 'processes[-1]["pid"]')" "metric=cpu from=50%"
# They leave much behind, some of them a while before they end, while others sleep and do not.
record children.mscope sh -c 'perl -e "@a = map { {n => \$_} } 1..2000; select undef, undef, undef, 0.3"; sleep 0.2; git --version
  perl -e "@a = (1..1000); select undef, undef, undef, 0.1"' >/dev/null ||
  fail "exit $?"
pid=$(ask children.mscope 'processes[-1]["pid"]')
agree children.mscope "metric=peak" "metric=peak process=$pid" "metric=live process=$pid to=90%" \
  "metric=live from=20% to=80%" "metric=allocated from=50%" "metric=overhead process=$pid from=20%" "metric=leaked from=20% to=80%" \
  "metric=lifetime process=$pid min_size=50" "metric=peak process=$pid min_size=50 max_size=300 to=90%"
# Programs that are replaced by others while some go on: what they had is gone at one moment, wherever one looks.
record execs.mscope sh -c 'for i in 1 2 3 4 5 6 7 8; do perl -e "@a = map { {n => \$_} } 1..9000; exec q(perl), q(-e), q(@b = (1..5000))" & done; wait' ||
  fail "exit $?"
agree execs.mscope "metric=peak" "metric=live to=60%" "metric=allocated from=20% to=80%"

# Of thousands of leaking stacks the page gets the heaviest, and of the others the sums of each site.
echo '#include <regex>
#include <map>
int main() { std::map<int, std::regex> m; return static_cast<int>(m.size()); }' >many.cc
record many.mscope g++ -O1 -c many.cc || fail "exit $?"
"$malloscope" leaks many.mscope --json >leaks.json || fail "exit $?"
python3 - "$root/test" "$malloscope" <<'P' || fail "leaks by site"
import collections, json, sys
sys.path.insert(0, sys.argv[1])
import viewer
wanted = collections.Counter()
for leak in json.load(open("leaks.json"))["leaks"]:
    site = (leak["function"], leak["line"])
    wanted[site, "bytes"] += leak["bytes"]
    wanted[site, "blocks"] += leak["blocks"]
    wanted[site, "stacks"] += 1
with viewer.Page(sys.argv[2], "many.mscope") as page:
    tables = {t["key"]: t for t in page.json("api/answer/leaks")["tables"]}
found = collections.Counter()
for name in ("leaks", "rest"):
    places = {c["key"]: i for i, c in enumerate(tables[name]["columns"])}
    for row in tables[name]["rows"]:
        frame = row["cells"][places["frame"]]
        site = (frame["full"] or frame["name"], frame["line"] or None)
        found[site, "bytes"] += row["cells"][places["bytes"]]
        found[site, "blocks"] += row["cells"][places["blocks"]]
        found[site, "stacks"] += row["cells"][places["stacks"]] if name == "rest" else 1
assert tables["leaks"]["left_out"] > 1000, "all fit into one table"
viewer.same("leaks by site", dict(found), dict(wanted))
P
