#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of the largest programs in Debian that come with debug files, compared with
llvm-symbolizer's (src/symbols/differential_test.cc does the comparing).

    ceph_symbols.py SYMBOLS_TEST

Downloads ceph's packages (900 MB), unpacks them in a temporary folder and puts each
program and its debug file together again, so that both sides read the same file.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

FILES = {  # A file, the packages it and its debug file are in.
    "usr/bin/ceph-osd": ("ceph-osd", "ceph-osd-dbg"),
    "usr/lib/x86_64-linux-gnu/librbd.so.1": ("librbd1", "librbd1-dbg"),
    "usr/lib/x86_64-linux-gnu/librados.so.2": ("librados2", "librados2-dbg"),
}


def debug_file(root, path):
    notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True)
    build_id = notes.stdout.split("Build ID: ")[1].split()[0]
    return root / f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"


def main():
    with tempfile.TemporaryDirectory(prefix="mscope-ceph.") as folder:
        root = pathlib.Path(folder)
        packages = [p for pair in FILES.values() for p in pair]
        os.chmod(root, 0o777)  # apt downloads as another user.
        got = subprocess.run(["apt-get", "download", "-q", *packages], cwd=root)
        if got.returncode != 0:
            sys.exit("cannot download ceph's packages from Debian")
        for package in root.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, root], check=True)
            package.unlink()
        whole = []
        for name in FILES:
            path = (root / name).resolve()
            whole.append(root / path.name)
            subprocess.run(["eu-unstrip", path, debug_file(root, path), "-o", whole[-1]], check=True)
        env = {**os.environ, "MSCOPE_COMPARE": " ".join(map(str, whole))}
        sys.exit(subprocess.run([sys.argv[1], "--gtest_filter=*InTheEnvironment"], env=env).returncode)


if __name__ == "__main__":
    main()
