#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""constants.py [--update]: the constants of the judgement as rows of docs/judgement.md; --update writes them there.

A constant is a #define with a number in a file of model, detect, diagnose or compare.  Its meaning is the comment behind
or before it, or where there is none what the document says.  tests/tools/test_constants.py compares the two.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("model", "detect", "diagnose", "compare")
NUMBER = r"(?:0x[0-9a-fA-F]+|\d+\.?\d*(?:e[-+]?\d+)?|\.\d+)"
DEFINE = re.compile(rf"^#define\s+([A-Z][A-Z0-9_]*)[ \t]+(\(?-?{NUMBER}(?:ULL|UL|U|LL|L)?\b[^\n]*?)[ \t]*(?:/\*(.*?)\*/[ \t]*)?$", re.M | re.S)
BITS = re.compile(r"^\(?1U?L?L?\s*<<|^0x")      # flags and hashes are no numbers of the judgement


class Constant:
    def __init__(self, path, match, text):
        self.path, self.name, self.value = path, match[1], " ".join(match[2].split())
        self.line = text.count("\n", 0, match.start()) + 1
        self.span = match.span(2)
        self.meaning = " ".join(re.sub(r"\n\s*\*", " ", match[3] or before(text[:match.start()])).split())

    @property
    def place(self):
        return str(self.path.relative_to(ROOT / "user"))

    @property
    def key(self):
        return f"{self.name}@{self.place}"

    def moved(self, factor):
        """The text of its file with another number, or None where a fifth of it is nothing."""
        text = self.path.read_text()
        number = re.search(NUMBER, self.value)[0]
        if "." in number or "e" in number:
            fresh = f"{float(number) * factor:.12g}"
            fresh += "" if "." in fresh or "e" in fresh else ".0"
        else:
            whole = int(number, 0)
            fresh = str(max(whole + 1, round(whole * factor)) if factor > 1 else min(whole - 1, round(whole * factor)))
        if float(fresh) == float(int(number, 0) if number.startswith("0x") else number) or fresh.startswith("-"):
            return None
        begin = self.span[0] + self.value.index(number)
        return text[:begin] + fresh + text[begin + len(number):]


def before(text):
    """A comment that ends in the line before, or before the other constants of the same paragraph."""
    match = re.search(r"/\*((?:(?!\*/).)*)\*/\n(?:#define[^\n]*\n)*\Z", text, re.S)
    return match[1] if match else ""


def constants():
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / "user" / folder).glob("*.[ch]")):
            text = path.read_text()
            found += [Constant(path, match, text) for match in DEFINE.finditer(text) if not BITS.match(match[2])]
    return found


DOCUMENT = ROOT / "docs" / "judgement.md"
ROW = re.compile(r"^\| `(\w+)` \| `(.*?)` \| (\w+/\w+\.[ch]) \| (.*?) \|$", re.M)


def rows_of(document):
    """What the document says: NAME@FOLDER/FILE -> (value, meaning)."""
    return {f"{name}@{place}": (value, meaning) for name, value, place, meaning in ROW.findall(document)}


def row(at, known):
    meaning = at.meaning.replace("|", "\\|") or known.get(at.key, ("", ""))[1]
    return f"| `{at.name}` | `{at.value}` | {at.place} | {meaning} |"


def update(document):
    """The document with the rows of each folder's table as the sources have them."""
    known = rows_of(document)
    for folder in FOLDERS:
        table = "\n".join(row(at, known) for at in constants() if at.place.startswith(f"{folder}/"))
        head = rf"(## Constants of {folder}\n\n\| constant \| value \| file \| meaning \|\n\|---\|---\|---\|---\|\n)(?:\|[^\n]*\n)*"
        document = re.sub(head, lambda found: found[1] + table + "\n", document)
    return document


def main():
    if sys.argv[1:] == ["--update"]:
        DOCUMENT.write_text(update(DOCUMENT.read_text()))
        return
    if sys.argv[1:]:
        sys.exit(__doc__)
    known = rows_of(DOCUMENT.read_text())
    for at in constants():
        print(row(at, known))


if __name__ == "__main__":
    main()
