#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A viewer whose trace is replaced says so and mixes nothing; one that is asked by nobody any more ends its
# work; two do not share a port; a damaged index makes no number wrong; a full disk costs no timeline.
. "$(dirname "$0")/here.sh"
PYTHONPATH=$root/test exec python3 - "$malloscope" "$programs" <<'PYTHON'
import json, os, resource, shutil, subprocess, sys, threading, time
import viewer

malloscope, programs = sys.argv[1:3]

def record(trace, *command):
    subprocess.run([malloscope, "run", "--quiet", "--force", "-o", trace, "--", *command], check=True,
                   stdout=subprocess.DEVNULL)

def said(page, path, words=()):
    status, body = page.get(path, words)
    return status, json.loads(body).get("error", "")

# Another recording in its place, of more processes than the first.
record("t.mscope", f"{programs}/peak")
with viewer.Page(malloscope, "t.mscope") as page:
    record("t.mscope", "sh", "-c", f"{programs}/peak; {programs}/hello 0; {programs}/leaky leaks 9")
    for path, words in [("api/blocks", {"site": 1}), ("api/answer/sizes", {}), ("api/sites", {"min_size": 100}),
                        ("api/flame", {})]:
        status, sentence = said(page, path, words)
        assert status == 409 and "was replaced" in sentence, (path, status, sentence)
    os.remove("t.mscope")
    status, sentence = said(page, "api/flame")
    assert status == 409 and "was removed" in sentence, (status, sentence)
    assert page.process.poll() is None

# While questions wait for their turn: what is answered behind that is of neither.
record("t.mscope", f"{programs}/handover", "60000")
shutil.copy("t.mscope", "whole.mscope")
record("other.mscope", f"{programs}/handover", "20")
with viewer.Page(malloscope, "t.mscope") as page:
    got, came = {}, {}
    def part(i):
        got[i] = page.get("api/detail", {"from": f"{i}%", "to": f"{90 + i}%"})
        came[i] = time.monotonic()
    asking = [threading.Thread(target=part, args=(i,)) for i in range(6)]
    for thread in asking:
        thread.start()
    while not came:
        time.sleep(0.001)
    os.replace("other.mscope", "t.mscope")
    replaced = time.monotonic()
    for thread in asking:
        thread.join()
    late = [got[i][0] for i in got if came[i] > replaced + 0.02]
    assert len(late) >= 3 and set(late) == {409}, (late, {i: got[i][0] for i in got})

# Nothing was allocated.
record("empty.mscope", "/bin/true")
with viewer.Page(malloscope, "empty.mscope") as page:
    for metric in viewer.METRICS + ["lifetime", "overhead", "leaked"]:
        for path, words in [("api/sites", {}), ("api/sites", {"by": "function"}), ("api/flame", {}), ("api/sparks", {})]:
            status, body = page.get(path, {"metric": metric, **words})
            assert status == 200, (metric, path, words, status, body)

# Files may not grow: there is no index, and all else is as ever.
def limited():
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
limited_report = subprocess.run([malloscope, "report", "whole.mscope", "--json"], stdout=subprocess.PIPE, preexec_fn=limited,
                                env={**os.environ, "MALLOSCOPE_INDEX": "always"})
assert limited_report.returncode == 0 and json.loads(limited_report.stdout)["totals"]["allocations"] > 60_000, limited_report
assert not os.path.exists("whole.mscope.index")

# Words that are none.
record("t.mscope", f"{programs}/peak")
with viewer.Page(malloscope, "t.mscope") as page:
    assert said(page, "api/sites", {"module": "a\0b"})[0] == 400
    status, sentence = said(page, "api/sites", {"process": "1"})
    assert status == 400 and "process 1 is not in" in sentence, (status, sentence)
    status, sentence = said(page, "api/sites", {"where": "x" * 20000})
    assert status == 414 and "too long" in sentence, (status, sentence)
    port = page.url.split(":")[2].split("/")[0]
    other = subprocess.run([malloscope, "view", "t.mscope", "--no-open", "--port", port], capture_output=True,
                           text=True, timeout=20)
    assert other.returncode == 3 and "cannot be had" in other.stderr, other

# Nobody waits any more: what waits for its turn, and what has begun.
record("long.mscope", f"{programs}/handover", "150000")
with viewer.Page(malloscope, "long.mscope") as page:
    answers = {}
    def ask(i):  # Each reads all events.
        answers[i] = page.get("api/sites", {"metric": "lifetime", "min_size": 3 + i, "asked": f"q{i}"})[0]
    asking = [threading.Thread(target=ask, args=(i,)) for i in range(12)]
    for thread in asking:
        thread.start()
    # One may not have arrived yet when it is taken back for the first time.
    while any(thread.is_alive() for thread in asking[:11]):
        for i in range(11):
            if asking[i].is_alive():
                assert page.get("api/leave", {"asked": f"q{i}"})[0] == 200
        time.sleep(0.02)
    asking[11].join()
    assert answers[11] == 200, answers
    assert sum(status == 410 for status in answers.values()) >= 5, answers

# Bits that have fallen over in the index.
os.environ["MALLOSCOPE_INDEX"] = "always"
ranges = [("10%", "63.2%"), ("0%", "99.9%"), ("41.7%", "42.3%")]
def sites():
    answers = []
    with viewer.Page(malloscope, "index.mscope") as page:
        for begin, end in ranges:
            head, columns = page.columns("api/sites", {"metric": "allocated", "from": begin, "to": end})
            answers.append((head["totals"], {k: list(v) for k, v in columns.items()}))
    return answers
record("index.mscope", f"{programs}/handover", "3000")
right = sites()
index = "index.mscope.index"
whole = open(index, "rb").read()
for i in range(48):
    damaged = bytearray(whole)
    damaged[len(whole) * (i + 1) // 49] ^= 4
    open(index, "wb").write(damaged)
    assert sites() == right, i
if os.path.exists(index):  # Whoever meets the damage removes it.
    os.remove(index)

# What the page begins with is there, wherever the damage is: it is met at once, and the index is made anew. Of
# many stacks the sums of all are a part of the file that is large enough to be hit.
record("stacks.mscope", "sh", "-c", "ls / | sort; git --version")
with viewer.Page(malloscope, "stacks.mscope"):
    index = "stacks.mscope.index"
whole = open(index, "rb").read()
for i in range(40):
    damaged = bytearray(whole)
    damaged[len(whole) * (80 + i) // 160] ^= 4
    open(index, "wb").write(damaged)
    with viewer.Page(malloscope, "stacks.mscope") as page:
        page.columns("api/timeline")
if os.path.exists(index):
    os.remove(index)
# Curves are in the index alone: that there are none is no answer.
with viewer.Page(malloscope, "stacks.mscope") as page:
    os.truncate(index, 500)
    for path, words in [("api/sparks", {}), ("api/timeline", {"by": "site"})]:
        status, body = page.get(path, words)
        assert status == 500 and b"damaged" in body, (path, status, body)
if os.path.exists(index):
    os.remove(index)

# A disk with no room for the index.
record("small.mscope", f"{programs}/handover", "200")
os.mkdir("disk")
if os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", "disk"],
                                         capture_output=True).returncode == 0:
    try:
        shutil.copy("small.mscope", "disk")
        os.environ["HOME"] = os.environ["XDG_CACHE_HOME"] = os.path.abspath("disk")
        space = os.statvfs("disk")
        with open("disk/filler", "wb") as filler:
            filler.write(b"x" * (space.f_bavail * space.f_frsize - 4096))
        with viewer.Page(malloscope, "disk/small.mscope") as page:
            head, columns = page.columns("api/timeline")
            assert max(columns["live_max"]) > 0
        assert not os.path.exists("disk/small.mscope.index")
    finally:
        subprocess.run(["umount", "disk"], check=True)
PYTHON
