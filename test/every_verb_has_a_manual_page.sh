#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every verb of --help has a manual page with all its options, of which groff has nothing to complain;
# they are installed, and so is what README refers to.
. "$(dirname "$0")/here.sh"

command -v groff >/dev/null || skip "no groff"
mkdir pages
"$malloscope" man-pages pages || fail "no pages"
verbs=$("$malloscope" --help | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$verbs")" -ge 10 ] || fail "verbs not found in --help: $verbs"
same "pages" "$(ls pages)" "$({ echo malloscope.1; for v in $verbs; do echo "malloscope-$v.1"; done; } | sort)"
for page in pages/*.1; do
  groff -man -Tutf8 -ww -rLL=78n "$page" >text 2>said || fail "groff refuses $page"
  [ -s said ] && fail "$page: $(cat said)"
  [ "$(wc -l <text)" -gt 40 ] || fail "$page is nearly empty"
  for section in NAME SYNOPSIS DESCRIPTION OPTIONS EXAMPLES 'EXIT STATUS' FILES 'SEE ALSO'; do
    grep -qx ".SH \"$section\"" "$page" || fail "$page has no section $section"
  done
done
for verb in $verbs; do
  sed 's/\\f[BIR]//g; s/\\-/-/g' "pages/malloscope-$verb.1" >plain
  for option in $("$malloscope" "$verb" --help | grep -o '^  \(-[a-z],\)\?--[a-z-]*' | grep -o -- '--[a-z-]*'); do
    grep -q -- "$option" plain || fail "$option is not in the page of $verb"
  done
  grep -q "malloscope $verb " plain || fail "no example in the page of $verb"
done

# A sentence of two lines is one; what explains words is a list.
groff -man -Tutf8 -rLL=200n pages/malloscope-report.1 | sed 's/.\x08//g; s/\x1b\[[0-9;]*m//g' >text
grep -q 'between its callers and its callees; those that match --focus first\.' text ||
  fail "the sentence of --callers is broken: $(grep -A 3 -- --callers text)"
grep -q '^ *churn  *[a-z]' text || fail "views are not explained: $(grep -A 5 -- --view text)"

# Installed where man looks for them.
if [ -d "$build/man" ]; then
  for verb in $verbs; do
    cmp -s "$build/man/malloscope-$verb.1" "pages/malloscope-$verb.1" || fail "the built page of $verb is another"
  done
  DESTDIR="$work/root" cmake --install "$build" --prefix /usr >/dev/null || fail "cmake --install"
  [ -f root/usr/share/man/man1/malloscope-merge.1 ] || fail "pages are not installed"
  # README begins with what whoever has installed it can type; what it refers to lies beside it.
  grep -m 1 '^    ' root/usr/share/doc/malloscope/README.md | grep -q '^    malloscope ' || fail "README begins with what is not installed"
  for file in $(grep -o '([A-Za-z_/]*\.md)' "$root/README.md" | tr -d '()' | sort -u); do
    [ -f "root/usr/share/doc/malloscope/$file" ] || fail "$file is not installed"
  done
fi
exit 0
