#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who opens connections to the viewer's server and says nothing, or says it byte by byte, keeps the page from nobody;
# of another user's connections, most are closed at once.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/peak" >/dev/null || fail "exit $?"
PYTHONPATH=$root/test exec python3 - "$malloscope" <<'PYTHON'
import os, select, socket, sys, time
import viewer

def address(page):
    host, port = page.url.split("/")[2].split(":")
    return host, int(port)

def connect(page, count):
    return [socket.create_connection(address(page)) for _ in range(count)]

def closed(connections, seconds):
    """How many the server has closed by then."""
    until, left = time.monotonic() + seconds, set(connections)
    while left and time.monotonic() < until:
        for ready in select.select(list(left), [], [], 0.05)[0]:
            left.discard(ready)
    return len(connections) - len(left)

def answers_fast(page, what):
    began = time.monotonic()
    for path in ("", "viewer.js", "api/trace", "api/sites"):
        assert page.get(path)[0] == 200, path
    took = time.monotonic() - began
    assert took < 4, f"{what}: the page took {took:.1f} s"

with viewer.Page(sys.argv[1], "t.mscope") as page:
    answers_fast(page, "nobody else")
    silent = connect(page, 200)
    answers_fast(page, "200 silent connections")
    dripping = connect(page, 1)[0]
    began = time.monotonic()
    try:
        dripping.send(b"GET / HTTP/1.1\r\nX: ")
        while time.monotonic() - began < 20:
            dripping.send(b"x")
            time.sleep(0.3)
    except OSError:
        pass
    took = time.monotonic() - began
    assert took < 8, f"a question that drips is heard for {took:.1f} s"
    assert closed(silent, 10) == 200, "silent connections stay open"

    # Headers without end are not kept.
    endless = connect(page, 1)[0]
    sent, piece = 0, b"a:b\r\n" * 20000
    try:
        endless.send(b"GET / HTTP/1.1\r\n")
        while sent < 50_000_000:
            endless.settimeout(3)
            sent += endless.send(piece)
    except OSError:
        pass
    assert sent < 20_000_000, f"{sent} bytes of headers are heard"
    with open(f"/proc/{page.process.pid}/status") as status:
        highest = int(next(line for line in status if line.startswith("VmHWM")).split()[1])
    assert highest < 150_000, f"the server took {highest} kB"
    answers_fast(page, "endless headers")

    if os.geteuid() == 0:
        ready, done = os.pipe(), os.pipe()
        if os.fork() == 0:
            os.setuid(65534)
            others = connect(page, 300)
            os.write(ready[1], bytes([min(255, closed(others, 1))]))
            os.read(done[0], 1)
            os._exit(0)
        count = os.read(ready[0], 1)[0]
        answers_fast(page, "300 connections of another user's")
        os.write(done[1], b"x")
        os.wait()
        assert count == 255, f"only {count} of another user's connections were closed at once"
        # Who was told the address may look at the page all the same, once those are gone.
        if os.fork() == 0:
            os.setuid(65534)
            for _ in range(100):
                try:
                    os._exit(page.get("")[0] != 200)
                except OSError:
                    time.sleep(0.1)
            os._exit(1)
        assert os.wait()[1] == 0, "another user cannot look"
PYTHON
