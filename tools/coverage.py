#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Usage: coverage.py DIRECTORY. Prints which share of the product's lines ran, by folder, from what programs that gcc built with
--coverage have left in a directory (`make coverage`), and the files of which less than FEW_PCT ran.
"""
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("user", "bpf", "include")
FEW_PCT = 60
AT_ONCE = 50


def notes(directory):
    """What gcc wrote of each object, below a directory; where no program contains the object nothing of it ran."""
    return sorted(os.path.join(where, name) for where, _, names in os.walk(directory) for name in names if name.endswith(".gcno"))


def read(paths):
    """Reports of gcov, each of an object."""
    for first in range(0, len(paths), AT_ONCE):
        out = subprocess.run(["gcov", "--json-format", "--stdout", *paths[first:first + AT_ONCE]], cwd=ROOT, capture_output=True, text=True,
                             check=True).stdout
        yield from map(json.loads, filter(None, out.splitlines()))


def add(reports, root=ROOT):
    """{file of the product: {line: whether it ran in any program}}"""
    found = {}
    for report in reports:
        for file in report["files"]:
            path = os.path.relpath(os.path.join(root, file["file"]), root)
            if path.split(os.sep)[0] in FOLDERS:
                lines = found.setdefault(path, {})
                for line in file["lines"]:
                    lines[line["line_number"]] = lines.get(line["line_number"], False) or line["count"] > 0
    return found


def pct(lines):
    """The share of lines that ran, of a list of {line: ran}."""
    values = [ran for some in lines for ran in some.values()]
    return 100 * sum(values) / len(values) if values else 0


def table(found):
    """Lines of text: the folders, the files of which few lines ran, and the whole."""
    folders = {}
    for path, lines in found.items():
        folders.setdefault(os.path.dirname(path), []).append(lines)
    text = [f"{folder:<24}{sum(map(len, lines)):>8} lines{pct(lines):>8.1f} %" for folder, lines in sorted(folders.items())]
    few = sorted((pct([lines]), path) for path, lines in found.items() if lines and pct([lines]) < FEW_PCT)
    text += [f"below {FEW_PCT} %:"] + [f"  {path:<40}{share:>8.1f} %" for share, path in few]
    return text + [f"{'all':<24}{sum(map(len, found.values())):>8} lines{pct(found.values()):>8.1f} %"]


def main():
    paths = notes(sys.argv[1])
    if not paths:
        print(f"coverage.py: no object was built with --coverage in {sys.argv[1]}", file=sys.stderr)
        return 1
    print("\n".join(table(add(read(paths)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
