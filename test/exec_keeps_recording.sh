#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each exec'd image is told apart, with its own command line, and can be asked for.
. "$(dirname "$0")/here.sh"

record t.mscope env -i "$programs/hello" 4 >out
same "exit code" $? 4
same stdout "$(cat out)" hello
says t.mscope 'len(processes)' 2
says t.mscope 'len({p["pid"] for p in processes})' 1
says t.mscope 'site("keep", "allocations")' 1000
pid=$(ask t.mscope 'processes[0]["pid"]')
allocations() { "$malloscope" report t.mscope --json "$@" | /usr/bin/python3 -c '
import json, sys
r = json.load(sys.stdin); print(r["totals"]["allocations"], *[p["image"] for p in r["processes"]])'; }
read -r both images < <(allocations --process "$pid")
same "images of the process" "$images" "1 2"
read -r first image < <(allocations --process image:1)
same "images of image 1" "$image" 1
read -r second image < <(allocations --process image:2)
same "images of image 2" "$image" 2
same "allocations of both images" $((first + second)) "$both"
[ "$second" -ge 1000 ] && [ "$first" -gt 0 ] || fail "$first and $second allocations"
"$malloscope" report t.mscope | grep -q "one of them: .* --process image:[12]" || fail "how to choose one?"
"$malloscope" report t.mscope --process image:3 2>said; same "exit code of image 3" $? 2
grep -q "image 3 is not in t.mscope, which has 1 to 2" said || fail "image 3: $(cat said)"
for no in image: image:x image:-1 image:99999999999 -1 env; do
  "$malloscope" report t.mscope --process="$no" 2>said; same "exit code of --process $no" $? 2
  grep -q "neither a pid nor image:N" said || fail "--process $no: $(cat said)"
done
case $(ask t.mscope 'processes[1]["command"]') in *hello*4*) ;; *) fail "command line" ;; esac
