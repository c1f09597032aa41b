#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the exported files say, by their real readers or a strict one of our own.

exports.py FORMAT FILE prints the sums of FILE as one JSON object with the names of
`report --json`; the promise (test/exports_add_up.sh) compares them with the report's."""

import csv
import json
import os
import re
import subprocess
import sys

AMOUNTS = ("allocations reallocations allocated_bytes live_bytes live_blocks peak_bytes"
           " temporary").split()


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or "WARNING" in done.stderr or "malformed" in done.stderr:
        sys.exit(f"{command} exits with {done.returncode}: {done.stderr}")
    return done.stdout


def pprof(path):
    """By go tool pprof."""
    sums = {}
    os.environ["PPROF_TMPDIR"] = os.path.dirname(os.path.abspath(path))
    for index, key in {"alloc_objects": "allocations", "alloc_space": "allocated_bytes",
                       "inuse_objects": "live_blocks", "inuse_space": "live_bytes",
                       "peak_space": "peak_bytes"}.items():
        text = run("go", "tool", "pprof", "-top", "-unit=bytes", f"-sample_index={index}", path)
        assert f"Type: {index}" in text, text
        sums[key] = int(re.search(r"of (\d+)(?:B|bytes)? total", text)[1])
    if not any(sums.values()):  # Nothing happened in the window.
        return sums
    raw = run("go", "tool", "pprof", "-raw", path)
    assert "bytes:[" in raw and "tid:[" in raw and "thread:[" in raw, "labels are missing"
    assert "Build ID: " in run("go", "tool", "pprof", "-top", path)
    assert re.search(r"^ +\d+: 0x[0-9a-f]+ M=\d+ \S", raw, re.M), "no location in a mapping"
    return sums


def callgrind(path):
    """By callgrind_annotate, which adds up the functions if there is no summary."""
    bare = path + ".bare"
    with open(path) as full, open(bare, "w") as out:
        out.writelines(l for l in full if not re.match("summary:|totals:", l))
    assert any(l.startswith("calls=") for l in open(path))

    def totals(of):
        text = run("callgrind_annotate", "--show-percs=no", "--auto=no", "--threshold=100", of)
        names = re.search(r"^Events shown: +(.*)$", text, re.M)[1].split()
        row = re.search(r"^(.*) +PROGRAM TOTALS", text, re.M)[1]
        return dict(zip(names, (int(n.replace(",", "")) for n in row.split())))

    said, added = totals(path), totals(bare)
    assert said == added, f"summary {said}, functions {added}"
    # Inclusively nothing has more than all (no cycles of functions in the test programs).
    run("callgrind_annotate", "--inclusive=yes", "--auto=no", path)
    return {"peak_bytes": said["Peak"], "live_bytes": said["Live"],
            "live_blocks": said["LiveBlocks"], "allocated_bytes": said["Allocated"],
            "allocations": said["Allocations"], "reallocations": said["Reallocations"],
            "temporary": said["Temporary"]}


def massif(path):
    """By ms_print, and the trees line by line: what is below a line is no more than it."""
    text = run("ms_print", "--threshold=0", path)
    peak_number = re.search(r"Detailed snapshots: \[(?:.*, )?(\d+) \(peak\)", text)[1]
    rows = {r[0]: int(r[2].replace(",", ""))
            for r in re.findall(r"^ *(\d+) +([\d,.]+) +([\d,]+) +\3 +0 +0$", text, re.M)}
    assert max(rows.values()) >= rows[peak_number]

    def tree(lines):
        children, size = re.match(r" *n(\d+): (\d+) ", next(lines)).groups()
        below = sum(tree(lines) for _ in range(int(children)))
        assert below <= int(size), f"{below} below {size}"
        tree.roots.append((int(size), below))
        return int(size)

    tree.roots = []
    lines = iter(open(path).read().split("\n"))
    for line in lines:
        if line.startswith("heap_tree=") and line != "heap_tree=empty":
            size = tree(lines)
            assert tree.roots[-1][0] == tree.roots[-1][1] == size, "what is below the root is not all"
    return {"peak_bytes": rows[peak_number], "live_bytes": rows[max(rows, key=int)]}


def dhat(path):
    """By the code of valgrind's own dh_view.html, in node."""
    here = os.path.dirname(os.path.abspath(__file__))
    return json.loads(run("node", f"{here}/dh_view_in_node.js", path))


def sqlite(path):
    """By sqlite3, with the tables and columns that IgProf's navigator asks for."""
    def ask(sql):
        return run("sqlite3", path, sql).strip()

    assert ask("PRAGMA integrity_check; PRAGMA foreign_key_check") == "ok"
    ask("SELECT mainrows.id, symbols.name, files.name, self_count, cumulative_count, kids,"
        " self_calls, total_calls, self_paths, total_paths, pct FROM mainrows"
        " INNER JOIN symbols ON symbols.id = mainrows.symbol_id"
        " INNER JOIN files ON files.id = symbols.filename_id")
    ask("SELECT self_id, parent_id, from_parent_count, from_parent_calls, from_parent_paths, pct"
        " FROM children")
    ask("SELECT self_id, child_id, to_child_count, to_child_calls, to_child_paths, pct"
        " FROM parents")
    counter, total = ask("SELECT counter, total_count FROM summary").split("|")
    assert counter == "MEM_LIVE_PEAK" and ask("SELECT sum(self_count) FROM mainrows") == total
    # A function's callers and itself as a root account for all of it; callees for the rest.
    assert ask("SELECT count(*) FROM (SELECT cumulative_count - self_count - sum(from_parent_count)"
               " AS d FROM mainrows JOIN children ON parent_id = mainrows.id"
               " WHERE parent_id != self_id GROUP BY parent_id HAVING d > 0)") == "0"
    sums = ask("SELECT " + ", ".join(f"sum(self_{key})" for key in AMOUNTS) + " FROM amounts")
    return dict(zip(AMOUNTS, map(int, sums.split("|"))))


def igprof(path):
    text = open(path).read()
    counter = re.match(r"Counter: (\w+)\n", text)[1]
    assert counter == "MEM_LIVE_PEAK"
    flat = text.split("Flat profile (self >= 0.01%)")[1].split("-" * 70)[0]
    assert re.search(r"^ *[\d.]+ +[\d']+ +[\d']+  \S.* \[\d+\]$", flat, re.M)
    blocks = re.findall(r"^\[\d+\] +[\d.]+ +[\d']+ +([\d']+) / ", text, re.M)
    return {"peak_bytes": sum(int(b.replace("'", "")) for b in blocks)}


def csv_(path):
    rows = list(csv.DictReader(open(path, newline="", encoding="utf-8")))
    assert rows and all(None not in row and row["function"] and row["stack"] for row in rows)
    return {key: sum(int(row[key]) for row in rows) for key in AMOUNTS}


def json_(path):
    """By jq."""
    assert run("jq", "[.nodes | to_entries[] | select(.key > 0) | .value.parent < .key and"
               " .value.symbol != null] | all", path).strip() == "true"
    assert run("jq", ".nodes[0].parent == null and (.symbols | length) >"
               " ([.nodes[].symbol] | max)", path).strip() == "true"
    sums = ", ".join(f"{key}: [.nodes[].{key} // 0] | add" for key in AMOUNTS)
    return json.loads(run("jq", "{" + sums + "}", path))


def perfetto(path):
    """By jq: no reader of it is in Debian."""
    highest = run("jq", '[.traceEvents[] | select(.ph == "C" and .name == "live bytes")]'
                  " | group_by(.pid) | .[0] | map(.args.value) | max", path)
    assert run("jq", '[.traceEvents[] | select(.ph == "C") | (.ts | type == "number") and'
               ' (.args.value | type == "number")] | all', path).strip() == "true"
    return {"peak_bytes": int(highest)}


def speedscope(path):
    """As speedscope's file-format-schema.json has it."""
    file = json.load(open(path))
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = file["shared"]["frames"]
    for frame in frames:
        assert frame["name"] and frame.keys() <= {"name", "file", "line", "col"}
    sums = {}
    for profile in file["profiles"]:
        assert profile["type"] == "sampled" and profile["unit"] in ("bytes", "none")
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(s and max(s) < len(frames) for s in profile["samples"])
        sums[profile["name"]] = sum(profile["weights"])
        assert profile["startValue"] == 0 and profile["endValue"] == sum(profile["weights"])
    assert file["profiles"][file["activeProfileIndex"]]["name"] == "bytes at the peak"
    return {"peak_bytes": sums["bytes at the peak"], "live_bytes": sums["bytes still live"],
            "allocated_bytes": sums["bytes allocated"], "allocations": sums["allocations"],
            "temporary": sums["temporary allocations"]}


def folded(path):
    """As flamegraph.pl reads it."""
    lines = [re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", l) for l in open(path).read().splitlines()]
    assert all(lines)
    return {"peak_bytes": sum(int(l[2]) for l in lines)}


if __name__ == "__main__":
    name = sys.argv[1]
    print(json.dumps(globals()[name + "_" if name in ("csv", "json") else name](sys.argv[2])))
