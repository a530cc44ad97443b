#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile PyTorch's own samples of its operators, run them and compare with what PyTorch computed.

usage: run.py BIN [--container samples.xz] [--door pt2|pt]... [--target cpu] [--filter RE] [--shard I/N] [--jobs N] [--table FILE] [--results FILE.json]
              [--keep FOLDER] [--prune]

BIN is the folder of tc-test-samples, which compiles and runs all of them in one process a core. Each sample comes through two doors: the
archive of torch.export (pt2) and a traced TorchScript archive (pt). Dtype, shape and the places of NaN must be PyTorch's, values within
its own tolerances.

expected_failures.txt lists what tc refuses, with the reason; a refusal that is not listed, and a listed sample that passes, fail the run. A
wrong number cannot be listed. Exit status 0: every sample did what was expected.
"""
import argparse
import collections
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time

import container
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
DOORS = ("pt2", "pt")
DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
          "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_, "c64": np.complex64, "c128": np.complex128}  # fmt: skip


def to_array(dtype, shape, data):
    if dtype == "bf16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
    return np.frombuffer(data, DTYPES[dtype]).reshape(shape)


def write_tensors(path, tensors):
    with open(path, "wb") as f:
        f.write(b"%d\n" % len(tensors))
        for dtype, shape, _ in tensors:
            f.write(" ".join([dtype, *map(str, shape)]).encode() + b"\n")
        for _, _, data in tensors:
            f.write(data)


def read_tensors(path):
    with open(path, "rb") as f:
        heads = [f.readline().decode().split() for _ in range(int(f.readline()))]
        data = memoryview(f.read())
    tensors, at = [], 0
    for dtype, *dims in heads:
        shape = [int(d) for d in dims]
        count = int(np.prod(shape, dtype=np.int64))
        size = count * (2 if dtype == "bf16" else np.dtype(DTYPES[dtype]).itemsize) if dtype == "bf16" or dtype in DTYPES else 0
        tensors.append((dtype, shape, data[at : at + size]))
        at += size
    return tensors


# op_db's precisionOverride of Fourier transforms (torch/testing/_internal/opinfo/definitions/fft.py), for whatever f32 and c64 are made of.
TRANSFORM_ATOL = 1e-4
EXACT = {"rtol": 0.0, "atol": 0.0}  # of numbers, which are copies
# Operators that promise no order among equal values; its stable variants do, but op_db has them under the same name.
UNORDERED = {"sort", "argsort", "topk"}
# Operators that find one element of each line, and promise nothing about which of equal ones.
UNDECIDED = {"kthvalue", "median", "nanmedian", "mode"}


def is_other_order(source, actual, wanted):
    """Whether the indices `actual` name the same values of `source` as `wanted` does, each of them once, along some axis."""
    for axis in range(source.ndim):
        if actual.size and ((actual < 0) | (actual >= source.shape[axis])).any():
            continue
        if any(a != s for d, (a, s) in enumerate(zip(actual.shape, source.shape)) if d != axis):
            continue
        lines = np.sort(actual, axis)
        same = np.array_equal(np.take_along_axis(source, actual, axis), np.take_along_axis(source, wanted, axis), equal_nan=source.dtype.kind in "fc")
        if same and (np.diff(lines, axis=axis) != 0).all():
            return True
    return False


def is_other_choice(source, actual, wanted):
    """Whether the indices `actual`, one of each line along some axis of `source`, name the same values as `wanted` does."""
    for axis in range(source.ndim):
        kept = source.shape[:axis] + (1,) + source.shape[axis + 1 :]
        if actual.shape not in (kept, source.shape[:axis] + source.shape[axis + 1 :]) or ((actual < 0) | (actual >= source.shape[axis])).any():
            continue
        found, meant = (np.take_along_axis(source, x.reshape(kept), axis) for x in (actual, wanted))
        if np.array_equal(found, meant, equal_nan=source.dtype.kind in "fc"):
            return True
    return False


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


# Operators whose orthonormal vectors have free signs, and turn freely among those of equal values: which outputs these are, and what
# all outputs together are factors of.
FACTORS = {
    "linalg.svd": ((0, 2), lambda u, s, v: (u[..., : s.shape[-1]] * s[..., None, :]) @ v[..., : s.shape[-1], :]),
    "svd": ((0, 2), lambda u, s, v: (u[..., : s.shape[-1]] * s[..., None, :]) @ adjoint(v[..., : s.shape[-1]])),
    "linalg.eigh": ((1,), lambda w, v: (v * w[..., None, :]) @ adjoint(v)),
}  # fmt: skip


def is_other_basis(entry, actual, wanted, tolerances):
    """Whether `actual`, outputs of shapes and types as `wanted`, factor the same matrix by other vectors of the same kind."""
    vectors, multiply = FACTORS[entry]
    if len(actual) != len(wanted) or any(list(a[:1]) != list(w[:1]) or list(a[1]) != list(w[1]) for a, w in zip(actual, wanted)):
        return False
    tolerance = tolerances.get(actual[0][0], EXACT)
    found, meant = [to_array(*a) for a in actual], [to_array(*w) for w in wanted]
    for i, (x, y) in enumerate(zip(found, meant)):
        if i not in vectors and not is_close(x, y, tolerance).all():
            return False
        if i in vectors:
            # Of a matrix that is not square, the shorter side's vectors.
            square = adjoint(x) @ x if x.shape[-2] >= x.shape[-1] else x @ adjoint(x)
            if not np.isfinite(x).all() or np.abs(square - np.eye(square.shape[-1])).max(initial=0) > 1e-5:
                return False
    x, y = multiply(*found), multiply(*meant)
    return bool(np.abs(x - y).max(initial=0) <= 1e-5 * np.abs(y).max(initial=0))


def difference(actual, wanted, other, tolerances, source=None, moves=None):
    """What differs, or None. `other`: what is right just as well, by `moves`; or "random". `source`: what indices point into, which are free among equal values."""
    if len(actual) != len(wanted):
        return f"{len(actual)} outputs, expected {len(wanted)}"
    for i, (a, w) in enumerate(zip(actual, wanted)):
        if w[0] == "number" and a[0] not in ("f64", "i64", "bool"):
            return f"output {i} is {a[0]}, expected a number: f64, i64 or bool"
        if w[0] not in ("number", a[0]):
            return f"output {i} is {a[0]}, expected {w[0]}"
        if list(a[1]) != list(w[1]):
            return f"output {i} has shape {a[1]}, expected {w[1]}"
        if other == "random":
            continue
        x, y = to_array(*a), to_array("f64" if w[0] == "number" else w[0], *w[1:])
        right = is_close(x, y, tolerances.get(a[0], EXACT))
        if source is not None and a[0] == "i64" and not right.all():
            if x.ndim == source.ndim and is_other_order(source, x, y) or x.shape != source.shape and is_other_choice(source, x, y):
                continue
        if other is not None:
            z = to_array(*other[i])
            right |= is_close(x, z, {**tolerances[a[0]], "atol": max(tolerances[a[0]]["atol"], own_error(y, z), moves[i] if moves else 0.0)})
        if not right.all():
            at = tuple(int(k) for k in np.argwhere(~right)[0])
            return f"output {i}: {int((~right).sum())} of {right.size} values differ; at {list(at)} {x[at]}, expected {y[at]}"
    return None


def own_error(y, z):
    """How far PyTorch itself is from float64 (z) where that is rounding alone: sums whose terms cancel."""
    if y.dtype.kind != "f" or y.size == 0 or not (np.isfinite(y).all() and np.isfinite(z).all()):
        return 0.0
    error = float(np.abs(y.astype(np.float64) - z).max())
    return error if error <= 2e-6 * float(np.abs(z).max()) else 0.0


def is_close(x, y, tolerance):
    if x.dtype.kind not in "fc":
        return np.asarray(x == y)
    with np.errstate(all="ignore"):
        a, b = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64), y.astype(np.complex128 if y.dtype.kind == "c" else np.float64)
        return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(b) & (np.abs(a - b) <= tolerance["atol"] + tolerance["rtol"] * np.abs(b))))


class Tool:
    """One tc-test-samples."""

    def __init__(self, bin, keep):
        self.keep = keep
        self.process = subprocess.Popen([os.path.join(bin, "tc-test-samples")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, errors="replace")
        self.folder = tempfile.TemporaryDirectory(prefix="tc-torch-")

    def run(self, name, archive, suffix, tensors, target):
        folder = os.path.join(self.keep, name.replace(" ", "_")) if self.keep else self.folder.name
        os.makedirs(folder, exist_ok=True)
        model, inputs, outputs = (os.path.join(folder, part) for part in ("model" + suffix, "inputs", "outputs"))
        with open(model, "wb") as f:
            f.write(archive)
        write_tensors(inputs, tensors)
        print(model, inputs, outputs, target, sep="\t", file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"tc-test-samples ended with {self.process.wait()}")
        code, _, text = line.rstrip("\n").partition("\t")
        text = text.replace(folder + "/", "")
        return int(code or 6), text, read_tensors(outputs) if code == "0" else []


state = {}


def start(options):
    state.update(options=options, tool=Tool(options.bin, options.keep), container=container.Container(options.container))


def run_sample(job):
    """(key, status, reason); status: passed, refused, wrong, defect, none (PyTorch makes no archive)."""
    number, door = job
    box, options = state["container"], state["options"]
    sample = box.samples[number]
    key = key_of(sample, door)
    if door not in sample:
        return key, "none", sample.get(door + "_none", "")
    load = lambda kind: [(dtype, shape, box.blob(blob)) for dtype, shape, blob in sample[kind]]
    code, text, actual = state["tool"].run(key, box.archive(sample, door), "." + door, load("inputs"), options.target)
    if code == 0:
        other = "random" if sample.get("random") else load("others") if "others" in sample else None
        source = to_array(*load("inputs")[0]) if sample["entry"] in UNORDERED | UNDECIDED else None
        tolerances = sample["tolerances"]
        if sample["entry"].startswith("fft."):
            tolerances = {t: {**v, "atol": max(v["atol"], TRANSFORM_ATOL)} if t in ("f32", "c64") else v for t, v in tolerances.items()}
        what = difference(actual, load("outputs"), other, tolerances, source, sample.get("moves"))
        if what and sample["entry"] in FACTORS and is_other_basis(sample["entry"], actual, load("outputs"), tolerances):
            what = None
        return key, "wrong" if what else "passed", what or ""
    return key, "refused" if code in (1, 2, 4) else "defect", text


def key_of(sample, door):
    return f"{door} {sample['entry']} {sample['dtype']} {sample['sample']}"


def generalize(reason):
    """The reason without what is particular to one sample."""
    reason = re.sub(r"^.*?: error: ", "", reason).split("|")[0]
    reason = re.sub(r'node "[^"]*": ', "", reason)
    reason = re.sub(r"; (tc-inspect --operators lists what is|.*--custom-op takes).*", "", reason).replace(" (opset 10)", "")
    return re.sub(r"tensor<[^>]*>", "T", re.sub(r"(?<![\w.])-?\d+(\.\d+)?\b", "N", reason))[:150]


def expected_failures(path):
    """{(door, entry, dtype, sample): reason}; a dtype or sample "*" stands for all."""
    known = {}
    with open(path) as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            key, colon, reason = line.partition(": ")
            if not colon or not reason or len(key.split()) != 4 or key.split()[0] not in DOORS:
                sys.exit(f'{path}:{number}: error: expected "pt2|pt <entry> <dtype> <sample>: <reason>"')
            known[key] = reason
    return known


def patterns(key):
    door, entry, dtype, number = key.split()
    return [key, f"{door} {entry} {dtype} *", f"{door} {entry} * *"]


def write_table(path, results, seconds):
    """Wrong numbers first, then defects, refusals by reason, and entries."""
    with open(path, "w") as f:
        for door in DOORS:
            mine = {key: r for key, r in results.items() if key.startswith(door + " ")}
            if not mine:
                continue
            counts = collections.Counter(status for status, _ in mine.values())
            ran = len(mine) - counts["none"]
            entries = collections.defaultdict(collections.Counter)
            for key, (status, _) in mine.items():
                if status != "none":
                    entries[key.split()[1]][status] += 1
            whole = sum(c["passed"] == sum(c.values()) for c in entries.values())
            print(f"# {door}: {counts['passed']} of {ran} samples pass ({100 * counts['passed'] / max(ran, 1):.1f} %), {whole} of {len(entries)} entries "
                  f"whole; refused {counts['refused']}, WRONG {counts['wrong']}, defects {counts['defect']}, no archive {counts['none']}; {seconds:.0f} s", file=f)  # fmt: skip
        for status in ("wrong", "defect"):
            print(f"\n# {status}", file=f)
            for key, (s, reason) in results.items():
                if s == status:
                    print(f"{key}: {reason[:300]}", file=f)
        print("\n# refused, by reason: samples, reason, entries", file=f)
        reasons = collections.defaultdict(list)
        for key, (status, reason) in results.items():
            if status == "refused":
                reasons[key.split()[0] + ": " + generalize(reason)].append(key.split()[1])
        for reason, names in sorted(reasons.items(), key=lambda item: (not item[0].startswith("pt2:"), -len(item[1]))):
            print(f"{len(names):5} {reason}  [{' '.join(list(dict.fromkeys(names))[:8])}]", file=f)
        print("\n# entries that are not whole: door entry passed/ran first-reason", file=f)
        first, counts = {}, collections.defaultdict(collections.Counter)
        for key, (status, reason) in results.items():
            name = " ".join(key.split()[:2])
            if status != "none":
                counts[name][status == "passed"] += 1
                if status != "passed":
                    first.setdefault(name, f"{status}: {generalize(reason)}")
        for name, reason in first.items():
            print(f"{name} {counts[name][True]}/{sum(counts[name].values())} {reason}", file=f)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--container", default=os.path.join(HERE, "samples.xz"))
    parser.add_argument("--door", nargs="+", action="extend", choices=DOORS)
    parser.add_argument("--target", default="cpu", choices=("cpu", "reference"))
    parser.add_argument("--filter", default="", help='regular expression that "<entry> <dtype> <sample>" must contain')
    parser.add_argument("--shard", default="0/1", help="I/N: of N parts, part I")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--table", help="by entry, and by reason")
    parser.add_argument("--results", help="of each sample, as JSON")
    parser.add_argument("--keep", help="leave the archive, inputs and outputs of each sample there")
    parser.add_argument("--expected-failures", default=os.path.join(HERE, "expected_failures.txt"))
    parser.add_argument("--prune", action="store_true", help="write expected_failures.txt anew from the refusals of this run")
    options = parser.parse_args()
    options.door = options.door or list(DOORS)
    return options


def judge(options, results):
    """Sentences about what is not as expected."""
    known, used, problems = expected_failures(options.expected_failures), set(), []
    for key, (status, reason) in results.items():
        listed = next((p for p in patterns(key) if p in known), None)
        if status == "refused" and listed:
            used.add(listed)
        elif status == "refused":
            problems.append(f"{key}: refused: {reason[:300]}")
        elif status in ("wrong", "defect"):
            problems.append(f"{key}: {status}: {reason[:300]}")
        elif status == "passed" and listed == key:
            problems.append(f"{key} passes; delete its line in expected_failures.txt")
    # A line for several samples is stale where none of them is refused.
    ran = {p for key in results for p in patterns(key)}
    problems += [f"{key} passes; delete its line in expected_failures.txt" for key in known if key in ran and key not in used and "*" in key]
    return problems


def write_expected(options, results):
    """A line for each dtype or entry that is refused whole, else for each sample."""
    path = options.expected_failures
    with open(path) as f:
        head = [line for line in f if line.startswith("#")]
    groups = collections.defaultdict(list)
    for key, (status, reason) in results.items():
        for pattern in patterns(key)[1:]:
            if status != "none":
                groups[pattern].append((status, reason))
    lines = {}
    for key, (status, reason) in results.items():
        if status == "refused":
            pattern = next((p for p in reversed(patterns(key)[1:]) if all(s == "refused" for s, _ in groups[p])), key)
            lines.setdefault(pattern, re.sub(r"^.*?: error: ", "", reason).split("|")[0][:200].rstrip())
    with open(path, "w") as f:
        f.writelines([*head, *(f"{key}: {reason}\n" for key, reason in lines.items())])


def main():
    options = parse_options()
    started = time.time()
    box = container.Container(options.container)
    shard, shards = map(int, options.shard.split("/"))
    jobs = [(i, door) for i, s in enumerate(box.samples) for door in options.door if re.search(options.filter, key_of(s, door).partition(" ")[2])]
    jobs = jobs[shard::shards]
    results = {}
    with multiprocessing.Pool(options.jobs, start, (options,)) as pool:
        for key, status, reason in pool.imap(run_sample, jobs, 8):
            results[key] = (status, reason)
    if options.table:
        write_table(options.table, results, time.time() - started)
    if options.results:
        with open(options.results, "w") as f:
            json.dump(results, f, indent=0)
    if options.prune:
        write_expected(options, results)
    problems = judge(options, results)
    for line in problems[:50]:
        print(line)
    counts = collections.Counter(status for status, _ in results.values())
    print(f"{len(results)} samples: {dict(counts)}; {len(problems)} not as expected; {time.time() - started:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
