#!/usr/bin/env python3
"""Writes crates/jni/natives.tsv of javap's lists (scripts/jvm.sh natives).

    natives.py FILE LIST...     LIST is what `javap -p -s` prints of a jar's classes, named for the jar's version
"""

import re
import sys
from pathlib import Path

HEAD = (
    "# Natives of the jars of rocksdbjni, by scripts/jvm.sh natives: symbol after `Java_org_rocksdb_`, descriptor, jars\n"
    "# (frdb: frocksdbjni 8.10.0-ververica-1.0; A..B: from version A to B of {}); tests: of rocksdbjni's own tests.\n"
)


def mangled(name):
    special = {"_": "_1", ";": "_2", "[": "_3", "/": "_", "$": "_00024"}
    return "".join(special.get(c, c) for c in name)


def natives_of(text):
    """Symbols with their descriptors, as javac -h names them: overloaded ones by their parameters too."""
    found, owner = [], None
    lines = text.splitlines()
    for line, following in zip(lines, lines[1:]):
        if declared := re.search(r"\b(?:class|interface|enum) org\.rocksdb\.([\w.$]+)", line) if line[:1].strip() else None:
            owner = declared[1].replace(".", "/")
        elif named := re.search(r" native .*?(\w+)\(", line):
            found.append((mangled(owner) + "_" + mangled(named[1]), following.split(": ")[1]))
    symbols = [symbol for symbol, _ in found]
    for symbol, descriptor in found:
        if symbols.count(symbol) > 1:
            symbol += "__" + mangled(descriptor[1 : descriptor.index(")")])
        yield symbol, descriptor


def ranges(has, versions):
    """`has` as ranges of the ordered versions."""
    runs = []
    for place, version in enumerate(versions):
        if version in has:
            if runs and runs[-1][1] == place - 1:
                runs[-1][1] = place
            else:
                runs.append([place, place])
    return " ".join(versions[a] if a == b else f"{versions[a]}..{versions[b]}" for a, b in runs)


def main(file, *lists):
    jars = {}
    for path in map(Path, lists):
        for native in natives_of(path.read_text()):
            jars.setdefault(native, set()).add(path.name)
    numbered = {Path(path).name for path in lists} - {"frdb"}
    versions = sorted(numbered, key=lambda version: [int(part) for part in version.split(".")])
    rows = [line for line in Path(file).read_text().splitlines() if line.endswith("\ttests")]
    for (symbol, descriptor), has in jars.items():
        of = ["frdb"] * ("frdb" in has) + [ranges(has, versions)] * bool(has & numbered)
        rows.append(f"{symbol}\t{descriptor}\t{' '.join(of)}")
    Path(file).write_text(HEAD.format(" ".join(versions)) + "".join(row + "\n" for row in sorted(rows)))


main(*sys.argv[1:])
