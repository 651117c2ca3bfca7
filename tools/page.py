#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
page.py FOLDER > HEADER: puts the report page together. Its template names the styles and scripts of the folder ({{style NAME}},
{{script NAME...}}) and the place of the data ({{data}}), and its content security policy allows exactly these by their hashes
({{style-hash}}, {{script-hash}}). The header has the bytes before and after the data.
"""
import base64
import hashlib
import os
import re
import sys


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def policy_hash(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page_of(folder):
    """The page before and after its data."""
    page, hashes = read(folder, "page.html"), {}
    for kind in ("style", "script"):
        found = re.search(r"\{\{" + kind + r" ([^}]*)\}\}", page)
        text = "".join(read(folder, name) for name in found[1].split())
        if "</" + kind in text:
            sys.exit(f"page.py: a {kind} would end early: it contains </{kind}")
        hashes[kind] = policy_hash(text)
        page = page.replace(found[0], text)
    for kind, value in hashes.items():
        page = page.replace("{{" + kind + "-hash}}", value)
    return page.split("{{data}}")


def array(name, text):
    data = text.encode()
    lines = (",".join(str(byte) for byte in data[at:at + 32]) for at in range(0, len(data), 32))
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(lines) + "};\n"


def main():
    before, after = page_of(sys.argv[1])
    sys.stdout.write("/* Made by page.py. */\n" + array("page_before", before) + array("page_after", after))


if __name__ == "__main__":
    main()
