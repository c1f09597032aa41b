#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --debug-dir, --sysroot and --debuginfod each lead to the lines of a stripped program; without
# them nobody is asked. The cache notices when debug files come, and what it once knew of a build
# it knows for ever: the file may be rebuilt, moved or deleted since.
. "$(dirname "$0")/here.sh"
export XDG_CACHE_HOME=$work/cache

cp "$programs/peak" program
id=$(readelf -n program | sed -n 's/.*Build ID: //p')
[ -n "$id" ] || skip "the compiler writes no build-ids"
objcopy --only-keep-debug program program.debug
strip program
record t.mscope ./program
place() { "$malloscope" report t.mscope --json "$@" | grep -c '"file": "[^"]*peak.c"'; }
[ "$(place)" -eq 0 ] || fail "lines are known without debug files"

mkdir -p debug/.build-id/"${id:0:2}"
cp program.debug debug/.build-id/"${id:0:2}/${id:2}.debug"
[ "$(place --debug-dir debug)" -gt 0 ] || fail "--debug-dir is not searched"
[ "$(place --no-cache)" -eq 0 ] || fail "--no-cache uses the cache"
rm -r debug/.build-id
[ "$(place --debug-dir debug)" -gt 0 ] || fail "what was known of this build is forgotten"
[ "$(place)" -gt 0 ] || fail "what was known of this build is known to --debug-dir only"
[ "$(place --debug-dir debug --no-cache)" -eq 0 ] || fail "lines are known without debug files"
[ "$("$malloscope" report t.mscope --debug-dir /no/such 2>&1 >/dev/null | wc -l)" -eq 1 ] || fail "no sentence"

# A debug file under its program's name.
mkdir named
cp program.debug named/program.debug
[ "$(place --debug-dir named --no-cache)" -gt 0 ] || fail "--debug-dir does not find program.debug"
cp "$programs/leaky" named/program.debug
[ "$(place --debug-dir named --no-cache)" -eq 0 ] || fail "program.debug of another build is believed"

# The machine's files are elsewhere now.
mkdir -p root"$work"
cp "$programs/peak" root"$work"/program
mv program gone
[ "$(place --no-cache)" -eq 0 ] || fail "lines are known without any file"
[ "$(place --sysroot root --no-cache)" -gt 0 ] || fail "--sysroot is not searched"

# A folder with the file of then, under its own name; one of another build is no help.
mkdir old
cp "$programs/leaky" old/program
[ "$(place --debug-dir old --no-cache)" -eq 0 ] || fail "a file of another build is believed"
cp "$programs/peak" old/program
[ "$(place --debug-dir old --no-cache)" -gt 0 ] || fail "--debug-dir does not find the file itself"
mv gone program

# A server on this machine; whoever asks it is written down.
[ -e /usr/lib/x86_64-linux-gnu/libdebuginfod.so.1 ] || exit 0
mkdir -p served/buildid/"$id"
cp program.debug served/buildid/"$id"/debuginfo
python3 -u -c '
import http.server, os
os.chdir("served")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
print(server.server_port, flush=True)
server.serve_forever()' >port 2>asked &
server=$!
trap 'kill $server; rm -rf "$work"' EXIT
wait_for 10 test -s port || fail "the server did not start"
export DEBUGINFOD_URLS="http://127.0.0.1:$(cat port)" DEBUGINFOD_CACHE_PATH=$work/fetched
[ "$(place --no-cache)" -eq 0 ] || fail "lines come from nowhere"
[ -s asked ] && fail "a server was asked without --debuginfod"
[ "$(place --debuginfod --no-cache)" -gt 0 ] || fail "--debuginfod does not find it: $(cat asked)"
grep -q "GET /buildid/$id/debuginfo" asked || fail "the server was not asked"
unset DEBUGINFOD_URLS
"$malloscope" report t.mscope --debuginfod --no-cache | grep DEBUGINFOD_URLS >/dev/null || fail "nothing is said about DEBUGINFOD_URLS"
exit 0
