#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Usage: test_shape.py [--list KEY | --store]. The shape of the product: figures of its includes, headers and functions, none of
which is above what tests/data/shape.json has stored for it. A change that makes one smaller stores it with --store, so that the
stored figures only fall; --list prints what one figure counts.
"""
import json
import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import test_layers  # noqa: E402

ROOT = os.path.join(HERE, "..", "..")
STORED = os.path.join(HERE, "..", "data", "shape.json")
FOLDERS = ("user", "bpf", "include")
FIGURES = {
    "upward_includes": "includes of a folder above",
    "circles": "include circles of files, foo.c, foo.h and foo_private.h being one",
    "wide_private_headers": "private headers for more than 4 files",
    "foreign_prefixes": "exported functions that begin with the name of neither their header nor its folder",
    "open_headers_pct": "headers that define structs, in percent",
    "complex_functions": "functions of a McCabe complexity above 30",
    "long_functions": "functions of more than 60 lines",
    "mean_lines": "mean length of a function in lines",
}
PRIVATE = re.compile(r"_(private|parts)$")
INCLUDED = re.compile(r'^#include [<"]([^">]+)[">]', re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
OPEN_STRUCT = re.compile(r"^(?:typedef )?struct \w+ \{", re.M)
PROTOTYPE = re.compile(r"^(?!static|typedef|extern \"C\"|return|else)[A-Za-z_][\w \t*]*?[ \t*](\w+)\([^;{}()]*(?:\([^()]*\)[^;{}()]*)*\)[^;{}=]*;", re.M)


class Tree:
    """The sources of a product: {path: text without comments}."""

    def __init__(self, texts):
        self.texts = {path: COMMENT.sub(" ", text) for path, text in texts.items()}
        self.headers = {path: text for path, text in self.texts.items() if path.endswith(".h")}

    @classmethod
    def read(cls, root):
        texts = {}
        for folder in FOLDERS:
            for directory, _, names in os.walk(os.path.join(root, folder)):
                for name in (name for name in names if name.endswith((".c", ".h"))):
                    path = os.path.join(directory, name)
                    with open(path, encoding="utf-8") as file:
                        texts[os.path.relpath(path, root)] = file.read()
        return cls(texts)

    def find(self, path, header):
        """The path of a header that a file includes, or None where it is not the product's."""
        for base in (os.path.dirname(path), "user", "include", "bpf"):
            found = os.path.normpath(os.path.join(base, header))
            if found in self.texts:
                return found
        return None

    def includes(self):
        """(file, included file) of the product."""
        for path, text in self.texts.items():
            for header in INCLUDED.findall(text):
                found = self.find(path, header)
                if found:
                    yield path, found


def subject(path):
    """The name that a file, its header and its private header share."""
    return PRIVATE.sub("", os.path.splitext(path)[0])


def circles(edges):
    """Groups of more than one node that reach each other (Tarjan's components, without recursion)."""
    graph = {}
    for begin, end in edges:
        graph.setdefault(begin, set()).add(end)
        graph.setdefault(end, set())
    order, low, on_stack, stack, found = {}, {}, set(), [], []
    for root in sorted(graph):
        work = [(root, iter(sorted(graph[root])))] if root not in order else []
        if work:
            order[root] = low[root] = len(order)
            stack.append(root)
            on_stack.add(root)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in order:
                    order[other] = low[other] = len(order)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(sorted(graph[other]))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], order[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    group = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                        on_stack.discard(group[-1])
                    if len(group) > 1:
                        found.append(sorted(group))
    return sorted(found)


def circles_of(tree):
    return [", ".join(group) for group in circles({(subject(a), subject(b)) for a, b in tree.includes() if subject(a) != subject(b)})]


def wide_private_headers(tree, most=4):
    """A header's own source is one of its files."""
    users = {}
    for path, header in tree.includes():
        if PRIVATE.search(os.path.splitext(header)[0]) and path.endswith(".c"):
            users.setdefault(header, set()).add(path)
    return [f"{header}: {len(files)}" for header, files in sorted(users.items()) if len(files) > most]


def foreign_prefixes(tree):
    found = []
    for path, text in sorted(tree.headers.items()):
        if not path.startswith("user/"):
            continue
        own = {os.path.basename(subject(path)), os.path.basename(os.path.dirname(path))}
        flat = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", text, flags=re.M)
        found += [f"{path}: {name}" for name in PROTOTYPE.findall(flat) if not any(name == word or name.startswith(word + "_") for word in own)]
    return found


def open_headers(tree):
    return [path for path, text in sorted(tree.headers.items()) if OPEN_STRUCT.search(text)]


def functions(root, paths):
    """[(complexity, lines, place)] by pmccabe."""
    out = subprocess.run(["pmccabe", *paths], cwd=root, capture_output=True, text=True, check=True).stdout
    rows = (line.split("\t") for line in out.splitlines())
    return [(int(row[1]), int(row[4]), f"{row[5]} {row[-1]}" if len(row) > 6 else row[5]) for row in rows]


def measure(root):
    """{figure: (its value, what it counts)}"""
    tree = Tree.read(root)
    found = functions(root, sorted(tree.texts))
    opened = open_headers(tree)
    lists = {
        "upward_includes": test_layers.wrong(os.path.join(root, "user"), test_layers.ORDER),
        "circles": circles_of(tree),
        "wide_private_headers": wide_private_headers(tree),
        "foreign_prefixes": foreign_prefixes(tree),
        "complex_functions": [f"{complexity} {place}" for complexity, _, place in sorted(found, reverse=True) if complexity > 30],
        "long_functions": [f"{lines} {place}" for _, lines, place in sorted(found, key=lambda f: -f[1]) if lines > 60],
    }
    figures = {name: (len(items), items) for name, items in lists.items()}
    figures["open_headers_pct"] = (round(100 * len(opened) / len(tree.headers), 1), opened)
    figures["mean_lines"] = (round(sum(lines for _, lines, _ in found) / len(found), 1), [f"{len(found)} functions"])
    return {name: figures[name] for name in FIGURES}


def above(figures, stored):
    """Sentences about figures that are greater than the stored ones."""
    return [f"{FIGURES[name]}: {value}, {stored[name]} is stored (--list {name} prints them)" for name, (value, _) in figures.items()
            if value > stored[name]]


def table(figures, stored):
    lines = [f"{'figure':<96}{'now':>8}{'stored':>8}"]
    return "\n".join(lines + [f"{FIGURES[name]:<96}{value:>8}{stored.get(name, '-'):>8}" for name, (value, _) in figures.items()])


def stored_figures():
    with open(STORED, encoding="utf-8") as file:
        return json.load(file)


class Shape(unittest.TestCase):
    def test_tree(self):
        figures, stored = measure(ROOT), stored_figures()
        print(table(figures, stored), flush=True)
        self.assertEqual(above(figures, stored), [])

    def test_above(self):
        figures = {name: (1, []) for name in FIGURES}
        self.assertEqual(above(figures, dict.fromkeys(FIGURES, 1)), [])
        self.assertEqual(len(above(figures, {**dict.fromkeys(FIGURES, 1), "circles": 0})), 1)

    def test_circles(self):
        self.assertEqual(circles([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("f", "a")]), [["a", "b", "c"], ["d", "e"]])
        tree = Tree({"user/x/a.c": '#include "x/b.h"\n#include "x/a_private.h"', "user/x/b.c": '#include "x/a.h"', "user/x/a.h": "", "user/x/b.h": "",
                     "user/x/a_private.h": '#include "x/a.h"'})
        self.assertEqual(circles_of(tree), ["user/x/a, user/x/b"])

    def test_private_headers(self):
        tree = Tree({"user/x/a_private.h": "", **{f"user/x/{name}.c": '#include "x/a_private.h"' for name in "abcde"}})
        self.assertEqual(wide_private_headers(tree), ["user/x/a_private.h: 5"])
        self.assertEqual(wide_private_headers(tree, 5), [])

    def test_prefixes(self):
        text = ("int cell__size(void);\nstruct b *model__new(int (*f)(int), char *c);\nstatic inline int other(int a);\nbool foreign__call(\n\tint a);\n"
                "#define M(x) \\\n\tint hidden(x);\n/* int commented(void); */\nstruct s {\n\tint (*member)(void);\n};\n")
        self.assertEqual(foreign_prefixes(Tree({"user/model/cell.h": text, "user/model/cell.c": "int x(void);\n"})), ["user/model/cell.h: foreign__call"])

    def test_open_headers(self):
        tree = Tree({"user/a.h": "struct a;\nstruct a *a__new(void);\n", "user/b.h": "struct b {\n};\n", "user/c.h": "/*\nstruct c {\n*/"})
        self.assertEqual(open_headers(tree), ["user/b.h"])

    def test_functions(self):
        """The longest function of this tree is found with its length."""
        found = functions(ROOT, ["user/base/units.c"])
        self.assertTrue(found and all(complexity >= 1 and lines >= 1 and "user/base/units.c" in place for complexity, lines, place in found), found)


def main():
    if sys.argv[1:2] == ["--list"]:
        print("\n".join(measure(ROOT)[sys.argv[2]][1]))
    elif sys.argv[1:] == ["--store"]:
        figures = measure(ROOT)
        with open(STORED, "w", encoding="utf-8") as file:
            json.dump({name: value for name, (value, _) in figures.items()}, file, indent="\t")
            file.write("\n")
        print(table(figures, stored_figures()))
    else:
        unittest.main(verbosity=int("-v" in sys.argv) + 1)


if __name__ == "__main__":
    main()
