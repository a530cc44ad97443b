# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Check JSON files by a JSON Schema, of which this reads what tc's use. A member that the schema does not describe is
wrong here, so that it describes all.

usage: json_schema.py SCHEMA FILE...
"""
import json
import sys

TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "null": lambda value: value is None,
}
KNOWN = {"$schema", "$ref", "$defs", "title", "description", "type", "const", "required", "properties", "additionalProperties", "items", "minimum"}


def check(schema, value, whole, path="$"):
    assert set(schema) <= KNOWN, (path, set(schema) - KNOWN)
    if "$ref" in schema:
        return check(whole["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, whole, path)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    assert not types or any(TYPES[name](value) for name in types), f"{path} is {value!r}, not of {types}"
    assert value == schema.get("const", value), f"{path} is {value!r}"
    assert not isinstance(value, int) or value >= schema.get("minimum", value), f"{path} is {value}"
    if isinstance(value, dict):
        for name in schema.get("required", []):
            assert name in value, f"{path} has no {name}"
        for name, member in value.items():
            described = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            assert described is not None, f"{path}.{name} is not described"
            check(described, member, whole, f"{path}.{name}")
    for number, item in enumerate(value if isinstance(value, list) else []):
        check(schema["items"], item, whole, f"{path}[{number}]")


if __name__ == "__main__":
    with open(sys.argv[1]) as f:
        schema = json.load(f)
    for name in sys.argv[2:]:
        with open(name) as f:
            check(schema, json.load(f), schema)
    print(len(sys.argv) - 2, "files are as the schema says")
