#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A sentence and an exit code for what cannot be replayed; parts of a trace; other people's files.
. "$(dirname "$0")/here.sh"

refused() { # CODE WORDS ARGUMENTS...
  local code=$1 words=$2; shift 2
  "$malloscope" "$@" >out 2>said </dev/null
  same "exit code of $*" $? "$code"
  grep -q -- "$words" said || fail "$*: $(cat said)"
  same "lines of $*" "$(wc -l <said)" 1
}

record a.mscope "$programs/passing" 3 20000
"$malloscope" workload a.mscope -o a.mwork >out || fail "workload exits with $?"
cp a.mscope before
refused 2 "exists already" workload a.mscope -o a.mwork
refused 2 "is the trace itself" workload a.mscope -o a.mscope --force
refused 2 "before is not a workload" workload a.mscope -o before --force
"$malloscope" workload a.mscope -o a.mwork --force >out || fail "workload --force exits with $?"
refused 2 "is the trace itself" replay a.mscope -o a.mscope --force
cmp -s a.mscope before || fail "the trace was changed"
# Results of the last time are replaced where they usually are, and nothing else is.
"$malloscope" replay a.mscope >out || fail "exit $?"
"$malloscope" replay a.mscope --touch all >out || fail "exit $?"
grep -q '"touch": "all"' a.mscope.replay.json || fail "the first results were kept"
refused 2 "exists already" replay a.mscope -o a.mscope.replay.json
for mine in "" "my notes" '{"malloscope": 1, "runs": []}'; do
  echo "$mine" >a.mscope.replay.json
  refused 2 "holds no results of a replay; --force" replay a.mscope
  same "what is there" "$(cat a.mscope.replay.json)" "$mine"
done
"$malloscope" replay a.mscope --force >out || fail "exit $?"
grep -q '"format": "malloscope-replay"' a.mscope.replay.json || fail "--force kept it"
rm a.mscope.replay.json && mkdir a.mscope.replay.json
refused 2 "is not a file" replay a.mscope
rmdir a.mscope.replay.json
refused 3 "not" replay before.not
refused 3 "not" replay "$programs/hello"
refused 2 "not asap" replay a.mscope --pace slowly
refused 2 "not a time" replay a.mscope --trim-every often
refused 2 "not a time" replay a.mscope --patience 0s
refused 2 "a.mscope does not tell what the program read or wrote .* use none, first or all" \
  replay a.mscope --touch recorded
refused 2 "is after" replay a.mscope --from 90% --to 10%
refused 2 "is not in" replay a.mscope --process 1
refused 2 "called nothing .* from 1000s on until 2000s" replay a.mscope --from 1000s --to 2000s
refused 2 "called nothing .* from 1000s on" replay a.mscope --from 1000s
refused 2 "called nothing .* until 0s" workload a.mscope --to 0s -o none.mwork
[ ! -e none.mwork ] || fail "a workload of nothing was written"
for n in 0 -1 1001 99999999999999999999; do refused 2 "not in range" replay a.mscope --repeat $n; done
for n in x0 x-1 xNaN xinf x1e-9 x1e9 x 10; do refused 2 "not asap" replay a.mscope --pace $n; done
refused 2 "empty word" replay a.mscope --allocators ,
refused 2 "are the same" replay a.mscope --allocators glibc,glibc
refused 2 "are the same" replay a.mscope --tunables glibc.malloc.arena_max=1,1
refused 2 "NAME=VALUE" replay a.mscope --tunables fast
refused 2 "glibc has no" replay a.mscope --tunables glibc.malloc.arenas=2
refused 2 "not a number" replay a.mscope --tunables glibc.malloc.arena_max=two
refused 2 "no setting of glibc" replay a.mscope --tunables MALLOC_CONF=thp:always
refused 2 "not for --tunables" replay a.mscope --tunables LD_PRELOAD=x.so
refused 3 "cannot be written: No such" replay a.mscope -o nowhere/r.json
refused 3 "cannot be written: No such" workload a.mscope -o nowhere/a.mwork
refused 2 "is not a file" replay a.mscope -o /dev/full --force
refused 2 "workload already" replay a.mwork --from 10%
record nothing.mscope /bin/true
"$malloscope" info nothing.mscope --json | grep -q '"allocations": 0' &&
  refused 2 "no calls" replay nothing.mscope
for size in 8 100 3000; do
  head -c $size a.mwork >cut.mwork
  refused 3 "cut or damaged\|not a" replay cut.mwork
done
sed '1s/MWORK03/MWORK01/' a.mwork >other.mwork
refused 3 "another version" replay other.mwork
record b.mscope "$programs/passing" 2 400000
head -c $(($(stat -c %s b.mscope) * 2 / 3)) b.mscope >cut.mscope
"$malloscope" replay cut.mscope >out 2>said || fail "a cut trace: exit $? $(cat said)"
grep -q "not complete" said || fail "a cut trace is not said: $(cat said)"

head -c 2000 b.mscope >cut.mscope
refused 2 "no calls .* not complete" replay cut.mscope

# Limits: of files, of descriptors, of address space; and a full disk behind standard output.
(ulimit -f 2 && refused 3 "File too large" workload b.mscope -o large.mwork) || exit 1
[ ! -e large.mwork ] || fail "half a workload was left"
for n in 6 7 8 9 10; do # How many are taken already depends on who runs this.
  (ulimit -n $n && "$malloscope" replay a.mscope >out 2>said) ||
    grep -q "Too many open files" said || fail "$n descriptors: $(cat said)"
done
"$malloscope" replay a.mscope >/dev/full 2>said; same "exit code, full" $? 3
grep -q "stdout could not be written" said || fail "full: $(cat said)"

# Odd calls: sizes of nothing and of more than there is, alignments of all kinds.
record odd.mscope "$programs/odd_calls" || fail "odd_calls exits with $?"
"$malloscope" replay odd.mscope --verify --allocators glibc,jemalloc,tcmalloc,mimalloc >out ||
  fail "odd calls: $(cat out)"
grep -q "calls had failed when recorded" out || fail "failed calls are not said: $(cat out)"
# Where realloc(block, 0) returned a block, others return none, and have freed the old one.
LD_PRELOAD=$programs/libbroken.so record zero.mscope "$programs/odd_calls" || fail "odd_calls exits with $?"
BROKEN=nothing "$malloscope" replay zero.mscope --verify --allocators glibc,"$programs/libbroken.so" \
  >out 2>said || fail "no block for 0 bytes: $(cat said)"
"$malloscope" replay zero.mscope >out 2>said || fail "realloc to 0 bytes: $(cat said)"
grep -q "found no memory" out && fail "0 bytes are called a failure: $(cat out)"
(ulimit -v 150000 && "$malloscope" replay odd.mscope --touch none >out; same "exit code" $? 0) || exit 1
grep -q "found no memory, though" out || fail "a call that found none is not said: $(cat out)"
(ulimit -v 150000 && "$malloscope" replay odd.mscope --verify >out 2>said; same "exit code" $? 1) || exit 1
grep -q "1 of [0-9]* calls found no memory" said || fail "verify without memory: $(cat said)"

# The parts are the whole: calls of two windows add up, and the second begins with the heap of then.
calls() { "$malloscope" workload "$@" --json | /usr/bin/python3 -c '
import json, sys
t = json.load(sys.stdin)["totals"]; print(t["calls"], t["setup_calls"], t["end_ideal_bytes"])'; }
read -r whole _ end < <(calls a.mscope)
read -r first _ live < <(calls a.mscope --to 50%)
read -r second setup end_too < <(calls a.mscope --from 50%)
same "calls of both halves" $((first + second)) "$whole"
same "live at the end" "$end_too" "$end"
[ "$setup" -gt 0 ] && [ "$live" -gt 0 ] || fail "no heap at the half"
"$malloscope" replay a.mscope --from 50% --verify >out || fail "the second half: $(cat out)"

# Many calls share the moment of a window's end, and are in one of the two.
for at in 45% 50% 55% 60% peak; do
  read -r first _ < <(calls a.mscope --to $at)
  read -r second _ < <(calls a.mscope --from $at)
  same "calls before and after $at" $((first + second)) "$whole"
done

# The peak is that of the process which is replayed, not of one that needs more.
PYTHONMALLOC=malloc record two.mscope /usr/bin/python3 -c '
import os
big = bytearray(200 << 20); del big
if os.fork() == 0:
    x = [str(i) for i in range(100000)]
    y = bytearray(50 << 20); del y
    x = [str(i) for i in range(100000)]
    os._exit(0)
os.wait()'
read -r whole _ < <(calls two.mscope 2>said)
read -r first _ < <(calls two.mscope --to peak 2>said)
[ "$first" -gt $((whole / 10)) ] && [ "$first" -lt "$whole" ] || fail "to the peak, $first of $whole calls"

# A forked child begins with its parent's heap.
record f.mscope "$programs/fork" >out
child=$("$malloscope" info f.mscope --json | /usr/bin/python3 -c '
import json, sys
print([p["pid"] for p in json.load(sys.stdin)["processes"] if p["origin"] == "forked"][0])')
"$malloscope" replay f.mscope --process "$child" --verify >out || fail "a child: $(cat out)"
# Which process is said before the work, and in the first line of the answer.
"$malloscope" replay f.mscope >out 2>said || fail "exit $?"
grep -q "of [0-9] process images, image [0-9], process [0-9]* (fork), has most calls" said || fail "said: $(cat said)"
head -1 out | grep -q "of process [0-9]* (fork)" || fail "which process? $(head -1 out)"
"$malloscope" replay f.mscope --process "$child" >out 2>said || fail "exit $?"
head -1 out | grep -q "of process $child (fork)" || fail "which process? $(head -1 out)"
same "said of a process that was asked for" "$(cat said)" ""

# An exec keeps the pid: the busiest image, or the one that is named.
record e.mscope env -i "$programs/hello" 4 >out
pid=$("$malloscope" info e.mscope --json | /usr/bin/python3 -c '
import json, sys
print(json.load(sys.stdin)["processes"][0]["pid"])')
for chosen in "$pid:hello" image:1:env image:2:hello; do
  "$malloscope" replay e.mscope --process "${chosen%:*}" >out 2>said || fail "exit $?: $(cat said)"
  head -1 out | grep -q "of process $pid (${chosen##*:})" || fail "${chosen%:*} is $(head -1 out)"
  case $chosen in
    image*) same "said of an image that was asked for" "$(cat said)" "" ;;
    *) grep -q "image 2, process $pid (hello), has most calls .*; --process image:N" said || fail "said: $(cat said)" ;;
  esac
done
refused 2 "image 3 is not in" replay e.mscope --process image:3

# Sizes made coarse are never smaller; times neither tell much.
"$malloscope" workload a.mscope --anonymize -o b.mwork >out || fail "exit $?"
"$malloscope" workload b.mwork --dump | awk '$2 == "malloc" && $4 % 16 { exit 1 }' ||
  fail "sizes are not coarse"
"$malloscope" replay b.mwork --verify >out || fail "anonymized: $(cat out)"
strings -n 6 a.mwork | grep -q passing && fail "the workload names the program"

# At the recorded pace it takes as long as the program took.
record s.mscope /usr/bin/python3 -c 'import time; time.sleep(1.2); x = [str(i) for i in range(1000)]'
"$malloscope" replay s.mscope --pace recorded --json >r.json || fail "exit $?"
"$malloscope" replay s.mscope --pace x100 --json >q.json || fail "exit $?"
/usr/bin/python3 -c '
import json
slow, fast = (json.load(open(f))["runs"][0]["wall_ns"] for f in ("r.json", "q.json"))
assert slow > 1.15e9 > 2 * fast, (slow, fast)' || fail "the pace"
