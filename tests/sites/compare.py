#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the sites that vapro chooses with tests/sites/independent.py, function by function, for
the argument masks of the rows, all arguments and none. They must agree. Differences to an older
scanner (reference/site_scan.py, given by --reference) are listed with the rule that explains them.

  compare.py --print-sites build/tests/print_sites [--reference site_scan.py] [LIB [REGEX]]

The last line is a JSON summary; the exit code is 1 where the two disagree."""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import independent  # noqa: E402

DEFAULT = "/usr/lib/x86_64-linux-gnu/libmpi.so.40"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def ours(program, library, regex, mask):
    out = {}
    for line in run(program, library, regex, *([mask] if mask else [])).splitlines():
        head, _, reason = line.partition(" # ")
        name, vaddr, shift, klass, mnemonic = head.split()
        out[name, int(vaddr, 16)] = (int(shift), klass, mnemonic, reason)
    return out


def reference_sites(script, library, regex):
    """{name: (shift with the stack intact or None, its instruction)} of the older scanner."""
    out = {}
    for line in run(sys.executable, script, library, regex, "verbose").splitlines():
        m = re.match(r"(\S+)\s+first=(\S+)\s+entry@(\(.*?\)|None) ret@(\(.*?\)|None)\s", line)
        if m:
            place = re.match(r"\((\d+), '(\w+)'", m[4])
            out[m[1]] = (int(place[1]), place[2]) if place else (None, "")
    return out


def explain(site, old, instruction, reason):
    """The rule that makes our site differ from the older scanner's one with the stack intact."""
    if old and instruction == "nop5":
        return "(e) never a nop5 at k > 0"
    if old is None:
        return "(e) it knows fewer emulated instructions" if site[0] else None
    if site[1] == "refused":
        return "refused: " + reason
    if site[0] == 0 and old:
        for word, rule in (("argument", "(d) argument register written"), ("branch", "(c) a branch lands there"),
                           ("symbol", "(c) another symbol"), ("size", "(c) extent unknown"),
                           ("decodable", "(c) not all decodable"), ("jump", "(c) indirect jump"),
                           ("stack", "(b) stack pointer or CFA"), ("frame", "(b) no CFA"),
                           ("control", "(a) the path is not straight")):
            if word in reason:
                return rule
    if site[0] > old:
        return "(e) not emulated there, or not on every kernel"
    return "(e) other set of emulated instructions"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="?", default=DEFAULT)
    parser.add_argument("regex", nargs="?", default="MPI_.*")
    parser.add_argument("--print-sites", default="build/tests/print_sites")
    parser.add_argument("--reference", help="the older scanner, to list what differs and why")
    arguments = parser.parse_args()

    summary = {"library": arguments.library, "regex": arguments.regex, "masks": {}}
    different = 0
    library = independent.Library(arguments.library)
    pattern = re.compile(arguments.regex)
    with tempfile.NamedTemporaryFile("w+") as rows:
        rows.write(run(arguments.print_sites, "--arguments"))
        rows.flush()
        for mask in (None, "all", "none"):
            a = ours(arguments.print_sites, arguments.library, arguments.regex, mask)
            mask_of = independent.mask_of(mask or rows.name)
            # Only exports of .dynsym are compared; independent.py also reads .symtab.
            b = {key: library.site(key[0], key[1], mask_of(key[0])) for key in library.functions
                 if pattern.fullmatch(key[0]) and key in a}
            disagree = [key for key in a if key not in b or a[key][:2] != b[key][:2]]
            for key in disagree:
                print(f"DIFFERENT mask={mask or 'rows'} {key[0]}@{key[1]:#x}: ours {a[key]} independent {b.get(key)}")
            different += len(disagree)
            count = collections.Counter(
                "shifted" if s[0] else {"emulated": "entry_emulated", "nop5": "entry_nop5", "stepped": "entry_stepped",
                                        "refused": "refused"}[s[1]] for s in a.values())
            entered = [key[0] for key in a if library.audit(key[1], a[key][0], library.functions[key][0])]
            for name in entered:
                print(f"ENTERED FROM ELSEWHERE mask={mask or 'rows'} {name}")
            summary["masks"][mask or "rows"] = {
                "functions": len(a), "agree": len(a) - len(disagree), "entered_from_elsewhere": len(entered), **count,
                "kept_at_entry": dict(collections.Counter(s[3] for s in a.values() if s[1] == "stepped" and s[3]))}
            if mask is None:
                chosen = a
    if arguments.reference:
        old = reference_sites(arguments.reference, arguments.library, arguments.regex)
        rules, versions = collections.Counter(), collections.Counter(name for name, _ in chosen)
        for (name, vaddr), site in sorted(chosen.items()):
            if name not in old:
                continue
            # Without a place that leaves the stack intact the older scanner's answer is the entry.
            was, instruction = old[name]
            if (was or 0) == site[0]:
                continue
            # It knows one version of a name only, which may not be this one.
            rule = "another version of the symbol" if versions[name] > 1 else \
                explain(site, was, instruction, site[3]) or "unexplained"
            rules[rule] += 1
            print(f"reference: {name}@{vaddr:#x}: +{site[0]} {site[1]}, older +{was}: {rule}")
        summary["reference"] = {"functions": len(old), "differences": sum(rules.values()), "rules": dict(rules)}
    summary["different"] = different
    print(json.dumps(summary))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
