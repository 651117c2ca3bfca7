#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Validates NDJSON files (- for standard input) against build/vapro.schema.json, which `make` writes.

usage: schema_check.py FILE...
"""
import json
import os
import sys

import jsonschema

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "vapro.schema.json")
SHOWN = 20


def not_json(name):
    """Python reads NaN and Infinity, which are no JSON."""
    raise ValueError(f"{name} is no JSON")


def complaints(validator, line):
    try:
        record = json.loads(line, parse_constant=not_json)
    except ValueError as error:
        return [str(error)]
    return [f"{'/'.join(map(str, error.absolute_path)) or 'record'}: {error.message[:200]}"
            for error in validator.iter_errors(record)]


def main(paths):
    if not paths:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    with open(SCHEMA, encoding="utf-8") as file:
        schema = json.load(file)
    validator_class = jsonschema.validators.validator_for(schema)
    validator_class.check_schema(schema)
    validator = validator_class(schema)
    passed = failed = 0
    for path in paths:
        # surrogateescape would let bad UTF-8 pass
        with (open(0, encoding="utf-8", errors="strict", closefd=False) if path == "-"
              else open(path, encoding="utf-8", errors="strict")) as file:
            try:
                for number, line in enumerate(file, 1):
                    found = complaints(validator, line)
                    passed += not found
                    failed += bool(found)
                    for text in found if failed <= SHOWN else []:
                        print(f"{path}:{number}: {text}")
            except UnicodeDecodeError as error:
                failed += 1
                print(f"{path}: {error}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
