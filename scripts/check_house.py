#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Check the rules that hold for every tracked file; prints one line per breach. The ctest entry "house" runs it.

usage: check_house.py        (test/Integration/house.py shows that it finds what it should)

- Sources, scripts and TableGen files name the licence (SPDX) in the comment at their head.
- No file, binary ones included, names a folder of somebody's machine.
- A file of code has under 1,000 lines.
- Text files end with a newline, and no line ends with a blank.
- A README.md has at most 1,500 words; an entry (or paragraph) of a DECISIONS.md at most three lines, a section of the CHANGELOG.md
  at most ten; a line of these two at most 130 characters.
- A source, header or table of a library, a tool or a test includes only what the libraries have that its CMakeLists.txt links, directly
  or through others, and these form no circle: the arrows of lib/README.md. Headers of a folder below lib/ are that library's own: nobody
  else reaches them, but for the unit tests that link it; so the runtime stands alone. Examples include include/tcrt alone.
- A pass with options, and an op or attribute with a verifier of its own, has a negative test: a line that runs tc-opt so that it fails,
  or with -verify-diagnostics; an error that is expected where the op or attribute stands. Every schedule has a verifier.
- No source compares text with the name of a target, a CPU variant, a chip or a form of its code, or names one where none is needed, but
  where machines are read by name (DEVICE_REGISTRY).
"""
import lzma
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
BINARY = (".onnx", ".pt", ".pt2", ".npz", ".bin", ".weights", ".png", ".xz")
BINARY_FOLDER = "test/Unit/RuntimeHost/images/"
CODE = LICENSED + (".mlir", ".def")
CODE_LINES = 1000
# Whoever reads a name there has its meaning as an enumerator or an attribute.
DEVICE_REGISTRY = ("lib/Dialect/Machine/IR/", "include/tc/Dialect/Machine/IR/", "lib/Format/Names.c")
DEVICE_NAME = r'"(?:cpu|cuda|gpu|reference|native|cubin|ptx(?!as)|nvptx|x86-64-v\d|x86_64|sm_|avx|amx|vnni)[^"]*"'
COMPARES = r"(?:Cases?|equals\w*|compare\w*|str\w*cmp|(?:starts|ends)_with\w*|consume_\w+|contains|is_contained|find\w*|rfind|lookup\w*|count|at)"
DEVICE_COMPARISON = re.compile(rf"[=!]=\s*{DEVICE_NAME}|{DEVICE_NAME}\s*[=!]=|\b{COMPARES}\s*\([^;{{]*?{DEVICE_NAME}")
# Constants of such a text are there to be compared with; and most of the names stand nowhere else but where machines are read.
DEVICE_CONSTANT = re.compile(rf"\bk[A-Z]\w*(?:\[\w*\])?\s*=?\s*[({{=]*\s*{DEVICE_NAME}")
DEVICE_LITERAL = re.compile(r'"(?:cuda|gpu|reference|sm_\w*|x86-64-v\d[\w-]*)"')
SOURCES = (".c", ".cpp", ".h", ".def", ".inc", ".td", ".cu")
INCLUDE = re.compile(r'^[ \t]*#?[ \t]*include[ \t]*["<]([^">]+)[">]', re.M)
EXPECTED_ERROR = re.compile(r"expected-error(?:-re)?\s*(?:@\s*([+-]\d+|below|above))?[^{]*\{\{(.*?)\}\}")
VERIFIER = re.compile(r"let (?:hasVerifier|hasRegionVerifier|genVerifyDecl) = 1")
GENERATED_CHECK = re.compile(
    r"(?:operand|result) #\d+ must be|failed to satisfy constraint|requires attribute|unknown attribute|unknown struct parameter"
    r"|using value defined outside|expects parent op|failed to parse"
)
# getSizes returns a container. A view of it does not keep it for the length of a loop, as enumerate and zip do.
GET_SIZES = rb"(?:\w+(?:\.|->|::))*getSizes\("
DANGLING_RANGE = re.compile(
    rb"for \([^;{}]*?[^:]:\s*(?:(?:llvm::)?(?:reverse|drop_begin|drop_end|make_filter_range|ArrayRef(?:<\w+>)?)\(" + GET_SIZES
    + rb"|" + GET_SIZES + rb"[^;{}]*\)\.(?:drop|take|slice))"
)
README_WORDS = 1500
ENTRY_LINES = 3
SECTION_LINES = 10
PAGE_COLUMNS = 130


class Tree:
    """The tracked files of a folder; their text is read when it is asked for."""

    def __init__(self, root, names):
        self.root, self.names, self.texts = root, names, {}

    def text(self, name):
        if name not in self.texts:
            with open(os.path.join(self.root, name), encoding="utf-8") as f:
                self.texts[name] = f.read()
        return self.texts[name]


class Layers:
    """From the CMakeLists.txt: `links` of each library, `folders` below lib/ with their libraries, and for sources outside of lib/ the
    libraries that their programs link (`programs`; of a folder: those of all its programs, for its headers)."""

    def __init__(self, tree):
        self.links, self.folders, self.programs = {}, {}, {}
        for name in tree.names:
            if os.path.basename(name) == "CMakeLists.txt":
                self.read(os.path.dirname(name), re.sub(r"#.*", "", tree.text(name)))

    def read(self, folder, text):
        def add_library(name, linked):
            self.links[name] = linked
            if folder.startswith("lib/"):
                self.folders.setdefault(folder[4:], set()).add(name)

        for body in re.findall(r"tc_add(?:_c)?_library\(([^)]*)\)", text):
            words = body.split()
            add_library(words[0], words[words.index("LINK") + 1 :] if "LINK" in words else [])
        # Libraries of users, which hold the objects of others.
        for name in re.findall(r"add_library\((\w+) STATIC", text):
            add_library(name, re.findall(r"TARGET_OBJECTS:(\w+)_objects", text))
        for name, linked in re.findall(r"target_link_libraries\((\w+) ([^)]*)\)", text):
            if name in self.links:
                self.links[name] += re.findall(r"\$<BUILD_INTERFACE:(\w+)>", linked)
        for body in re.findall(r"(?:tc_add_tool|tc_add_unit_test|add_executable)\(([^)]*)\)", text):
            words = body.split()
            linked = words[words.index("LINK") + 1 :] if "LINK" in words else []
            self.programs.setdefault(folder, set()).update(linked)
            for source in words[1:]:
                if source.endswith((".c", ".cpp")):
                    self.programs.setdefault(os.path.normpath(os.path.join(folder, source)), set()).update(linked)

    def reached(self, names):
        seen, todo = set(), list(names)
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += self.links.get(name, ())
        return seen

    def room(self, path):
        """The folder of a library that `path`, below lib/ or include/tc/, belongs to; "" if none does."""
        while path and path not in self.folders:
            path = os.path.dirname(path)
        return path

    def allowed(self, name):
        """What `name` may include: the room that it is in ("" outside of lib/), and libraries; None if no build says so."""
        for top in ("lib/", "include/tc/"):
            if name.startswith(top):
                room = self.room(os.path.dirname(name)[len(top) :])
                return room, self.reached(self.folders[room]) if room else None
        while name and name not in self.programs:
            name = os.path.dirname(name)
        return "", self.reached(self.programs[name]) if name else None


def layer_breaches(tree):
    """(file, sentence) for each include that goes up, and each circle."""
    layers = Layers(tree)
    for name in layers.links:
        if name in layers.reached(layers.links[name]):
            yield "lib/CMakeLists.txt", f"library {name} links itself through others"
    for name in tree.names:
        if not name.startswith(("include/", "lib/", "tools/", "test/", "examples/")) or not name.endswith(SOURCES):
            continue
        own, allowed = layers.allowed(name)
        unit_test = name.startswith(("test/Unit/", "test/Fuzz/"))
        for header in INCLUDE.findall(tree.text(name)):
            room = layers.room(os.path.dirname(header)[3:]) if header.startswith("tc/") else ""
            if room and name.startswith("include/tcrt/"):
                yield name, f"includes {header}; what users see includes nothing of ours but include/tcrt"
            elif room and name.startswith("examples/"):
                yield name, f"includes {header}; examples see what users see, include/tcrt"
            elif room and allowed is not None and not layers.folders[room] & allowed:
                yield name, f"includes {header} of lib/{room}, which {'lib/' + own if own else 'its program'} does not link"
            path = os.path.normpath(os.path.join(os.path.dirname(name), header))
            if header.startswith("../") and (not own or layers.room(os.path.dirname(path)[4:]) != own):
                yield name, f"includes {path}, a header of another library's own; what is shared stands in include/tc"
            # From lib/ itself, which is on the path of tests of a library alone.
            room = layers.room(os.path.dirname(header)) if f"lib/{header}" in tree.names else ""
            if room and room != own and not (unit_test and layers.folders[room] & allowed):
                yield name, f"includes lib/{header}, a header of another library's own; what is shared stands in include/tc"


def device_breaches(tree):
    """(file, line, text) for each name of a machine that is compared, or written where no name of one is needed."""
    for name in tree.names:
        if not name.endswith((".c", ".cpp", ".h", ".td", ".def")) or not name.startswith(("include/", "lib/", "tools/")):
            continue
        if name.startswith(DEVICE_REGISTRY):
            continue
        text = re.sub(r"//.*|/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match.group()), tree.text(name), flags=re.S if name.endswith((".c", ".h")) else 0)
        for pattern in (DEVICE_COMPARISON,) if name.endswith(".td") else (DEVICE_COMPARISON, DEVICE_CONSTANT, DEVICE_LITERAL):
            for match in pattern.finditer(text):
                yield name, text.count("\n", 0, match.start()) + 1, match.group()


def expected_errors(text):
    """(line, message) for each error that -verify-diagnostics expects on a line of a test."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        for place, message in EXPECTED_ERROR.findall(line):
            target = number
            if place in ("below", "above"):
                step = 1 if place == "below" else -1
                target += step
                while 0 <= target < len(lines) and "expected-" in lines[target]:
                    target += step
            elif place:
                target += int(place)
            if 0 <= target < len(lines):
                yield re.sub(r"//.*", "", lines[target]), message


def has_verifier(definition, classes):
    """Whether a TableGen definition, or a class that it is made of, asks for a verifier."""
    if VERIFIER.search(definition):
        return True
    heads = re.findall(r"\b(\w+)\s*<", definition.split("{")[0].split(":", 1)[-1])
    return any(has_verifier(classes.get(head, ""), {**classes, head: ""}) for head in heads)


def test_breaches(tree):
    """(file, sentence) for each pass with options, and each op and attribute with a verifier, that no negative test is about, and each
    schedule without a verifier. An error is of an op, or an attribute, that stands on the line where it is expected, and what TableGen
    checks by itself does not count."""
    runs, refused, of_schedules = "", set(), set()
    for name in tree.names:
        if name.startswith("test/") and name.endswith((".mlir", ".test")):
            text = tree.text(name)
            runs += "".join(line + "\n" for line in text.split("\n") if "RUN:" in line and ("not tc-opt" in line or "-verify-diagnostics" in line))
            for line, message in expected_errors(text):
                named = re.findall(r"#?\b[a-z]+\.[\w.]+", line)
                if not GENERATED_CHECK.search(message):
                    refused.update(named)
                    of_schedules.update((schedule, message.split(" ")[0]) for schedule in named)
    for name in tree.names:
        if not name.startswith("include/") or not name.endswith(".td"):
            continue
        definitions = re.split(r"^(?=def |class )", tree.text(name), flags=re.M)
        classes = {re.match(r"class (\w+)", text).group(1): text for text in definitions if text.startswith("class ")}
        dialect = name.split("/")[3].lower() if "/Dialect/" in name else ""
        for text in definitions:
            flag = re.match(r'def \w+ *: *Pass<"([\w-]+)"', text)
            if flag and "let options" in text and not re.search(rf"-{flag.group(1)}(?![\w-])", runs):
                yield name, f"pass {flag.group(1)} has options and no negative test"
            op = re.match(r'def \w+Op\s*: *\w+<(?:\w+, )?"(\w+)"', text)
            if op and has_verifier(text, classes) and f"{dialect}.{op.group(1)}" not in refused:
                yield name, f"op {dialect}.{op.group(1)} has a verifier, and no negative test expects an error of it"
            schedule = re.match(r'def \w+\s*: *Kernel_Strategy<"\w+", "([\w.]+)"', text)
            if schedule and not has_verifier(text, classes):
                yield name, f"schedule {schedule.group(1)} has no verifier"
            if schedule:
                fields = {f"{field}{bits}" for field in re.findall(r'<"(\w+)"', text) for bits in ("", "256", "512")} | {"grain"}
                if not any((f"#{dialect}.{schedule.group(1)}", field) in of_schedules for field in fields):
                    yield name, f"schedule {schedule.group(1)} has no negative test: a value of a parameter that its verifier refuses"
                continue
            attribute = re.match(r'def \w+Attr\s*: *\w+<[^{]*"(\w+)"', text) if has_verifier(text, classes) else None
            mnemonic = re.search(r'let mnemonic = "([\w.]+)"', text) or attribute
            if attribute and f"#{dialect}.{mnemonic.group(1)}" not in refused:
                yield name, f"attribute #{dialect}.{mnemonic.group(1)} has a verifier, and no negative test expects an error of it"


def tracked_files(root):
    listing = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    return [name for name in listing.stdout.decode().split("\0") if name and os.path.isfile(os.path.join(root, name))]


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
    if name.endswith(".xz"):
        data = lzma.decompress(data)
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
    if name.endswith((".h", ".cpp")):
        for match in DANGLING_RANGE.finditer(data):
            yield data.count(b"\n", 0, match.start()) + 1, "a loop runs over a view of what getSizes returns, which is gone by then; name the sizes first"
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
    tree = Tree(ROOT, tracked_files(ROOT))
    for name in tree.names:
        with open(os.path.join(ROOT, name), "rb") as f:
            for line, text in breaches(name, f.read()):
                print(f"{name}:{line}: error: {text}")
                count += 1
    for name, text in list(layer_breaches(tree)) + list(test_breaches(tree)):
        print(f"{name}: error: {text}")
        count += 1
    for name, line, text in sorted(set(device_breaches(tree))):
        print(f"{name}:{line}: error: names a machine: {text}; tc/Dialect/Machine/IR/Machine.h reads such names, tc/Format/Container.h has those of artifacts")
        count += 1
    print(f"{len(tree.names)} files, {count} breaches")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
