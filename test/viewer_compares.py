# SPDX-License-Identifier: Apache-2.0
"""Asks the viewer what changed between two recordings, and compares with `malloscope diff`.

    viewer_compares.py MALLOSCOPE BEFORE AFTER
"""
import collections
import json
import subprocess
import sys

import viewer

AMOUNTS = {"peak": "peak_bytes", "live": "live_bytes", "allocated": "allocated_bytes",
           "allocations": "allocations", "temporary": "temporary"}


def sites_agree(page, told, metric):
    field = AMOUNTS[metric]
    head, columns = page.columns("api/sites", {"metric": metric, "base": 1})
    names = head["names"]
    found = collections.Counter()
    for i in range(len(columns["id"])):
        found[(names["full"][i] or names["name"][i], columns["before"][i], columns["value"][i])] += 1
    wanted = collections.Counter()
    for site in told["sites"]:
        was, now = site["before"][field], site["after"][field]
        if was or now:
            wanted[(site["function"], was, now)] += 1
    assert found == wanted, (metric, "only there", found - wanted, "only in diff", wanted - found)
    gone = [i for i in range(len(columns["id"])) if columns["id"][i] >= 2 ** 31]
    assert all(columns["value"][i] == 0 for i in gone), metric
    for i in gone:  # Its stacks are those of the recording before.
        stacks = page.json("api/stacks", {"metric": metric, "base": 1, "site": columns["id"][i]})
        assert sum(s["value"] for s in stacks["stacks"]) == columns["before"][i], stacks
    empty = [i for i in range(len(columns["id"])) if columns["value"][i] == 0 and i not in gone]
    assert empty or metric != "live", "nothing has been mended: this proves too little"
    for i in empty:  # They can be looked at, too.
        stacks = page.json("api/stacks", {"metric": metric, "base": 1, "site": columns["id"][i]})
        assert stacks["stacks"], (metric, names["name"][i])
    return len(gone)


def flame_agrees(page, told, metric):
    field = AMOUNTS[metric]
    for inverted in ("0", "1"):
        head, columns = page.columns("api/flame", {"metric": metric, "base": 1, "inverted": inverted})
        assert head["total"] == sum(site["after"][field] for site in told["sites"]), (metric, head)
        assert head["total_before"] == sum(site["before"][field] for site in told["sites"]), metric
        below = collections.Counter()
        for i in range(1, len(columns["parent"])):
            below[columns["parent"][i]] += columns["before"][i]
        for parent, amount in below.items():
            assert amount <= columns["before"][parent], (metric, inverted, parent)
    return len(columns["parent"])


def main():
    malloscope, before, after = sys.argv[1:4]
    seen_gone = nodes = 0
    with viewer.Page(malloscope, after, "--base", before) as page:
        for metric in AMOUNTS:
            told = json.loads(subprocess.run([malloscope, "diff", before, after, "--metric", metric, "--json"],
                                             check=True, capture_output=True).stdout)
            seen_gone += sites_agree(page, told, metric)
            nodes += flame_agrees(page, told, metric)
        answer = page.json("api/answer/diff", {"metric": "live", "base": 1})
        assert "before" in answer["headline"], answer["headline"]
    assert seen_gone > 0, "no site is gone: this proves too little"
    assert nodes > 50, nodes


main()
