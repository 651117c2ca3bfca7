#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Writes the man page vapro-records(5) from the schema: records.py vapro.schema.json [VERSION] > vapro-records.5
"""
import json
import sys

HEAD = r""".TH VAPRO-RECORDS 5 2026-11-24 "vapro @VERSION@" "vapro"
.SH NAME
vapro\-records \- the NDJSON records of vaprod and vapro
.SH DESCRIPTION
.BR vaprod (8),
.B vapro run
and
.B vapro analyze
write one JSON object per line, a record. This page is made from the schema
.IR vapro.schema.json ,
which is installed in share/vapro and by which programs can check records. In it a key is written with its type; keys
without "may be absent" are in each record of the type.
.PP
Keys, types of records and words may be added in later versions; from 0.1.0 on no key is removed, and none changes its
meaning. A reader ignores what it does not know.
.PP
A file may hold several runs, one after the other: each begins with
.BR hello .
"""
TAIL = r""".SH EXAMPLES
The alarms of a run, the latest revision of each, with
.BR jq (1):
.PP
.RS
.nf
jq \-s '[.[] | select(.type == "variance")] | group_by(.job, .id)[] | max_by(.revision)
       | select(.alarm) | {severity, ranks, begin, lost_seconds}' run.ndjson
.fi
.RE
.PP
Warnings as they come:
.PP
.RS
.nf
vaprod \-\-output \- | jq \-r 'select(.type == "warning") | .text'
.fi
.RE
.SH SEE ALSO
.BR vapro (1),
.BR vaprod (8)
"""


def roff(text):
    """Text as roff reads it: a dash is no hyphen, and no line begins with a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def referred(schema, definitions):
    """What a reference refers to; any other schema itself."""
    return definitions[schema["$ref"].split("/")[-1]] if "$ref" in schema else schema


def type_of(schema, definitions):
    """A type in words: "number or null", "array of string", "one of a, b"."""
    if "$ref" in schema:
        return type_of(referred(schema, definitions), definitions)
    if "allOf" in schema:
        return type_of(schema["allOf"][0], definitions)
    if "const" in schema:
        return f"always {schema['const']}"
    if "enum" in schema:
        return "one of " + ", ".join("null" if word is None else str(word) for word in schema["enum"])
    if "anyOf" in schema or "oneOf" in schema:
        return " or ".join(type_of(part, definitions) for part in schema.get("anyOf") or schema["oneOf"])
    if "propertyNames" in schema:
        return "object of " + type_of(schema["additionalProperties"], definitions) + " by " + \
            ", ".join(schema["propertyNames"]["enum"])
    types = schema.get("type", "any")
    words = types if isinstance(types, list) else [types]
    if "array" in words and "items" in schema:
        words = ["array of " + type_of(schema["items"], definitions) if word == "array" else word for word in words]
    return " or ".join(words)


def part(schema, definitions):
    """The object of a key that has keys of its own, and how it is named in their names; None, "" without one."""
    if "items" in schema:
        return part(schema["items"], definitions)[0], "[]"
    for inner in schema.get("allOf", []) + schema.get("anyOf", []):
        if referred(inner, definitions).get("properties"):
            return referred(inner, definitions), ""
    return None, ""


def keys(schema, definitions, before, lines):
    """Adds the keys of an object, and below each those of the object or the list that it holds."""
    required = schema.get("required", [])
    for key, inner in schema.get("properties", {}).items():
        name = f"{before}{key}"
        optional = "" if key in required else ", may be absent"
        lines += [".TP", f".BR {roff(name)} \" ({roff(type_of(inner, definitions))}{optional})\""]
        lines.append(roff(inner["description"]))
        inside, item = part(inner, definitions)
        if inside:
            keys(inside, definitions, f"{name}{item}.", lines)


def page(schema):
    definitions = schema["definitions"]
    records = [branch["if"]["properties"]["type"]["const"] for branch in schema["allOf"]]
    lines = [HEAD.rstrip(), ".SH KEYS OF ALL RECORDS"]
    keys(schema, definitions, "", lines)
    for name in records:
        definition = definitions[name]
        lines += [f".SH RECORD {name.upper()}", roff(definition.get("description", ""))]
        keys(definition, definitions, "", lines)
    return "\n".join(lines) + "\n" + TAIL


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as source:
        sys.stdout.write(page(json.load(source)).replace("@VERSION@", sys.argv[2] if len(sys.argv) > 2 else "").replace('"vapro "', '"vapro"'))
