#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The page is served on the loopback interface, to who knows its address, by the name it has, to be
# read only; it says what is wrong in a sentence, and its server ends with Ctrl-C at once.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/peak" >/dev/null || fail "exit $?"
env --default-signal=INT "$malloscope" view t.mscope --no-open >address 2>said &
server=$!
wait_for 10 test -s address || fail "no address: $(cat said)"
url=$(cat address)
[[ $url =~ ^http://127\.0\.0\.1:([0-9]+)/[0-9a-f]{32}/$ ]] || fail "the address is $url"
port=${BASH_REMATCH[1]}

status() { curl -s -o body -D head -w '%{http_code}' "$@"; }
same "the page" "$(status "$url")" 200
for header in "Content-Security-Policy: default-src 'none'; script-src 'self'" \
  "X-Content-Type-Options: nosniff" "Referrer-Policy: no-referrer"; do
  grep -qi "^$header" head || fail "no '$header' in $(cat head)"
done
grep -qi '^Access-Control-Allow' head && fail "others may read it: $(cat head)"
grep -qiE '<script[^>]*>[^<]|<style|style=|onload=' body && fail "the page has script or style in it"
same "another token" "$(status "http://127.0.0.1:$port/00000000000000000000000000000000/")" 404
same "no token" "$(status "http://127.0.0.1:$port/")" 404
same "another host" "$(status -H 'Host: evil.example' "$url")" 403
same "another port" "$(status -H "Host: 127.0.0.1:$((port + 1))" "$url")" 403
same "localhost" "$(status -H "Host: localhost:$port" "$url")" 200
# Packing takes longer than the way to this very machine.
for what in viewer.js api/trace; do
  same "$what" "$(status -H 'Accept-Encoding: br, gzip' "$url$what")" 200
  grep -qi '^content-encoding' head && fail "$what is packed"
done
# A part of an answer is not given, least of all what lies behind it.
curl -s "$url" >whole
for range in 600-700 0-100000 99999999- 0-0,600-700; do
  same "bytes $range" "$(status -H "Range: bytes=$range" "$url")" 200
  cmp -s body whole || fail "of bytes $range it sends $(wc -c <body) of $(wc -c <whole)"
done
# What is behind a question that was refused is no question.
answers=$(python3 - "$port" "$url" <<'P'
import socket, sys
port, url = int(sys.argv[1]), sys.argv[2]
path = url.split("/", 3)[3]
inner = f"GET /{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
s = socket.create_connection(("127.0.0.1", port))
s.sendall(f"POST /x HTTP/1.1\r\nHost: evil.example\r\nContent-Length: {len(inner)}\r\n\r\n{inner}".encode())
s.settimeout(4)
got = b""
try:
    while piece := s.recv(65536): got += piece
except OSError: pass
print(got.count(b"HTTP/1.1 "), got[9:12].decode())
P
)
same "a question in the body of another" "$answers" "1 403"
same "a post" "$(status -X POST "${url}api/trace")" 405
same "a file" "$(status "${url}../../etc/passwd" --path-as-is)" 404
same "no such answer" "$(status "${url}api/nothing")" 404

asked() { # STATUS WORDS QUESTION
  same "$3" "$(status "${url}api/$3")" "$1"
  grep -q "$2" body || fail "$3 says $(cat body)"
}
wait_for 10 grep -q '"ready"' <(curl -s "${url}api/trace")
asked 400 "no metric 'sums'" "flame?metric=sums"
asked 400 "is not a time" "flame?from=soon"
asked 400 "is not a regular expression" "flame?hide=("
asked 400 "has no ')'" "flame?where=(a"
asked 400 "is after" "flame?metric=allocated&from=50%25&to=20%25"
asked 400 "no such node" "flame?root=99999999"
asked 400 "no such function" "flame?callers_of=99999999"
asked 400 "not a way" "flame?inverted=1&way=1.x"
asked 400 "by= is" "sites?by=nothing"
asked 400 "no view 'nothing'" "answer/nothing"
# On no other interface.
[ "$(ss -Hltn "sport = :$port" | awk '{print $4}')" = "127.0.0.1:$port" ] ||
  fail "it listens on $(ss -Hltn "sport = :$port")"

kill -INT $server
wait $server
same "exit code after Ctrl-C" $? 130
"$malloscope" view nothing.mscope --no-open 2>said
same "no such trace" $? 3
"$malloscope" view t.mscope --no-open --port 99999 2>said
same "no such port" $? 2
