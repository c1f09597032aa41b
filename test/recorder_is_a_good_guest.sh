#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The recorder needs libc alone, no dynamic TLS and no executable stack.
. "$(dirname "$0")/here.sh"

[ -e "$recorder" ] || fail "no recorder found"
readelf -d "$recorder" | grep NEEDED | grep -v 'libc\.so\|ld-linux' &&
  fail "it needs more than libc"
readelf -rW "$recorder" | grep -q 'DTPMOD\|TLSDESC' && fail "dynamic TLS"
nm -D "$recorder" | grep -q '__tls_get_addr' && fail "__tls_get_addr"
readelf -lW "$recorder" | grep 'GNU_STACK' | grep -q 'RWE' && fail "executable stack"
nm -D --defined-only "$recorder" | grep -qw dlopen && fail "dlopen is interposed"
GLIBC_TUNABLES=glibc.rtld.optional_static_tls=0 record t.mscope "$programs/hello" >/dev/null ||
  fail "without static TLS to spare: exit $?"
says t.mscope 'site("keep", "allocations")' 1000
