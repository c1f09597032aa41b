#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The highest RSS is the one the kernel knows, also of a program that is over before it is looked at,
# and of its children.
. "$(dirname "$0")/here.sh"

script='my $x = "x" x 30_000_000; open F, "/proc/self/status"; print grep /VmHWM/, <F>; exit 0'
for run in 1 2 3; do
  record t.mscope perl -e "$script" >out
  kernel=$(awk '{print $2 * 1024}' out)
  # The kernel counts in batches of pages; the last ones may be missing in what it told perl.
  says t.mscope "$kernel * 0.9 < r['rss']['peak_bytes'] < $kernel * 1.1" True
done
record t.mscope perl -e "my \$p = fork; if (\$p == 0) { $script } waitpid \$p, 0; exit 0" >out
kernel=$(awk '{print $2 * 1024}' out)
says t.mscope "$kernel * 0.9 < max(p['rss']['peak_bytes'] for p in processes) < $kernel * 1.1" True
