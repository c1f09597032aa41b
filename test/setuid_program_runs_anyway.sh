#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A setuid program keeps its rights and its exit code.
. "$(dirname "$0")/here.sh"

[ "$(id -u)" = 0 ] || skip "only root can make one"
chmod 755 . && cp "$programs/hello" suid && chown nobody suid && chmod 4755 suid
"$malloscope" run -o t.mscope -- setpriv --reuid=65534 --clear-groups ./suid 3 >out 2>err
same "exit code" $? 3
chown root suid && chmod 4755 suid
setpriv --reuid=65534 --clear-groups "$malloscope" run -o /tmp/mscope-suid.$$ -- ./suid 3 >out 2>err
same "exit code" $? 3
rm -f /tmp/mscope-suid.$$
same stdout "$(cat out)" hello
[ -s err ] || fail "nothing was said"
