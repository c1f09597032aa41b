# SPDX-License-Identifier: Apache-2.0
"""Asks what the viewer's page asks (docs/viewer_api.md), and compares with what reports say.

    viewer.py MALLOSCOPE TRACE [QUESTION...]     a question is words as for report: --from 10% --focus x
"""
import array
import collections
import json
import shlex
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

TYPES = {"f64": "d", "u32": "I", "u8": "B"}
METRICS = ["peak", "live", "allocated", "allocations", "calls", "temporary"]
# What reports call the words of an address.
OPTIONS = {"from": "--from", "to": "--to", "where": "--where", "hide": "--hide",
           "under": "--only-under", "thread": "--thread", "phase": "--phase", "process": "--process",
           "module": "--module", "type": "--type", "min_size": "--min-size",
           "max_size": "--max-size"}


class Page:
    """A `malloscope view` that is asked as its page asks."""

    def __init__(self, malloscope, trace, *options):
        self.process = subprocess.Popen([malloscope, "view", trace, "--no-open", *options],
                                        stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip().partition("#")[0]
        if not self.url:
            raise RuntimeError(f"malloscope view printed no address, exit {self.process.wait()}")
        while self.json("api/trace")["state"] == "loading":
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def get(self, path, words=()):
        query = urllib.parse.urlencode([(k, v) for k, v in dict(words).items()])
        try:
            with urllib.request.urlopen(f"{self.url}{path}?{query}") as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def json(self, path, words=()):
        status, body = self.get(path, words)
        if status != 200:
            raise RuntimeError(f"{path} {words}: {status} {body}")
        return json.loads(body)

    def columns(self, path, words=()):
        status, body = self.get(path, words)
        if status != 200:
            raise RuntimeError(f"{path} {words}: {status} {body}")
        assert body[:4] == b"MSC1", body[:40]
        at = 8 + int.from_bytes(body[4:8], "little")
        head = json.loads(body[8:at])
        columns = {}
        for column in head["columns"]:
            values = array.array(TYPES[column["type"]])
            size = values.itemsize * column["length"]
            values.frombytes(body[at:at + size])
            columns[column["name"]] = values
            at += (size + 7) // 8 * 8
        assert at == len(body), (at, len(body))
        return head, columns


class Report:
    def __init__(self, malloscope, trace):
        self.command = [malloscope, "report", trace, "--json"]

    def __call__(self, words, *options):
        for word, value in words.items():
            if word == "metric" or (word == "from" and words.get("metric") == "live"):
                continue
            options += (OPTIONS[word], value)
        return json.loads(subprocess.run([*self.command, *options], check=True,
                                         stdout=subprocess.PIPE).stdout)


def flame_tree(head, columns):
    """{path of (name, module): (total, self)}, of a whole tree."""
    symbols = head["symbols"]
    paths, found = [], {}
    for i, kind in enumerate(columns["kind"]):
        if kind == 2:
            paths.append(())
            continue
        assert kind == 0, "something was folded"
        s = columns["symbol"][i]
        name = (symbols["full"][s] or symbols["name"][s], symbols["module"][s])
        path = paths[columns["parent"][i]] + (name,)
        paths.append(path)
        found[path] = (int(columns["total"][i]), int(columns["self"][i]))
    return found


def report_tree(rows):
    paths, found = [], {}
    for row in rows:
        del paths[row["depth"]:]
        paths.append((row["function"], row["module"] or ""))
        found[tuple(paths)] = (row["cumulative"], row["self"])
    return found


def inverted_sums(tree):
    """What an inverted tree has right below its root, from a tree the right way up."""
    sums = collections.Counter()
    for path, (_, own) in tree.items():
        if own:
            sums[path[-1]] += own
    return sums


def same(what, found, wanted):
    if found != wanted:
        only = lambda a, b: list((a.items() if isinstance(a, dict) else [a]))[:0] or [
            (k, v, b.get(k)) for k, v in a.items() if b.get(k) != v][:5]
        details = (only(found, wanted), only(wanted, found)) if isinstance(found, dict) else (
            found, wanted)
        sys.exit(f"{what}: the page and the report differ: {details}")


def compare(page, report, words):
    """Every number of flame graph, functions and sites, with a report's of the same question."""
    metric = words["metric"]
    what = f"{words}"
    options = ("--metric", {"leaked": "live"}.get(metric, metric))
    # Of what leaked in a range nothing else is known than what is left.
    has_peak = metric != "cpu" and not (metric == "leaked" and "from" in words)
    tree = flame_tree(*page.columns("api/flame", words))
    wanted = report_tree(report(words, *options, "--tree")["tree"])
    same(f"flame {what}", tree, wanted)
    head, columns = page.columns("api/flame", {**words, "inverted": "1"})
    top = {}
    for i, kind in enumerate(columns["kind"]):
        if kind == 0 and columns["parent"][i] == 0:
            s = columns["symbol"][i]
            top[(head["symbols"]["full"][s] or head["symbols"]["name"][s],
                 head["symbols"]["module"][s])] = int(columns["total"][i])
    if not any(kind == 1 for kind in columns["kind"]):
        same(f"inverted {what}", top, dict(inverted_sums(wanted)))

    head, columns = page.columns("api/sites", {**words, "by": "function"})
    names = head["names"]
    functions = {(names["full"][i] or names["name"][i], names["module"][i]):
                 (int(columns["cumulative"][i]), int(columns["value"][i]))
                 for i in range(head["rows"])}
    wanted = {(f["function"], f["module"] or ""): (f["cumulative"], f["self"])
              for f in report(words, *options, "--by", "function")["functions"]}
    same(f"functions {what}", functions, wanted)

    # CPU time is nobody's size or type.
    of_blocks = metric != "cpu"
    for by in ("site", "file", "module", "thread", "phase", *(("type", "size") if of_blocks else ())):
        head, columns = page.columns("api/sites", {**words, "by": by})
        names = head["names"]
        if head["left_out"]:
            sys.exit(f"{by}: {head['left_out']} rows were left out")
        key = "frame" if by == "site" else by
        found, wanted = collections.Counter(), collections.Counter()
        for i in range(head["rows"]):
            name = ((names["full"][i] or names["name"][i], names["file"][i], names["line"][i],
                     names["module"][i]) if by == "site" else names["name"][i])
            found[name] += int(columns["value"][i])
            if has_peak:
                found[name, "peak"] += int(columns["peak"][i])
            if metric == "cpu":
                found[name, "samples"] += int(columns["samples"][i])
            found[name, "stacks"] += int(columns["stacks"][i])
        for row in report(words, *options, "--by", by)[by + "s"]:
            name = ((row["function"], row["file"] or "", row["line"] or 0, row["module"] or "")
                    if by == "site" else row[key])
            wanted[name] += row[{"peak": "peak_bytes", "live": "live_bytes", "leaked": "live_bytes",
                                 "allocated": "allocated_bytes", "calls": "calls"}.get(
                                     metric, metric)]
            if has_peak:
                wanted[name, "peak"] += row["peak_bytes"]
            if metric == "cpu":
                wanted[name, "samples"] += row["samples"]
            wanted[name, "stacks"] += row["stacks"]
        same(f"{by} {what}", dict(found), dict(wanted))
    return len(tree)


def compare_blocks(page, words):
    """The blocks of the heaviest sites, from the index and from all events."""
    words = {word: value for word, value in words.items() if word != "metric"}
    head, columns = page.columns("api/sites", {**words, "metric": "allocated", "by": "site"})
    for site in columns["id"][:3]:
        told, merged = [], False
        for each in "01":
            head, bars = page.columns("api/blocks", {**words, "site": str(site), "each": each})
            same(f"bars of site {site} {words}", sum(bars["stands_for"]), head["blocks"])
            of = collections.Counter({
                "blocks": head["blocks"], "first": min(bars["born"], default=0), "last": max(bars["died"], default=0),
                "bytes": round(sum(s * n for s, n in zip(bars["size"], bars["stands_for"])))})
            merged |= head["bars"] != head["blocks"]
            of.update(zip(bars["born"], bars["died"], bars["size"], bars["tid"]))
            told.append(of)
        if merged:  # Each has others together.
            told = [{key: of[key] for key in ("blocks", "bytes", "first", "last")} for of in told]
        same(f"the blocks of site {site} {words}", dict(told[0]), dict(told[1]))


def compare_detail(page, words):
    """A part of the timeline in finer slices adds up to that part, with the same ends and the same peak."""
    words = {word: value for word, value in words.items() if word not in ("metric", "from", "to")}
    _, coarse = page.columns("api/timeline", words)
    for first, end in ((0, 1000), (200, 300), (417, 419), *((k, k + 10) for k in range(0, 1000, 90))):
        _, fine = page.columns("api/detail", {**words, "from": f"{first / 10}%", "to": f"{end / 10}%"})
        what = f"of the timeline from {first / 10} % to {end / 10} % {words}"
        for name in ("allocations", "allocated") + (("frees",) if "frees" in coarse else ()):
            same(f"{name} {what}", sum(fine[name]), sum(coarse[name][first:end]))
        for name in ("live", "blocks", "running_blocks"):
            same(f"{name} {what}", fine[name][-1], coarse[name][end - 1])
        if not words:
            same(f"the peak {what}", max(fine["live_max"]), max(coarse["live_max"][first:end]))
        same(f"the ends {what}", (fine["time"][0], fine["time"][-1]), (coarse["time"][first], coarse["time"][end]))
        assert sorted(fine["time"]) == list(fine["time"])


def layers_are_the_curve(by, layers, columns):
    """Where nothing happens, a slice's highest moment is its begin; what a process leaves is gone with it in both."""
    quiet = 0
    for i in range(1, len(layers)):
        if columns["allocations"][i] == columns["allocated"][i] == columns["frees"][i] == 0:
            same(f"the layers by {by} before slice {i} and its highest moment", layers[i - 1], columns["live_max"][i])
            quiet += 1
        else:
            assert layers[i] <= columns["live_max"][i], (by, i)
    return quiet


def compare_answers(page, malloscope, trace, words):
    """Every number and text of the tables that the command line has as well."""
    words = {word: value for word, value in words.items() if word != "metric"}
    options = [part for word, value in words.items() for part in (OPTIONS[word], value)]
    cells = 0
    for name in ("leaks", "lifetimes", "threads", "phases", "sizes"):
        command = ["leaks", trace] if name == "leaks" else ["report", trace, "--view", name]
        wanted = json.loads(subprocess.run([malloscope, *command, "--json", *options],
                                           stdout=subprocess.PIPE).stdout)
        found = page.json("api/answer/" + name, words)
        for key, value in found["facts"].items():
            at = wanted
            for part in key.split("."):
                at = at[part]
            same(f"{name} {key} {words}", value, at)
        for table in found["tables"]:
            rows = wanted[table["key"]]
            same(f"rows of {name} {table['key']} {words}", len(table["rows"]) + table["left_out"], len(rows))
            for row, right in zip(table["rows"], rows):
                for column, cell in zip(table["columns"], row["cells"]):
                    if column["kind"] in ("count", "bytes", "duration", "time", "text") and column["key"] in right:
                        same(f"{column['key']} of {name} {table['key']} {words}", cell, right[column["key"]])
                        cells += 1
    return cells


def main():
    malloscope, trace = sys.argv[1:3]
    report = Report(malloscope, trace)
    nodes = asked = cells = 0
    with Page(malloscope, trace) as page:
        info = page.json("api/trace")
        whole = report({})
        for key, value in info["totals"].items():
            same(f"totals.{key}", value, whole["totals"][key])
        head, columns = page.columns("api/timeline")
        same("the timeline's peak", int(max(columns["live_max"], default=0)),
             whole["totals"]["peak_bytes"])
        same("the timeline's end", int(columns["live"][-1]), whole["totals"]["live_bytes"])
        same("the timeline's calls", int(sum(columns["allocations"])),
             whole["totals"]["allocations"])
        for by in ("process", "thread", "phase", "site"):
            head, columns = page.columns("api/timeline", {"by": by})
            groups, slices = len(head["groups"]), head["slices"]
            layers = [sum(int(columns["group_live"][g * slices + i]) for g in range(groups)) for i in range(slices)]
            if by in ("process", "thread"):
                quiet = layers_are_the_curve(by, layers, columns)
                assert quiet > 50 or len(info["processes"]) == 1, "too much happens: this proves too little"
            if by in ("phase", "site") or len(info["processes"]) == 1:
                same(f"the timeline by {by}", layers[-1], whole["totals"]["live_bytes"])
        for question in sys.argv[3:] or [""]:
            words = dict(word.split("=", 1) for word in shlex.split(question))
            cells += compare_answers(page, malloscope, trace, words)
            compare_detail(page, words)
            if words.get("metric") != "cpu":
                compare_blocks(page, words)
            for metric in [words["metric"]] if "metric" in words else METRICS:
                nodes += compare(page, report, {**words, "metric": metric})
                asked += 1
    print(f"{asked} questions, {nodes} nodes, {cells} cells of tables: the page and the reports agree")


if __name__ == "__main__":
    main()
