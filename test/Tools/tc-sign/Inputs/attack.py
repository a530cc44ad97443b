# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attacks signatures of artifacts in the current folder, which holds release.key, release.pub and m.bin."""

import base64
import ctypes
import glob
import hashlib
import os
import random
import shutil
import subprocess
import sys

LIBRARIES = os.path.join(os.path.dirname(shutil.which("tc-run")), "../lib")
MODEL = os.path.join(sys.argv[1], "models/digits/model.onnx")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def must(*command):
    code, text = run(*command)
    assert code == 0, (command, code, text)
    return text


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def refuses(folder, count):
    """All artifacts of a folder are refused with a sentence each."""
    code, text = run("tc-sign", "verify", "--key", "release.pub", *sorted(glob.glob(folder + "/*.bin")))
    lines = text.splitlines()
    assert code == 1 and len(lines) == count, (folder, code, count, len(lines), lines[:3])
    assert all(": error: " in line for line in lines), lines[:3]
    shutil.rmtree(folder)


# ---- RFC 8032, section 5.1, as its appendix has it: a verifier that shares nothing with tc's ----

P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    h, g, i, j = f - e, d + c, d - c, f + e
    return h * i % P, g * j % P, i * g % P, h * j % P


def multiply(s, point):
    result = (0, 1, 1, 0)
    while s:
        if s & 1:
            result = add(result, point)
        point = add(point, point)
        s >>= 1
    return result


def decompress(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    xx = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    assert (x * x - xx) % P == 0
    x = P - x if (x & 1) != sign else x
    return x, y, 1, x * y % P


def verifies(key, message, signature):
    base_y = 4 * pow(5, P - 2, P) % P
    base = decompress(base_y.to_bytes(32, "little"))
    s = int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % Q
    a, b = multiply(s, base), add(decompress(signature[:32]), multiply(h, decompress(key)))
    return s < Q and (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def independent():
    pem = "".join(line for line in open("release.pub").read().splitlines() if not line.startswith("-"))
    key = base64.b64decode(pem)[-32:]
    data = read("m.bin")
    statement = f"tc artifact signature 1\nsha256 {hashlib.sha256(data).hexdigest()}\nbytes {len(data)}\n".encode()
    assert must("tc-sign", "statement", "m.bin").encode() == statement
    lines = open("m.bin.sig").read().splitlines()
    assert lines[1] == "key " + hashlib.sha256(key).hexdigest()[:16], lines
    signature = bytes.fromhex(lines[2])
    assert verifies(key, statement, signature)
    assert not verifies(key, statement + b" ", signature)
    # S + Q is the same number to who does not look.
    again = int.from_bytes(signature[32:], "little") + Q
    os.mkdir("malleable")
    shutil.copy("m.bin", "malleable/m.bin")
    text = "\n".join(lines[:2] + [(signature[:32] + again.to_bytes(32, "little")).hex()]) + "\n"
    write("malleable/m.bin.sig", text.encode())
    refuses("malleable", 1)


def bytes_and_lengths():
    data, signature = read("m.bin"), read("m.bin.sig")
    rng = random.Random(1)
    # A bit anywhere in the file, in the header, the table, and between sections.
    os.mkdir("flips")
    places = [*range(0, 96, 5), *(rng.randrange(len(data)) for _ in range(80)), len(data) - 1]
    for number, at in enumerate(places):
        damaged = bytearray(data)
        damaged[at] ^= 1 << rng.randrange(8)
        write(f"flips/{number:03}.bin", damaged)
        write(f"flips/{number:03}.bin.sig", signature)
    refuses("flips", len(places))
    # Any other byte anywhere in the signature, the case of its digits, too.
    os.mkdir("signatures")
    changed = []
    for at, byte in enumerate(signature):
        changed.append(signature[:at] + bytes([byte ^ (1 << rng.randrange(8))]) + signature[at + 1 :])
    changed += [signature[:length] for length in (0, 1, 22, 43, 100, len(signature) - 1)]
    changed += [signature + b"\n", signature + signature, b" " + signature, signature.replace(b"\n", b"\r\n"), signature.upper()]
    changed += [signature[:44] + signature[44:].upper(), bytes(len(signature)), signature[:44] + b"0" * 128 + b"\n"]
    for number, text in enumerate(changed):
        os.symlink(os.path.abspath("m.bin"), f"signatures/{number:03}.bin")
        write(f"signatures/{number:03}.bin.sig", text)
    refuses("signatures", len(changed))
    # Cut off, longer, empty; the signature of another artifact, and a folder or a pipe in its place.
    os.mkdir("lengths")
    others = [data[:-1], data[: len(data) // 2], data[:80], b"", data + b"\0", data + data, data + signature]
    for number, text in enumerate(others):
        write(f"lengths/{number}.bin", text)
        write(f"lengths/{number}.bin.sig", signature)
    refuses("lengths", len(others))
    os.mkdir("others")
    must("tc-compile", MODEL, "-o", "others/b.bin", "--cpu", "x86-64-v4", "-q")
    write("others/b.bin.sig", signature)
    for name, make in (("folder", os.mkdir), ("pipe", os.mkfifo)):
        write(f"others/{name}.bin", data)
        make(f"others/{name}.bin.sig")
    refuses("others", 3)


def weights():
    """Those of a file of their own are what was signed, although the signature is of the artifact alone."""
    must("tc-compile", MODEL, "-o", "split.bin", "--external-weights", "--cpu", "x86-64-v3", "-q")
    must("tc-sign", "sign", "split.bin", "--key", "release.key")
    must("tc-sign", "verify", "split.bin", "--key", "release.pub")
    run_split = ("tc-run", "split.bin", "--random-inputs", "--verify-key", "release.pub")
    must(*run_split)
    right = read("split.bin.weights")
    for at in (0, 9, 17, 40, 100, 4095, 4096, 5000, len(right) - 1):
        damaged = bytearray(right)
        damaged[at] ^= 1
        write("split.bin.weights", damaged)
        code, text = run(*run_split)
        assert code == 1 and "does not hold the weights" in text, (at, code, text)
        # Nor can they be signed.
        code, text = run("tc-sign", "sign", "split.bin", "--key", "release.key", "--signature", "no.sig")
        assert code == 1 and not os.path.exists("no.sig"), (code, text)
    write("split.bin.weights", right)
    must(*run_split)


def changes_while_it_is_opened():
    """Bytes that are accepted are those that run, whoever writes to the file between the two."""

    class ModelOptions(ctypes.Structure):
        _fields_ = [
            ("size", ctypes.c_size_t),
            ("verify_weights", ctypes.c_int),
            ("variant", ctypes.c_char_p),
            ("device", ctypes.c_uint32),
            ("device_index", ctypes.c_int32),
            ("log", ctypes.c_void_p),
            ("log_user", ctypes.c_void_p),
            ("functions", ctypes.c_void_p),
            ("function_count", ctypes.c_uint64),
            ("cpu_instead", ctypes.c_int),
            ("verify", ctypes.c_void_p),
            ("verify_user", ctypes.c_void_p),
        ]

    runtime = ctypes.CDLL(os.path.join(LIBRARIES, "libtcrt.so"))
    host = ctypes.CDLL(os.path.join(LIBRARIES, "libtcrt-host.so"))
    runtime.tcrt_last_error.restype = ctypes.c_char_p
    verifier = ctypes.c_void_p()
    why = ctypes.create_string_buffer(1024)
    assert host.tcrt_verifier_create(b"release.pub", None, ctypes.byref(verifier), why, ctypes.c_uint64(1024)) == 0, why.value
    shape = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64
    )
    host.tcrt_verifier_check.argtypes = shape._argtypes_

    class Tensor(ctypes.Structure):
        _fields_ = [
            ("dtype", ctypes.c_uint32),
            ("rank", ctypes.c_uint32),
            ("dims", ctypes.c_int64 * 16),
            ("data", ctypes.c_void_p),
            ("size_bytes", ctypes.c_uint64),
            ("device", ctypes.c_uint32),
        ]

    def open_model(path, name, spoil):
        """Opens `path`, whose file `name` is overwritten in place as soon as the verifier has accepted it."""

        def check(user, *arguments):
            status = host.tcrt_verifier_check(verifier, *arguments)
            if status == 0 and spoil:
                with open(name, "r+b") as f:
                    f.write(os.urandom(os.path.getsize(name)))
            return status

        callback = shape(check)
        options = ModelOptions(size=ctypes.sizeof(ModelOptions), verify=ctypes.cast(callback, ctypes.c_void_p))
        model = ctypes.c_void_p()
        status = runtime.tcrt_model_open_file(path.encode(), ctypes.byref(options), ctypes.byref(model))
        return status, model

    def logits(model):
        context = ctypes.c_void_p()
        assert runtime.tcrt_context_create(model, None, ctypes.byref(context)) == 0, runtime.tcrt_last_error()
        image = (ctypes.c_float * 64)(*(i / 64 for i in range(64)))
        tensor = Tensor(dtype=1, rank=4, data=ctypes.addressof(image), size_bytes=256)
        tensor.dims[:4] = [1, 1, 8, 8]
        assert runtime.tcrt_context_set_input(context, 0, ctypes.byref(tensor)) == 0, runtime.tcrt_last_error()
        assert runtime.tcrt_context_run(context) == 0, runtime.tcrt_last_error()
        result = Tensor()
        assert runtime.tcrt_context_get_output(context, 0, ctypes.byref(result)) == 0
        values = ctypes.string_at(result.data, result.size_bytes)
        runtime.tcrt_context_destroy(context)
        runtime.tcrt_model_close(model)
        return values

    status, model = open_model("m.bin", "m.bin", False)
    assert status == 0, runtime.tcrt_last_error()
    expected = logits(model)
    write("spoilt.bin", read("m.bin"))
    write("spoilt.bin.sig", read("m.bin.sig"))
    status, model = open_model("spoilt.bin", "spoilt.bin", True)
    assert status == 0, runtime.tcrt_last_error()
    assert logits(model) == expected
    assert read("spoilt.bin") != read("m.bin")
    status, model = open_model("spoilt.bin", "spoilt.bin", False)
    assert status == 1 and b"not the file that was signed" in runtime.tcrt_last_error(), runtime.tcrt_last_error()
    # Weights are read, and compared with the hash that the artifact holds, behind that.
    status, model = open_model("split.bin", "split.bin.weights", True)
    assert status == 1 and b"does not hold the weights" in runtime.tcrt_last_error(), runtime.tcrt_last_error()
    ctypes.CDLL(os.path.join(LIBRARIES, "libtcrt-host.so")).tcrt_verifier_destroy(verifier)


must("tc-sign", "sign", "m.bin", "--key", "release.key")
independent()
bytes_and_lengths()
weights()
changes_while_it_is_opened()
