# SPDX-License-Identifier: Apache-2.0
"""The programs that are measured and counted, with inputs made here.

Everything is deterministic and sized by `scale`: at 1.0 each takes one to four
seconds natively on the machines we know, at 0.1 it is a test.
"""
import dataclasses
import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Workload:
    name: str
    command: list
    env: dict = dataclasses.field(default_factory=dict)
    cores: int = 1  # How many the program itself may use.


def _sqlite(folder, scale):
    n = int(600_000 * scale)
    (folder / "big.sql").write_text(f"""
create table word(id integer primary key, name text, weight real);
with recursive c(x) as (select 1 union all select x + 1 from c where x < {n})
  insert into word select x, 'word-' || (x * 7919 % {n}), x * 0.5 from c;
create index by_name on word(name);
create table pair as select a.id as a, b.id as b, a.name || '/' || b.name as name
  from word a join word b on b.name = 'word-' || (a.id % 1000);
select count(*), sum(length(name)) from pair;
select group_concat(upper(substr(name, 1, 6)), '') is null from word group by id % 5000 limit 3;
select count(distinct replace(name, '-', '+')) from word;
""")
    return Workload("sqlite3", ["/usr/bin/sqlite3", ":memory:", f".read {folder}/big.sql"])


def _python(folder, scale, only_objects=False):
    """Builds, writes, reads, searches and stores a tree: three to four million allocations a
    second, about as many as in the program that the goals were set with. With nothing but
    objects it is twice that."""
    name = "only_objects.py" if only_objects else "objects.py"
    store = "" if only_objects else """
    stored = lzma.compress(text.encode()[:400_000])
    digest = hashlib.sha256(stored).hexdigest()"""
    (folder / name).write_text(f"""
import hashlib, json, lzma, re
class Node:
    def __init__(self, name, children):
        self.name, self.children, self.tags = name, children, {{}}
def tree(depth, name):
    node = Node(name, [tree(depth - 1, name + str(i)) for i in range(4)] if depth else [])
    node.tags = {{f"{{name}}-{{i}}": [i, str(i)] for i in range(3)}}
    return node
def flat(node):
    return {{"name": node.name, "tags": node.tags, "children": [flat(c) for c in node.children]}}
for round in range({max(1, int(20 * scale))}):
    root = tree(6, "n")
    text = json.dumps(flat(root))
    again = json.loads(text)
    words = re.findall(r"n\\d+", text)
    counts = {{}}
    for w in words:
        counts[w] = counts.get(w, 0) + 1{store}
print(len(text), len(counts))
""")
    return Workload("python3, only objects" if only_objects else "python3",
                    ["/usr/bin/python3.11", "-S", str(folder / name)],
                    {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"})


def _perl(folder, scale):
    (folder / "hash.pl").write_text(f"""
use strict; my %words; my $total = 0;
srand(1);
for my $round (1 .. {max(1, int(6 * scale))}) {{
  for my $i (1 .. 100000) {{
    my $key = "key" . ($i * 7919 % 50021);
    push @{{$words{{$key}}}}, [$i, "value $i of round $round"];
  }}
  for my $key (sort keys %words) {{
    $total += scalar map {{ length $_->[1] }} @{{$words{{$key}}}};
    delete $words{{$key}} if length($key) % 2;
  }}
}}
print "$total ", scalar(keys %words), "\\n";
""")
    return Workload("perl", ["/usr/bin/perl", str(folder / "hash.pl")],
                    {"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"})


def _z3(folder, scale):
    lines = ["(set-option :smt.random_seed 1)", "(declare-fun f (Int) Int)"]
    lines += [f"(declare-const x{i} Int)" for i in range(40)]
    for i in range(39):
        lines.append(f"(assert (< (+ x{i} (f x{i})) (* 3 x{i + 1})))")
        lines.append(f"(assert (or (> x{i} {i * 7 % 13}) (= (f x{i + 1}) (- x{i} {i}))))")
    for round in range(int(4000 * scale) or 1):
        a, b, c = round % 40, round * 7 % 40, round * 11 % 40
        lines += ["(push)", f"(assert (= (mod (+ x{a} x{b}) {3 + round % 17}) {round % 3}))",
                  f"(assert (distinct (f x{a}) (f x{b}) (f x{c}) {round}))",
                  f"(assert (> (* x{a} {1 + round % 5}) (+ x{c} {round})))",
                  "(check-sat)", "(pop)"]
    (folder / "incremental.smt2").write_text("\n".join(lines) + "\n")
    return Workload("z3", ["/usr/bin/z3", str(folder / "incremental.smt2")])


def _ghostscript(folder, scale):
    (folder / "pages.ps").write_text(f"""%!PS
/Times-Roman findfont 9 scalefont setfont
1 1 {max(1, int(240 * scale))} {{ /page exch def
  0 1 70 {{ /line exch def
    40 780 line 10 mul sub moveto
    0 1 18 {{ page mul line add 7919 mul 100003 mod 10 string cvs show ( ) show }} for
  }} for
  0 1 300 {{ /i exch def
    i 7 mul 550 mod i 13 mul 780 mod moveto
    i 3 mul 550 mod i 5 mul 780 mod i 11 mul 550 mod i 17 mul 780 mod
    i 550 mod i 2 mul 780 mod curveto
    i 300 div page 240 div 0.5 setrgbcolor stroke
  }} for
  showpage
}} for
""")
    return Workload("ghostscript", ["/usr/bin/gs", "-q", "-dBATCH", "-dNOPAUSE", "-dSAFER",
                                    "-sDEVICE=pdfwrite", "-sOutputFile=/dev/null",
                                    str(folder / "pages.ps")])


def _clang(folder, scale, syntax_only):
    copies = f"-DCOPIES={max(1, int((8 if syntax_only else 3) * scale))}"
    compiler = ["/usr/bin/clang++-19", "-std=c++20", "-w", copies, str(HERE / "heavy.cc")]
    if syntax_only:
        return Workload("clang -fsyntax-only", [*compiler, "-fsyntax-only"])
    return Workload("clang -O1", [*compiler, "-O1", "-c", "-o", "/dev/null"])


def build_storm(folder):
    program = folder / "storm"
    source = HERE / "storm.cc"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["g++", "-O2", "-g", "-std=c++17", "-pthread", str(source), "-o",
                        str(program)], check=True)
    return program


def _storm(folder, scale, threads):
    calls = int(20_000_000 * scale / threads)
    return Workload(f"storm, {threads} threads" if threads > 1 else "storm, 1 thread",
                    [str(build_storm(folder)), str(threads), str(calls)], cores=2)


def real_programs(folder, scale=1.0):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return [_clang(folder, scale, False), _clang(folder, scale, True), _sqlite(folder, scale),
            _python(folder, scale), _perl(folder, scale), _z3(folder, scale),
            _ghostscript(folder, scale)]


def storms(folder, scale=1.0):
    """Programs that do little but allocate: they are measured, but no goal is set for the last."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return [_storm(folder, scale, t) for t in (1, 2, 4)] + [_python(folder, scale, True)]


if __name__ == "__main__":  # How long each takes natively, and whether it runs at all.
    import sys
    import time
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    for w in real_programs("/tmp/mscope-workloads", scale) + storms("/tmp/mscope-workloads", scale):
        began = time.monotonic()
        done = subprocess.run(w.command, env={**os.environ, **w.env}, capture_output=True)
        print(f"{w.name:22} {time.monotonic() - began:6.2f} s  exit {done.returncode} "
              f"{(done.stdout + done.stderr)[-70:]!r}")
