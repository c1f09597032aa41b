#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the browser is called with, which all users of the machine can read, does not tell the page's address, but a
# file that only its owner can read, and that leads to the page; it is gone when the server is.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/peak" >/dev/null || fail "exit $?"
cat >browser <<SH
#!/bin/sh
echo "\$@" >$work/called.part
mv $work/called.part $work/called
SH
chmod +x browser
mkdir runtime home

# open_page SETTING...: in the background, with the settings of a desktop.
open_page() {
  rm -f called address
  env --default-signal=INT,QUIT -u XDG_RUNTIME_DIR -u XDG_CACHE_HOME HOME="$work/home" BROWSER="$work/browser --new-window" \
    "$@" "$malloscope" view t.mscope >address 2>said &
  server=$!
  wait_for 10 test -s called || fail "no browser was called: $(cat said)"
  file=$(sed 's,^--new-window file://,,' called)
  token=$(grep -oE '[0-9a-f]{32}' address) || fail "no token in $(cat address)"
}

check_page() { # PLACE SIGNAL
  [[ $file == "$1"/* ]] || fail "the browser was called with $(cat called)"
  grep -q "$token" called && fail "the browser's words have the token: $(cat called)"
  same "the file's mode" "$(stat -c %a "$file")" 600
  same "the folder's mode" "$(stat -c %a "$(dirname "$file")")" 700
  grep -qF "$(cat address)" "$file" || fail "the file does not lead to the page: $(cat "$file")"
  kill -"$2" $server
  wait $server
  same "exit code" $? $((128 + $(kill -l "$2")))
  [ ! -e "$(dirname "$file")" ] || fail "$file is still there after $2"
}

open_page XDG_RUNTIME_DIR="$work/runtime"
if [ -d "$root/test/browser/node_modules" ]; then
  node "$root/test/browser/redirect.mjs" "file://$file" "$(cat address)" || fail "see above"
fi
check_page "$work/runtime" INT
open_page
check_page "$work/home/.cache/malloscope" TERM
ulimit -S -c 0
open_page
check_page "$work/home/.cache/malloscope" QUIT
# A name that is no part of an address as it is.
mkdir 'a home & more'
open_page HOME="$work/a home & more"
file=$(printf '%b' "${file//%/\\x}")
check_page "$work/a home & more/.cache/malloscope" HUP

# Without a browser, no file.
rm address
env XDG_RUNTIME_DIR="$work/runtime" BROWSER="$work/browser" "$malloscope" view t.mscope --no-open >address &
server=$!
wait_for 10 test -s address
same "files without a browser" "$(ls runtime)" ""
kill $server
