#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Check the rules that hold for every tracked file; prints one line per breach. The ctest entry "house" runs it.

usage: check_house.py

- Sources, scripts and TableGen files name the licence (SPDX) in the comment at their head.
- No file, binary ones included, names a folder of somebody's machine.
- A file of code has under 1,000 lines.
- Text files end with a newline, and no line ends with a blank.
- A README.md has at most 1,500 words; an entry (or paragraph) of a DECISIONS.md at most three lines, a section of the CHANGELOG.md
  at most ten; a line of these two at most 130 characters.
- A source of a library includes headers only of libraries that its CMakeLists.txt links, directly or through others, and these form no
  circle: the arrows of lib/README.md. Headers of a folder below lib/ are that library's own: nobody else reaches them, but for the unit
  tests; so the runtime stands alone.
- A pass with options, and an op with a verifier of its own, has a negative test: a line that runs tc-opt so that it fails, or with
  -verify-diagnostics; an error that is expected of the op.
- No source compares text with the name of a target, a CPU variant or a chip, but where machines are read by name (DEVICE_REGISTRY).
"""
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
LICENSED = (".h", ".c", ".cpp", ".cu", ".td", ".py", ".sh", ".cmake")
SPDX = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
# Split, so that this file does not name them itself. A path in a URL or below another folder is not meant.
MACHINE_PATH = re.compile(rb"(?<![\w.:/<>$}-])/(?:ho" rb"me|ro" rb"ot|op" rb"t|wo" rb"rk|Us" rb"ers|mn" rb"t)/[A-Za-z]")
HEADER_LINES = 80  # a header may begin with a long explanation
BINARY = (".onnx", ".pt", ".pt2", ".npz", ".bin", ".weights", ".png")
BINARY_FOLDER = "test/Unit/RuntimeHost/images/"
CODE = LICENSED + (".mlir", ".def")
CODE_LINES = 1000
# Whoever reads a name there has its meaning as an enumerator or an attribute.
DEVICE_REGISTRY = "lib/Dialect/Machine/IR/"
DEVICE_NAME = r'"(?:cpu|cuda|gpu|reference|native|x86-64-v\d|sm_)[^"]*"'
COMPARES = r"(?:Cases?|equals\w*|compare\w*|str\w*cmp|(?:starts|ends)_with\w*|consume_\w+|contains|is_contained|find\w*|rfind)"
DEVICE_COMPARISON = re.compile(rf"[=!]=\s*{DEVICE_NAME}|{DEVICE_NAME}\s*[=!]=|\b{COMPARES}\s*\([^;{{]*?{DEVICE_NAME}")
README_WORDS = 1500
ENTRY_LINES = 3
SECTION_LINES = 10
PAGE_COLUMNS = 130


def libraries():
    """From the CMakeLists.txt below lib/: what each library links, and the libraries of each folder."""
    links, folders = {}, {}
    for base, _, files in os.walk(os.path.join(ROOT, "lib")):
        if "CMakeLists.txt" not in files:
            continue
        with open(os.path.join(base, "CMakeLists.txt")) as f:
            text = re.sub(r"#.*", "", f.read())
        folder = os.path.relpath(base, os.path.join(ROOT, "lib"))
        for body in re.findall(r"tc_add(?:_c)?_library\(([^)]*)\)", text):
            words = body.split()
            links[words[0]] = words[words.index("LINK") + 1 :] if "LINK" in words else []
            folders.setdefault(folder, set()).add(words[0])
        # Libraries of users, which hold the objects of others.
        for name in re.findall(r"add_library\((\w+) STATIC", text):
            links[name] = re.findall(r"TARGET_OBJECTS:(\w+)_objects", text)
            folders.setdefault(folder, set()).add(name)
    return links, folders


def reached(links, names):
    seen, todo = set(), list(names)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += links.get(name, ())
    return seen


def folder_of(folders, path):
    """The folder of a library that `path`, below lib/ or include/tc/, belongs to; "" if none does."""
    while path and path not in folders:
        path = os.path.dirname(path)
    return path


def layer_breaches(names):
    """(file, sentence) for each include that goes up, and each circle."""
    links, folders = libraries()
    for name in links:
        if name in reached(links, links[name]):
            yield "lib/CMakeLists.txt", f"library {name} links itself through others"
    for name in names:
        if not name.startswith(("include/", "lib/", "tools/")) or not name.endswith((".c", ".cpp", ".h")):
            continue
        is_library = name.startswith("lib/")
        own = folder_of(folders, os.path.dirname(name)[4:]) if is_library else ""
        allowed = reached(links, folders.get(own, ()))
        with open(os.path.join(ROOT, name), encoding="utf-8") as f:
            included = re.findall(r'^#include "([^"]+)"', f.read(), re.M)
        for header in included:
            room = folder_of(folders, header[3:]) if re.fullmatch(r"tc/.*\.h", header) else ""
            if own and room and not folders[room] & allowed:
                yield name, f"includes {header} of lib/{room}, which lib/{own} does not link"
            path = os.path.normpath(os.path.join(os.path.dirname(name), header))
            if header.startswith("../") and (not own or folder_of(folders, os.path.dirname(path)[4:]) != own):
                yield name, f"includes {path}, a header of another library's own; what is shared stands in include/tc"


def device_breaches(names):
    """(file, line, comparison) for each comparison with a name of a machine outside of the registry."""
    for name in names:
        if name.endswith((".c", ".cpp", ".h", ".td")) and name.startswith(("include/", "lib/", "tools/")):
            if name.startswith(DEVICE_REGISTRY):
                continue
            with open(os.path.join(ROOT, name), encoding="utf-8") as f:
                text = re.sub(r"//.*", "", f.read())
            for match in DEVICE_COMPARISON.finditer(text):
                yield name, text.count("\n", 0, match.start()) + 1, match.group()


def test_breaches(names):
    """(file, sentence) for each pass with options, and each op with a verifier, that no negative test is about."""
    runs, expected = "", ""
    for name in names:
        if name.startswith("test/") and name.endswith((".mlir", ".test")):
            with open(os.path.join(ROOT, name), encoding="utf-8") as f:
                text = f.read()
            runs += "".join(line + "\n" for line in text.split("\n") if "RUN:" in line and ("not tc-opt" in line or "-verify-diagnostics" in line))
            expected += text if "expected-error" in text else ""
    for name in names:
        if not name.startswith("include/") or not name.endswith(".td"):
            continue
        with open(os.path.join(ROOT, name), encoding="utf-8") as f:
            definitions = re.split(r"^(?=def |class )", f.read(), flags=re.M)
        dialect = name.split("/")[3].lower() if "/Dialect/" in name else ""
        for text in definitions:
            flag = re.match(r'def \w+ *: *Pass<"([\w-]+)"', text)
            if flag and "let options" in text and not re.search(rf"-{flag.group(1)}(?![\w-])", runs):
                yield name, f"pass {flag.group(1)} has options and no negative test"
            op = re.match(r'def \w+Op *: *\w+<(?:\w+, )?"(\w+)"', text)
            if op and "let hasVerifier = 1" in text and not re.search(rf"{dialect}\.{op.group(1)}(?!\w)", expected):
                yield name, f"op {dialect}.{op.group(1)} has a verifier and no negative test"


def tracked_files():
    listing = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return [name for name in listing.stdout.decode().split("\0") if name and os.path.isfile(os.path.join(ROOT, name))]


def entries(lines):
    """Line number and length of each entry: a list item, or a paragraph."""
    first, count = 0, 0
    for number, line in enumerate(lines + [""], 1):
        begins = line.startswith("- ")
        if count and (begins or not line.strip() or line.startswith("#")):
            yield first, count
            count = 0
        if line.strip() and not line.startswith("#"):
            first = number if not count else first
            count += 1


def sections(lines):
    """Line number, title and number of lines with text of each section."""
    first, title, count = 0, "", 0
    for number, line in enumerate(lines + ["#"], 1):
        if line.startswith("#"):
            if title:
                yield first, title, count
            first, title, count = number, line.lstrip("# "), 0
        elif line.strip():
            count += 1


def page_breaches(name, text):
    lines = text.split("\n")
    base = os.path.basename(name)
    if base == "README.md" and (words := len(text.split())) > README_WORDS:
        yield 1, f"has {words} words; at most {README_WORDS}: move decisions to DECISIONS.md, figures to docs/"
    if base == "DECISIONS.md":
        for number, count in entries(lines):
            if count > ENTRY_LINES:
                yield number, f"the entry has {count} lines; at most {ENTRY_LINES}"
    if base == "CHANGELOG.md":
        for number, title, count in sections(lines):
            if count > SECTION_LINES:
                yield number, f'section "{title}" has {count} lines; at most {SECTION_LINES}'
    if base in ("DECISIONS.md", "CHANGELOG.md"):
        for number, line in enumerate(lines, 1):
            if len(line) > PAGE_COLUMNS:
                yield number, f"the line has {len(line)} characters; at most {PAGE_COLUMNS}"


def breaches(name, data):
    for match in MACHINE_PATH.finditer(data):
        line = data.count(b"\n", 0, match.start()) + 1
        yield line, f"names a folder of a machine: {match.group().decode()}..."
    if name.endswith(BINARY) or name.startswith(BINARY_FOLDER):
        return
    lines = data.split(b"\n")
    if name.endswith(LICENSED) and not any(SPDX.encode() in line for line in lines[:HEADER_LINES]):
        yield 1, f'the header lacks "{SPDX}"'
    if name.endswith(CODE) and len(lines) > CODE_LINES:
        yield CODE_LINES, f"the file has {len(lines) - 1} lines; under {CODE_LINES}: split it along its parts"
    if data and not data.endswith(b"\n"):
        yield len(lines), "the file does not end with a newline"
    if name != "LICENSE":
        for number, line in enumerate(lines, 1):
            if line.endswith((b" ", b"\t", b"\r")):
                yield number, "the line ends with a blank"
    if name.endswith(".md"):
        yield from page_breaches(name, data.decode(errors="replace"))


def main():
    count = 0
    files = tracked_files()
    for name in files:
        with open(os.path.join(ROOT, name), "rb") as f:
            for line, text in breaches(name, f.read()):
                print(f"{name}:{line}: error: {text}")
                count += 1
    for name, text in list(layer_breaches(files)) + list(test_breaches(files)):
        print(f"{name}: error: {text}")
        count += 1
    for name, line, text in device_breaches(files):
        print(f"{name}:{line}: error: compares with the name of a machine: {text}; tc/Dialect/Machine/IR/Machine.h reads it")
        count += 1
    print(f"{len(files)} files, {count} breaches")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
