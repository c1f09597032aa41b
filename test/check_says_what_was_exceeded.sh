#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `check` fails if a limit is exceeded, by a byte if need be, looks at all of them, and names
# who is responsible: on the screen, in JSON, JUnit and SARIF.
. "$(dirname "$0")/here.sh"

record t.mscope "$build/bin/malloscope-demo" >/dev/null
for pair in peak:peak_bytes live:live_bytes allocations:allocations allocated:allocated_bytes \
  temporary:temporary; do
  value=$(ask t.mscope "t['${pair#*:}']")
  limit=--max-${pair%:*}
  # What is suppressed is not counted as live.
  [ $limit = --max-live ] && limit="--no-default-suppressions $limit"
  "$malloscope" check t.mscope $limit "$value" >out 2>err || fail "$limit $value: exit $?"
  [ -s err ] && fail "$limit $value says $(cat err)"
  "$malloscope" check t.mscope $limit $((value - 1)) >out 2>err
  same "exit code of $limit $value - 1" $? 1
  grep -q "1 of 1 limit exceeded" out || fail "$limit: $(cat out)"
  grep -q "${limit##*--} $((value - 1)) is exceeded: .* more than" err || fail "$limit: $(cat err)"
done

# Nothing live can be asked of a C++ program, although libstdc++ keeps a pool.
cat >clean.cc <<'C'
#include <string>
int main(int argc, char**) { return std::string(100 + argc, 'x').size() == 3; }
C
g++ -g clean.cc -o clean || fail "g++"
record clean.mscope ./clean
says clean.mscope 't["live_bytes"] > 70000' True
"$malloscope" check clean.mscope --max-live 0 >out 2>err || fail "--max-live 0: $(cat out err)"
grep -q '0 B live at the end, within 0 B; .* suppressed' out || fail "$(cat out)"
"$malloscope" check clean.mscope --max-live 0 --no-default-suppressions >out 2>err
same "exit code without suppressions" $? 1
"$malloscope" check t.mscope --max-live 0 --json >check.json 2>/dev/null
"$malloscope" leaks t.mscope --json >leaks.json
python3 - <<'P' || fail "max-live is not what leaks finds"
import json
limit, leaks = json.load(open("check.json"))["limits"][0], json.load(open("leaks.json"))["totals"]
assert limit["value"] == leaks["bytes"] > 0, (limit, leaks)
P

cat >ci.budget <<'B'
# What the nightly job may use.
max-peak 1M
max-allocations 1e9

no-leaks-within cache::Sessions::open
B
"$malloscope" check t.mscope --budget ci.budget --max-temporary 10 --no-leaks-within ^nobody$ \
  --junit check.xml --sarif check.sarif >out 2>err
same "exit code" $? 1
grep -q '^3 of 5 limits exceeded' out || fail "$(cat out)"
grep -q 'EXCEEDED  max-peak 1M .*MiB at the peak, .*MiB more than 1.0 MiB' out || fail "$(cat out)"
grep -A 2 '^no-leaks-within cache::Sessions::open, most of it by' out |
  grep -q 'cache::Sessions::open.*demo.cc:' || fail "$(cat out)"
same "complaints" "$(wc -l <err)" 4
# On one screen nothing is said twice.
python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$malloscope" check t.mscope --max-peak 1M >out
same "lines about the peak" "$(grep -c 'more than 1.0 MiB' out)" 1
"$malloscope" check t.mscope --no-leaks-within cache:: >out 2>err
grep -q 'no-leaks-within cache:: is exceeded: ' err || fail "$(cat err)"
"$malloscope" check t.mscope --budget ci.budget --json >check.json 2>/dev/null
same "exit code with --json" $? 1
python3 - <<'P' || exit 1
import json, xml.etree.ElementTree as xml
suite = xml.parse("check.xml").getroot().find("testsuite")
cases = {c.get("name"): c.find("failure") for c in suite.findall("testcase")}
assert (suite.get("tests"), suite.get("failures")) == ("5", "3"), suite.attrib
assert cases["max-allocations 1e9"] is None and cases["no-leaks-within ^nobody$"] is None
unproven = suite.findall("testcase/error")
assert suite.get("errors") == "1" == str(len(unproven)), suite.attrib
assert "no stack has a function that matches `^nobody$`" in unproven[0].get("message")
assert "more than" in cases["max-peak 1M"].get("message")
assert len(cases["max-peak 1M"].text.splitlines()) == 3, cases["max-peak 1M"].text

sarif = json.load(open("check.sarif"))
assert sarif["version"] == "2.1.0" and len(sarif["runs"]) == 1
run = sarif["runs"][0]
rules = [r["id"] for r in run["tool"]["driver"]["rules"]]
assert len(set(rules)) == len(rules) and run["results"]
for r in run["results"]:
    assert rules[r["ruleIndex"]] == r["ruleId"] and r["message"]["text"]
    assert r["level"] == ("warning" if "nobody" in r["message"]["text"] else "error"), r
    for l in r["locations"]:
        where = l.get("physicalLocation")
        assert not where or where["artifactLocation"]["uri"].startswith("file:///")
leak = [r for r in run["results"] if r["ruleId"] == "no-leaks-within" and r["locations"]]
place = leak[0]["locations"][0]["physicalLocation"]
assert place["artifactLocation"]["uri"].endswith("/demo/demo.cc")
assert place["region"]["startLine"] > 0

r = json.load(open("check.json"))
limits = {l["limit"]: l for l in r["limits"]}
assert r["totals"] == {"limits": 3, "exceeded": 2, "unproven": 0}, r["totals"]
peak = limits["max-peak 1M"]
assert peak["over"] == peak["value"] - 2**20 > 0 and peak["verdict"] == "EXCEEDED"
assert limits["max-allocations 1e9"]["verdict"] == "ok"
assert sum(x["limit"] == "max-peak 1M" for x in r["responsible"]) == 3
P

# code EXIT SENTENCE ARGUMENTS...
code() {
  local wanted=$1 sentence=$2; shift 2
  "$malloscope" check "$@" >out 2>err
  same "exit code of check $*" $? "$wanted"
  grep -q -- "$sentence" err || fail "$*: says '$(cat err)', not '$sentence'"
}
code 2 "nothing to check" t.mscope
code 2 "--max-peak 'lots' is not a size" t.mscope --max-peak lots
code 2 "--max-allocations '1.5' is not a number" t.mscope --max-allocations 1.5
code 2 "not a regular expression" t.mscope --no-leaks-within '['
echo 'max-speed 3' >bad.budget
code 2 "bad.budget:1: max-speed is no limit; there are max-peak" t.mscope --budget bad.budget
code 2 "cannot be read" t.mscope --budget none.budget
code 3 "none.mscope" none.mscope --max-peak 1
code 3 "cannot be written" t.mscope --max-peak 1G --junit /nowhere/x.xml
head -c $(($(stat -c %s t.mscope) * 2 / 3)) t.mscope >cut.mscope
code 3 "no limit is exceeded, but cut.mscope is incomplete" cut.mscope --max-peak 100G
code 1 "max-peak 1 is exceeded:" cut.mscope --max-peak 1

# A name that no stack has is kept by nobody: it may be misspelt, or names are missing.
code 3 "no-leaks-within Sesions is not proven: no stack has a function that matches" \
  t.mscope --max-peak 1G --no-leaks-within Sesions
grep -q '^1 of 2 limits could not be proven' out || fail "$(cat out)"
cp clean renamed
record renamed.mscope ./renamed
"$malloscope" check renamed.mscope --no-leaks-within '^main$' --no-cache >out 2>err || fail "main: $(cat out err)"
strip -o renamed clean
code 3 "no-leaks-within ^main$ is not proven" renamed.mscope --no-leaks-within '^main$' --no-cache
mkdir old
cp clean old/renamed
"$malloscope" check renamed.mscope --no-leaks-within '^main$' --no-cache --debug-dir old >out 2>err ||
  fail "main, with the old file: $(cat out err)"

# What is read is never written over, by whatever name, nor one file over the other.
ln t.mscope linked.mscope
before=$(cat t.mscope ci.budget | sha256sum)
code 2 "--junit t.mscope would overwrite t.mscope" t.mscope --max-peak 1G --junit t.mscope
code 2 "--sarif linked.mscope would overwrite t.mscope" t.mscope --max-peak 1G --sarif linked.mscope
code 2 "would overwrite ci.budget" t.mscope --budget ci.budget --junit ./ci.budget
code 2 "--sarif ./both would overwrite both" t.mscope --max-peak 1G --junit both --sarif ./both
[ -e both ] && fail "a refused check wrote a file"
same "what was read" "$(cat t.mscope ci.budget | sha256sum)" "$before"
"$malloscope" check t.mscope --max-peak 1G --junit /dev/null --sarif /dev/null >out || fail "/dev/null: $?"
