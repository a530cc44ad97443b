# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs kernels in PTX without a GPU, thread by thread: what kernels of rows have of the ISA (PTX ISA 8.0), no tensor cores and no asynchronous copies.

Registers are integers of their bits. An address is of the array whose number, from 1 on, is in its upper 32 bits, or of shared memory. What a GPU leaves undefined is
an error: accesses outside of arrays, shuffles and barriers that not all threads of a warp or block reach, no end. Rounding is that of one operation from float64.
"""
import re

import numpy as np

WARP = 32
MOST_STEPS = 1_000_000  # of a thread
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
INTEGERS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
ROUNDINGS = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}
OPERATIONS_OF_FLOATS = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "fma": lambda x, y, z: x * y + z,
    "div": lambda x, y: x / y, "rcp": lambda x: 1 / x, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "ex2": np.exp2, "lg2": np.log2,
} # fmt: skip
OPERATIONS_OF_INTEGERS = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y,
    "not": lambda x: ~x, "neg": lambda x: -x, "abs": abs, "min": min, "max": max, "shl": lambda x, y: x << min(y, 64),
    "shr": lambda x, y: x >> min(y, 64), "bfe": lambda x, first, count: (x >> first) & ((1 << count) - 1),
} # fmt: skip
COMPARISONS = {
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
} # fmt: skip
UNSIGNED_COMPARISONS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


class Unsupported(Exception):
    """An instruction that is not interpreted."""


def bits_of(type_name):
    return 1 if type_name == "pred" else int(re.fullmatch(r"bf16|[a-z](\d+)", type_name)[1] or 16)


def is_float(type_name):
    return type_name in FLOATS or type_name == "bf16"


def to_float(type_name, bits):
    """The float64 with a register's value."""
    if type_name == "bf16":
        type_name, bits = "f32", (bits & 0xFFFF) << 16
    size = bits_of(type_name)
    return np.float64(INTEGERS[size](bits & ((1 << size) - 1)).view(FLOATS[type_name]))


def to_bits(type_name, value):
    if type_name == "bf16":
        bits = int(np.float32(value).view(np.uint32))
        return 0x7FFF if value != value else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return int(FLOATS[type_name](value).view(INTEGERS[bits_of(type_name)]))


def signed(bits, size):
    bits &= (1 << size) - 1
    return bits - (1 << size) if bits >> (size - 1) else bits


def names(text):
    """Of a vector of registers, or of one."""
    return [name.strip() for name in text.strip("{}").split(",")]


class Kernel:
    """A kernel of a module: instructions as (guard, words of the opcode, operands, text), and where labels stand."""

    def __init__(self, module, name):
        start = module.index(f".entry {name}(")
        body = module[module.index("{", start) + 1:module.index("\n}", start)]
        self.shared, self.shared_bytes = {}, 0
        for align, symbol, size in re.findall(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\];", module):
            self.shared[symbol] = -(-self.shared_bytes // int(align)) * int(align)
            self.shared_bytes = self.shared[symbol] + int(size)
        self.code, self.labels = [], {}
        for statement in re.split(r";|(?<=:)\s*\n", re.sub(r"//[^\n]*", "", body)):
            statement = re.sub(r"^[{}\s]+", "", statement).strip()
            if statement.endswith(":"):
                self.labels[statement[:-1]] = len(self.code)
            elif statement and not statement.startswith((".reg", ".shared", ".loc")):
                guard, opcode, operands = re.fullmatch(r"(@!?\S+\s+)?(\S+)\s*(.*)", statement, re.S).groups()
                self.code.append(((guard or "").strip("@ \t"), opcode.split("."), re.findall(r"\{[^}]*\}|\[[^]]*\]|[^,\s]+", operands), statement))

    def run(self, arguments, memory, blocks, threads):
        """arguments: the words of the kernel's parameter, addresses of arrays among them. memory: bytearrays, which it writes."""
        with np.errstate(all="ignore"):
            for block in range(blocks):
                _Block(self, arguments, memory, block, threads).run()


class _Block:

    def __init__(self, kernel, arguments, memory, number, threads):
        self.kernel, self.arguments = kernel, arguments
        self.memory = [*memory, bytearray(b"".join(word.to_bytes(8, "little") for word in arguments))]
        self.shared, self.number = bytearray(kernel.shared_bytes), number
        self.threads = [self.thread(number) for number in range(threads)]

    def run(self):
        """Each thread goes on to where it waits: for the other lanes of its warp, or for the block."""
        waiting = {number: next(thread, None) for number, thread in enumerate(self.threads)}

        def resume(number, value=None):
            try:
                waiting[number] = self.threads[number].send(value)
            except StopIteration:
                waiting[number] = None

        while live := [number for number, what in waiting.items() if what]:
            shuffles = {}
            for number in live:
                if waiting[number][0] == "shuffle":
                    shuffles.setdefault(number // WARP, {})[number] = waiting[number][1:]
            for warp, lanes in shuffles.items():
                if len(lanes) != min(WARP, len(self.threads) - warp * WARP) or len({at for at, *_ in lanes.values()}) != 1:
                    raise AssertionError("a shuffle that not all lanes of a warp reach")
                for number, (_, mode, value, distance) in lanes.items():
                    source = number ^ distance if mode == "bfly" else number - distance if mode == "up" else number + distance
                    resume(number, lanes[source][2] if source in lanes else value)
            if not shuffles:
                if len(live) != len(self.threads):
                    raise AssertionError("a barrier that not all threads of a block reach")
                for number in live:
                    resume(number)

    def bytes_at(self, address, size):
        """The array of an address, and where in it that is."""
        array, at = (self.memory[(address >> 32) - 1], address & 0xFFFFFFFF) if address >> 32 else (self.shared, address)
        if at + size > len(array):
            raise AssertionError(f"{size} bytes at {at} of {len(array)}")
        return array, at

    def thread(self, number):
        registers = {"%tid.x": number, "%ctaid.x": self.number, "%ntid.x": len(self.threads)}
        kernel, at = self.kernel, 0

        def value(operand):
            if operand in registers:
                return registers[operand]
            if re.match(r"0[fd]", operand):
                return int(operand[2:], 16)
            if re.fullmatch(r"-?(\d+|0x\w+)U?", operand):
                return int(operand.rstrip("U"), 0)
            if operand in kernel.shared:
                return kernel.shared[operand]
            if "_param_" in operand:
                return len(self.memory) << 32
            raise Unsupported(f"operand {operand}")

        def address(operand):
            base, offset = re.fullmatch(r"\[([^+]+)(?:\+(-?\d+))?\]", operand).groups()
            return value(base) + int(offset or 0)

        for _ in range(MOST_STEPS):
            guard, opcode, operands, text = kernel.code[at]
            at += 1
            if guard and bool(registers[guard.lstrip("!")]) == guard.startswith("!"):
                continue
            operation, kind = opcode[0], opcode[-1]
            to = operands[0] if operands else None
            if operation == "ret":
                return
            if operation == "bra":
                at = kernel.labels[to]
            elif operation in ("bar", "barrier"):
                yield ("barrier",)
            elif operation == "shfl":
                registers[to.split("|")[0]] = yield ("shuffle", at, opcode[2], value(operands[1]), value(operands[2]))
            elif operation in ("ld", "st"):
                self.access(registers, operation == "ld", kind, operands, value, address)
            elif operation == "mov" and (to.startswith("{") or operands[1].startswith("{")):
                parts = names(to if to.startswith("{") else operands[1])
                size = bits_of(kind) // len(parts)
                if to.startswith("{"):
                    registers.update({part: value(operands[1]) >> size * i & (1 << size) - 1 for i, part in enumerate(parts)})
                else:
                    registers[to] = sum((registers[part] & (1 << size) - 1) << size * i for i, part in enumerate(parts))
            elif operation in ("mov", "cvta"):
                registers[to] = value(operands[1])
            elif operation == "selp":
                registers[to] = value(operands[1 if registers[operands[3]] else 2])
            elif operation == "setp":
                registers[to] = compare(opcode, operands, value)
            elif operation == "cvt":
                registers[to] = convert(opcode, [value(operand) for operand in operands[1:]])
            else:
                compute = compute_floats if is_float(kind) else compute_integers
                registers[to] = compute(opcode, [value(operand) for operand in operands[1:]], text)
        raise AssertionError("a thread without end")

    def access(self, registers, loads, kind, operands, value, address):
        size = bits_of(kind) // 8
        parts = names(operands[0 if loads else 1])
        array, at = self.bytes_at(address(operands[1 if loads else 0]), size * len(parts))
        for i, part in enumerate(parts):
            place = slice(at + i * size, at + (i + 1) * size)
            if loads:
                bits = int.from_bytes(array[place], "little")
                registers[part] = signed(bits, 8 * size) & (1 << 64) - 1 if kind[0] == "s" else bits
            else:
                array[place] = (value(part) & (1 << 8 * size) - 1).to_bytes(size, "little")


def compute_floats(opcode, operands, text):
    operation, kind = opcode[0], opcode[-1]
    sign = 1 << bits_of(kind) - 1
    if operation == "neg":
        return operands[0] ^ sign
    if operation == "abs":
        return operands[0] & sign - 1
    if operation == "copysign":
        return operands[1] & sign - 1 | operands[0] & sign
    values = [to_float(kind, bits) for bits in operands]
    if operation in ("min", "max"):
        known = [value for value in values if value == value]
        return to_bits(kind, np.nan if not known or len(known) < 2 and "NaN" in opcode else (min if operation == "min" else max)(known))
    if operation not in OPERATIONS_OF_FLOATS:
        raise Unsupported(text)
    exact = OPERATIONS_OF_FLOATS[operation](*values)
    if "sat" in opcode:
        exact = np.float64(0) if exact != exact else np.clip(exact, 0, 1)
    bits = to_bits(kind, exact)
    if "rm" in opcode and to_float(kind, bits) > exact:
        bits = to_bits(kind, np.nextafter(FLOATS[kind](exact), FLOATS[kind](-np.inf)))
    return bits


def compute_integers(opcode, operands, text):
    operation, kind = opcode[0], opcode[-1]
    size = bits_of(kind)
    shift = operation in ("shl", "shr")
    values = [signed(bits, size) if kind[0] == "s" and not (shift and i) else bits & (1 << size) - 1 for i, bits in enumerate(operands)]
    if operation in ("mul", "mad"):
        product = values[0] * values[1] >> (size if "hi" in opcode else 0)
        size *= 2 if "wide" in opcode else 1
        return product + (operands[2] if operation == "mad" else 0) & (1 << size) - 1
    if operation in ("div", "rem"):
        quotient = abs(values[0]) // abs(values[1]) * (1 if (values[0] < 0) == (values[1] < 0) else -1)
        return (quotient if operation == "div" else values[0] - quotient * values[1]) & (1 << size) - 1
    if operation == "prmt":
        both = operands[0] & 0xFFFFFFFF | (operands[1] & 0xFFFFFFFF) << 32
        chosen = [both >> 8 * (operands[2] >> 4 * i & 7) & 0xFF for i in range(4)]
        return sum(byte << 8 * i for i, byte in enumerate(chosen))
    if operation not in OPERATIONS_OF_INTEGERS:
        raise Unsupported(text)
    return OPERATIONS_OF_INTEGERS[operation](*values) & (1 << size) - 1


def compare(opcode, operands, value):
    kind, comparison = opcode[-1], UNSIGNED_COMPARISONS.get(opcode[1], opcode[1])
    bits = [value(operand) for operand in operands[1:3]]
    if is_float(kind):
        x, y = (to_float(kind, b) for b in bits)
        unordered = bool(x != x or y != y)
        if comparison in ("num", "nan"):
            result = unordered == (comparison == "nan")
        else:
            result = comparison.endswith("u") if unordered else COMPARISONS[comparison[:2]](x, y)
    else:
        size = bits_of(kind)
        x, y = (signed(b, size) if kind[0] == "s" else b & (1 << size) - 1 for b in bits)
        result = COMPARISONS[comparison](x, y)
    if len(operands) > 3:
        other = bool(value(operands[3].lstrip("!"))) != operands[3].startswith("!")
        result = {"and": result and other, "or": result or other, "xor": result != other}[opcode[2]]
    return int(bool(result))


def convert(opcode, operands):
    to, kind = opcode[-2:]
    if to.endswith("x2"):
        return to_bits(to[:-2], to_float(kind, operands[0])) << 16 | to_bits(to[:-2], to_float(kind, operands[1]))
    size, rounding = bits_of(to), next((ROUNDINGS[word] for word in opcode if word in ROUNDINGS), None)
    if not is_float(kind):
        value = signed(operands[0], bits_of(kind)) if kind[0] == "s" else operands[0] & (1 << bits_of(kind)) - 1
        return to_bits(to, float(value)) if is_float(to) else value & (1 << size) - 1
    value = to_float(kind, operands[0])
    value = rounding(value) if rounding else value
    if is_float(to):
        return to_bits(to, value)
    least, most = (-(1 << size - 1), (1 << size - 1) - 1) if to[0] == "s" else (0, (1 << size) - 1)
    return (0 if value != value else int(min(max(value, least), most))) & (1 << size) - 1
