#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whatever is answered with an index is, byte for byte, what the events alone give; and an index that is
# damaged, stale, foreign or cannot be written changes nothing but the time.
source "$(dirname "$0")/here.sh"
export XDG_CACHE_HOME=$work/cache NO_COLOR=1

cat >program.py <<'P'
import json, threading
def grow(n):
    kept = [bytearray(i % 5000) for i in range(n)]
    return json.loads(json.dumps({str(i): [i] * (i % 7) for i in range(n)})), len(kept)
threads = [threading.Thread(target=grow, args=(n,), name=f"grow{n}") for n in (300, 900)]
for t in threads: t.start()
grow(2000)
for t in threads: t.join()
P
export PYTHONMALLOC=malloc
record one.mscope python3 program.py || fail "python3 cannot be recorded"
record many.mscope sh -c 'python3 program.py & perl -e "my %h; \$h{\$_} = [1..\$_ % 9] for 1..20000;"; ls / | sort; wait' >/dev/null ||
  fail "sh cannot be recorded"
record other.mscope perl -e 'my @kept = map { "x" x $_ } 1 .. 3000;' || fail "perl cannot be recorded"

answer() { MALLOSCOPE_INDEX=$1 "$malloscope" report "$2" --json "${@:3}" 2>&1; }
compare() {
  local trace=$1; shift
  answer never "$trace" "$@" >events.json
  answer always "$trace" "$@" >index.json
  cmp -s events.json index.json || fail "$trace $*: $(diff events.json index.json | head -4)"
}
questions() {
  local trace=$1
  local pid; pid=$("$malloscope" report "$trace" --json | python3 -c 'import json, sys
print(json.load(sys.stdin)["processes"][-1]["pid"])')
  for part in "" "--process $pid" "--from 40%" "--to 62.5%" "--from 12.3% --to 77.7%" "--from 50% --to 50.4%" \
              "--from 0% --to 100%" "--from 33.3% --process $pid" "--to end" "--from start" "--from 31.41%" "--from peak"; do
    compare "$trace" $part
    compare "$trace" --metric live --by site $part
  done
  compare "$trace" --metric allocated --callers
  compare "$trace" --tree --from 20% --to 80%
  compare "$trace" --stacks --top 5 --metric temporary
  compare "$trace" --to peak
  compare "$trace" --metric temporary --by site --from 44.4%
  compare "$trace" --by size
  compare "$trace" --by size --from 10% --to 90%
  compare "$trace" --by thread --metric allocations --to 50%
  compare "$trace" --thread 'grow.*' --metric peak
  compare "$trace" --min-size 1K
  compare "$trace" --min-size 512 --max-size 8191 --from 25%
  compare "$trace" --max-size 1000 --by module
  compare "$trace" --focus main --ignore free --metric allocated
  compare "$trace" --metric lifetime
}
for trace in one many; do
  questions $trace.mscope
  [ -f $trace.mscope.index ] || fail "no index was left for $trace"
  same "mode of the index" "$(stat -c %a $trace.mscope.index)" 600
done

# That it is used at all: the events are gone, but nothing else of the trace is another.
answer never one.mscope --metric allocated >before.json
cp -p one.mscope kept.mscope
python3 - one.mscope <<'P'
import struct, sys
data, at = bytearray(open(sys.argv[1], "rb").read()), 8
while at < len(data):
    kind, stored = struct.unpack_from("<H", data, at + 4)[0], struct.unpack_from("<I", data, at + 8)[0]
    if kind == 7: data[at + 48 + stored // 2] ^= 255
    at += 48 + stored
open(sys.argv[1], "r+b").write(data)
P
touch -r kept.mscope one.mscope
answer never one.mscope --metric allocated >/dev/null && fail "a damaged trace is read"
answer always one.mscope --metric allocated | cmp -s before.json - || fail "the index is not used"
touch one.mscope  # Now it is another file.
answer always one.mscope --metric allocated >/dev/null && fail "a stale index is used"
cp -p kept.mscope one.mscope

compare other.mscope
# Another trace's, a damaged one, one that is cut, something else.
cp other.mscope.index one.mscope.index
compare one.mscope
for at in 20 60 100 3000 20000; do
  python3 - one.mscope.index $at <<'P'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[min(int(sys.argv[2]), len(data) - 1)] ^= 16
open(sys.argv[1], "wb").write(data)
P
  compare one.mscope --metric live --from 20%
  compare one.mscope
done
# One that is whole and says that it is of this trace, but was made of another.
python3 - one.mscope.index other.mscope.index <<'P' || fail "no index to forge"
import ctypes, sys
checksum = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
checksum.restype = ctypes.c_uint64
one, other = (bytearray(open(name, "rb").read()) for name in sys.argv[1:])
other[16:40] = one[16:40]  # The stamp.
other[72:80] = checksum(bytes(other[:72]), 72).to_bytes(8, "little")
open(sys.argv[1], "wb").write(other)
P
cp one.mscope.index forged
compare one.mscope
cmp -s one.mscope.index forged && fail "an index that was made of another trace is not replaced"
truncate -s 5000 one.mscope.index
compare one.mscope --by thread
echo nonsense >one.mscope.index
compare one.mscope --from 20%
same "a file of somebody's own" "$(cat one.mscope.index)" nonsense
cp other.mscope one.mscope.index  # A recording that happens to have the name.
compare one.mscope --from 20%
cmp -s other.mscope one.mscope.index || fail "a recording was overwritten by an index"
rm -f one.mscope.index; mkdir one.mscope.index
compare one.mscope
rmdir one.mscope.index

# Where nothing can be written the cache has it, and without a cache it works too. Root may write
# anywhere, so then somebody else asks.
as=(); [ "$(id -u)" = 0 ] && as=(setpriv --reuid=65534 --clear-groups)
mkdir sealed mine; cp other.mscope sealed; chmod 444 sealed/other.mscope; chmod 555 sealed; chmod 777 mine; chmod 711 .
answer never sealed/other.mscope >events.json
for cache in mine sealed; do
  MALLOSCOPE_INDEX=always XDG_CACHE_HOME=$work/$cache "${as[@]}" "$malloscope" report sealed/other.mscope --json >index.json 2>&1
  cmp -s events.json index.json || fail "with the cache in $cache: $(diff events.json index.json | head -4)"
done
ls mine/malloscope/*.index >/dev/null || fail "no index in the cache"
[ "$(ls sealed)" = other.mscope ] || fail "something was written into a sealed folder"
chmod 700 sealed

# What has no name that lasts gets none.
MALLOSCOPE_INDEX=always "$malloscope" report /dev/stdin <other.mscope >/dev/null || fail "/dev/stdin: $?"
[ -e /dev/stdin.index ] && rm /dev/stdin.index && fail "an index of /dev/stdin"

# Small recordings leave nothing behind, unless told.
rm -f ./*.index
"$malloscope" report one.mscope >/dev/null
[ -e one.mscope.index ] && fail "a small trace got an index"
ls ./*.new 2>/dev/null && fail "something was left half done"
exit 0
