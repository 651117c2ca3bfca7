#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""constants.py [--update]: the constants of the judgement as rows of docs/judgement.md; --update writes them there.

What decides: a #define with a number in a file of model, detect, diagnose or compare, and a CONSTANT of tunables.def, which
no option sets.  A #define that is an expression of another constant is not listed.  What is a bound or a format: an
enumerator with a number (enum { NAME = 8 };) and a static const double.  The meaning is the comment behind or before the
constant.  Source and cases are what the document says: the cases of a constant are dropped where its value has changed, and
sensitivity.py --document writes what it has found.
tests/tools/test_constants.py compares the document with the sources.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("model", "detect", "diagnose", "compare")
TUNABLES = ROOT / "include" / "vapro" / "tunables.def"
NUMBER = r"(?:0x[0-9a-fA-F]+|\d+\.?\d*(?:e[-+]?\d+)?|\.\d+)"
DEFINE = re.compile(rf"^#define\s+([A-Z][A-Z0-9_]*)[ \t]+(\(?-?{NUMBER}(?:ULL|UL|U|LL|L)?\b[^\n]*?)[ \t]*(?:/\*(.*?)\*/[ \t]*)?$", re.M | re.S)
BITS = re.compile(r"^\(?1U?L?L?\s*<<|^0x")      # flags and hashes are no numbers of the judgement
BOUNDS = re.compile(r"^(?:enum \{ ([^}]*) \}|static const double ([^;\n]*));[ \t]*(?:/\*(.*?)\*/[ \t]*)?$", re.M | re.S)
MEMBER = re.compile(rf"^CONSTANT\(\w+, (\w+), ({NUMBER})\)[ \t]*(?:/\*(.*?)\*/)?[ \t]*$", re.M)
BOUND = re.compile(rf"([A-Z][A-Z0-9_]*) = (\(?-?{NUMBER}[^,}}]*)")
COLUMNS = ("constant", "value", "file", "meaning", "source", "held from below by", "held from above by")
SOURCES = re.compile(r"(?:VAPRO \(PPoPP'22\) section \d|NoiseMiner section \d|statistic|definition|measured|chosen)\b")


class Constant:
    def __init__(self, path, text, names, span, meaning):
        self.path, self.name, self.value = path, names[0], " ".join(names[1].split())
        self.bound, self.span = names[2], span
        self.line = text.count("\n", 0, span[0]) + 1
        self.meaning = " ".join(re.sub(r"\n\s*\*", " ", meaning).split()).replace("|", "\\|")

    @property
    def place(self):
        return str(self.path.relative_to(ROOT / ("include" if self.path.suffix == ".def" else "user")))

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
    match = re.search(r"/\*((?:(?!\*/).)*)\*/\n(?:(?:#define|enum \{|static const double)[^\n]*\n)*\Z", text, re.S)
    return match[1] if match else ""


def constants_of(path, text):
    for match in DEFINE.finditer(text):
        if not BITS.match(match[2]):
            yield Constant(path, text, (match[1], match[2], False), match.span(2), match[3] or before(text[:match.start()]))
    for match in MEMBER.finditer(text):
        yield Constant(path, text, (match[1], match[2], False), match.span(2), match[3] or "")
    for match in BOUNDS.finditer(text):
        group = 1 if match[1] else 2
        for found in BOUND.finditer(match[group]):
            span = tuple(match.start(group) + at for at in found.span(2))
            yield Constant(path, text, (found[1], found[2].strip(), True), span, match[3] or before(text[:match.start()]))


def constants():
    """Those that decide, and bounds; without what follows from others."""
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / "user" / folder).glob("*.[ch]")):
            found += sorted(constants_of(path, path.read_text()), key=lambda at: at.span)
    found += constants_of(TUNABLES, TUNABLES.read_text())
    names = {at.name for at in found}
    return [at for at in found if not names.intersection(re.findall(r"[A-Z][A-Z0-9_]+", at.value))]


DOCUMENT = ROOT / "docs" / "judgement.md"
ROW = re.compile(r"^\| `(\w+)` \| `(.*?)` \| (\w+/\w+\.\w+) \| (.*?) \|(?: (.*?) \| (.*?) \| (.*?) \|)?$", re.M)
UNKNOWN = "not measured"


class Row:
    """What the document says of a constant."""
    def __init__(self, match=None):
        self.value, self.meaning, self.source = (match[at] or "" for at in (2, 4, 5)) if match else ("", "", "")
        self.below, self.above = (match[at] or UNKNOWN for at in (6, 7)) if match else (UNKNOWN, UNKNOWN)


def rows_of(document):
    return {f"{match[1]}@{match[3]}": Row(match) for match in ROW.finditer(document)}


def row(at, known, held):
    """held: of some constants the texts of the last two columns."""
    old = known.get(at.key, Row())
    cells = [f"`{at.name}`", f"`{at.value}`", at.place, at.meaning or old.meaning]
    if not at.bound:
        below, above = held.get(at.key) or ((old.below, old.above) if old.value == at.value else (UNKNOWN, UNKNOWN))
        cells += [old.source or "chosen", below, above]
    return f"| {' | '.join(cells)} |"


def table(columns, rows):
    return "\n".join([f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *rows]) + "\n"


def update(document, held=None):
    """The document with the tables, and how many rows they have, as the sources have them."""
    known, found = rows_of(document), constants()
    parts = {folder: (COLUMNS, [at for at in found if not at.bound and at.place.startswith(f"{folder}/")]) for folder in FOLDERS}
    parts["configuration"] = (COLUMNS, [at for at in found if at.path == TUNABLES])
    parts["bounds"] = (COLUMNS[:4], [at for at in found if at.bound])
    for part, (columns, rows) in parts.items():
        text = table(columns, [row(at, known, held or {}) for at in rows])
        document = re.sub(rf"(<!-- {part} -->\n)(?:\|[^\n]*\n)*", lambda mark, text=text: mark[1] + text, document)
    bounds = len(parts["bounds"][1])
    return re.sub(r"\d+ numbers decide, \d+ are", f"{len(found) - bounds} numbers decide, {bounds} are", document)


def main():
    if sys.argv[1:] == ["--update"]:
        DOCUMENT.write_text(update(DOCUMENT.read_text()))
        return
    if sys.argv[1:]:
        sys.exit(__doc__)
    known = rows_of(DOCUMENT.read_text())
    for at in constants():
        print(row(at, known, {}))


if __name__ == "__main__":
    main()
