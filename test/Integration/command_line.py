#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong use and bad input of tc-compile and tc-run: exit codes, golden messages, no crash, no partial file.

usage: command_line.py BIN [--update] [CASE ...]

Each case runs one command in a folder of its own and compares exit code and standard error with messages.txt, which holds
both per case. Folders are written as $DIR, and computed numbers, whose last digits depend on the CPU, as #. Besides, every
failing command must print a message of the form "<file or tool>: error: ...", and must not leave the file that it was to
write. --update rewrites messages.txt from what the tools say; read the difference before committing it: a message is a
complete sentence that names the file and the node.
"""
import argparse
import difflib
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import onnx
from onnx import TensorProto, helper

HERE = os.path.dirname(os.path.abspath(__file__))
DIGITS = os.path.join(HERE, "..", "..", "models", "digits")
MESSAGES = os.path.join(HERE, "messages.txt")
FLOAT = TensorProto.FLOAT
COMPILE = {}  # name: (function that writes model.onnx into the current folder, further arguments)
RUN = {}      # name: function that returns tc-run's arguments, in a folder with digits.bin and inputs.npz


def info(name, dims, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def save(nodes, inputs, outputs, initializers=(), opset=20, domains=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    with open("model.onnx", "wb") as f:
        f.write(helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString())


def relu(out="y", op="Relu", **keys):
    return helper.make_node(op, ["x"], [out], name="act", **keys)


def good_model():
    save([relu()], [info("x", [2, 3])], [info("y", [2, 3])])


def write(data):
    with open("model.onnx", "wb") as f:
        f.write(data)


def digits_bytes():
    with open(os.path.join(DIGITS, "model.onnx"), "rb") as f:
        return f.read()


def compile_case(*arguments):
    def register(function):
        COMPILE[function.__name__] = (function, arguments)
        return function
    return register


def run_case(function):
    RUN[function.__name__] = function
    return function


# --- models that tc-compile must refuse --------------------------------------------------------------------------------

@compile_case()
def no_such_file():
    pass


@compile_case()
def a_folder():
    os.mkdir("model.onnx")


@compile_case()
def empty_file():
    write(b"")


@compile_case()
def text_file():
    write(b"this is no model\n" * 50)


def zip_of(*names, packed=()):
    with zipfile.ZipFile("model.onnx", "w") as archive:
        for name in names:
            content = {"archive_format": b"pt2", "program.json": b'{"schema_version": {"major": 5, "minor": 3}}'}
            archive.writestr(name, next((data for end, data in content.items() if name.endswith(end)), b""))
        for name in packed:
            archive.writestr(name, bytes(100), zipfile.ZIP_DEFLATED)


# What is taken for a model, and what to do instead.

@compile_case()
def artifact_as_model():
    write(b"tcart\r\n\x1a" + bytes(500))


@compile_case()
def weights_as_model():
    write(b"tcwts\r\n\x1a" + bytes(500))


@compile_case()
def torchscript():
    zip_of("m/data.pkl", "m/constants.pkl", "m/code/__torch__.py", "m/version")


@compile_case()
def torchscript_with_packed_code():
    zip_of("m/data.pkl", "m/constants.pkl", packed=["m/code/__torch__.py"])


@compile_case()
def torch_save():
    zip_of("m/data.pkl", "m/data/0", "m/version")


@compile_case()
def older_torch_export():
    zip_of("version", "serialized_exported_program.json", "serialized_state_dict.pt")


@compile_case()
def packed_torch_export():
    zip_of("m/archive_format", packed=["m/models/model.json"])


@compile_case()
def packed_numpy_archive():
    zip_of(packed=["x.npy"])


@compile_case()
def numpy_archive():
    zip_of("x.npy")


@compile_case()
def other_zip():
    zip_of("readme.txt")


@compile_case()
def pickle_file():
    write(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19." + bytes(50))


@compile_case()
def hdf5():
    write(b"\x89HDF\r\n\x1a\n" + bytes(50))


@compile_case()
def tensorflow_lite():
    write(b"\x1c\0\0\0TFL3" + bytes(50))


@compile_case()
def operator_nearly_known():
    save([relu(op="Sofmax")], [info("x", [2])], [info("y", [2])])


@compile_case("--dim", "bacth=4")
def dim_nearly_known():
    save([relu()], [info("x", ["batch", "width"])], [info("y", ["batch", "width"])])


@compile_case("--shape", "pixel=2,3")
def shape_nearly_known():
    save([helper.make_node("Relu", ["pixels"], ["y"])], [info("pixels", [2, 3])], [info("y", [2, 3])])


@compile_case()
def truncated_file():
    write(digits_bytes()[:-5000])


@compile_case()
def truncated_early():
    write(digits_bytes()[:100])


@compile_case()
def unknown_operator():
    save([relu(op="Frobnicate"), helper.make_node("Wibble", ["y"], ["z"], name="second")], [info("x", [2])], [info("z", [2])])


@compile_case()
def unknown_domain():
    save([relu(op="Frobnicate", domain="com.example")], [info("x", [2])], [info("y", [2])], domains=["com.example"])


@compile_case()
def domain_without_opset():
    save([relu(op="Gelu", domain="com.microsoft")], [info("x", [2])], [info("y", [2])])


@compile_case()
def opset_of_the_future():
    save([relu()], [info("x", [2])], [info("y", [2])], opset=99)


@compile_case()
def element_type_not_taken():
    save([relu()], [info("x", [2], TensorProto.COMPLEX64)], [info("y", [2], TensorProto.COMPLEX64)])


@compile_case()
def unknown_attribute():
    save([relu(frobnication=3)], [info("x", [2])], [info("y", [2])])


@compile_case()
def attribute_of_wrong_type():
    save([relu(op="Softmax", axis="last")], [info("x", [2, 2])], [info("y", [2, 2])])


def external(location):
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    save([helper.make_node("Add", ["x", "w"], ["y"], name="sum")], [info("x", [3])], [info("y", [3])], [tensor])


@compile_case()
def missing_external_data():
    external("weights.data")


@compile_case()
def external_data_outside():
    external("../../../../../../etc/passwd")


@compile_case()
def external_data_absolute():
    external("/etc/passwd")


@compile_case()
def external_data_too_short():
    with open("weights.data", "wb") as f:
        f.write(b"1234")
    external("weights.data")


@compile_case()
def external_data_by_link():
    os.symlink("/etc/hostname", "weights.data")
    external("weights.data")


@compile_case()
def initializer_too_short():
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[3], raw_data=b"12345678")
    save([helper.make_node("Add", ["x", "w"], ["y"], name="sum")], [info("x", [3])], [info("y", [3])], [tensor])


@compile_case()
def cyclic_graph():
    save([helper.make_node("Add", ["x", "b"], ["a"], name="first"), helper.make_node("Neg", ["a"], ["b"], name="second")],
         [info("x", [3])], [info("b", [3])])


@compile_case()
def undefined_value():
    save([helper.make_node("Add", ["x", "nowhere"], ["y"], name="sum")], [info("x", [3])], [info("y", [3])])


@compile_case()
def undefined_output():
    save([relu()], [info("x", [3])], [info("z", [3])])


@compile_case()
def value_defined_twice():
    save([relu(), helper.make_node("Neg", ["x"], ["y"], name="again")], [info("x", [3])], [info("y", [3])])


@compile_case()
def too_few_operands():
    save([helper.make_node("MatMul", ["x"], ["y"], name="product")], [info("x", [3, 3])], [info("y", [3, 3])])


@compile_case()
def shapes_do_not_broadcast():
    save([helper.make_node("Add", ["x", "w"], ["y"], name="sum")], [info("x", [2, 3]), info("w", [2, 4])], [info("y", [2, 3])])


@compile_case()
def matmul_sizes():
    save([helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], [info("x", [2, 3]), info("w", [4, 5])],
         [info("y", [2, 5])])


@compile_case()
def conv_ranks():
    save([helper.make_node("Conv", ["x", "w"], ["y"], name="conv")], [info("x", [1, 3, 8]), info("w", [4, 3, 3, 3])],
         [info("y", [1, 4, 6, 6])])


@compile_case()
def conv_channels():
    save([helper.make_node("Conv", ["x", "w"], ["y"], name="conv")], [info("x", [1, 3, 8, 8]), info("w", [4, 2, 3, 3])],
         [info("y", [1, 4, 6, 6])])


@compile_case()
def reshape_count():
    shape = helper.make_tensor("s", TensorProto.INT64, [2], [4, 2])
    save([helper.make_node("Reshape", ["x", "s"], ["y"], name="view")], [info("x", [2, 3])], [info("y", [4, 2])], [shape])


@compile_case()
def axis_out_of_range():
    save([relu(op="Softmax", axis=5)], [info("x", [2, 3])], [info("y", [2, 3])])


@compile_case()
def output_shape_contradicts():
    save([relu()], [info("x", [2, 3])], [info("y", [7, 7])])


@compile_case()
def output_rank_contradicts():
    save([relu()], [info("x", ["n", 3])], [info("y", ["n", 3, 1])])


@compile_case()
def output_that_is_an_input_contradicts():
    save([relu()], [info("x", [2, 3])], [info("y", [2, 3]), info("x", [3, 2])])


@compile_case()
def output_type_contradicts():
    save([relu()], [info("x", [2, 3])], [info("y", [2, 3], TensorProto.INT64)])


@compile_case()
def mixed_types():
    save([helper.make_node("Add", ["x", "w"], ["y"], name="sum")], [info("x", [2]), info("w", [2], TensorProto.INT64)],
         [info("y", [2])])


@compile_case()
def deep_nesting():
    """If in If, 400 deep. Put together by hand, as protobuf's Python library refuses to."""
    def field(number, payload):
        length, size = len(payload), b""
        while length >= 0x80:
            size, length = size + bytes([length & 0x7f | 0x80]), length >> 7
        return bytes([number << 3 | 2]) + size + bytes([length]) + payload

    value = lambda name: info(name, [2]).SerializeToString()
    body = helper.make_node("Identity", ["x"], ["y"], name="leaf").SerializeToString()
    for i in range(400):
        graph = field(1, body) + field(2, b"branch") + field(12, value("y"))
        branches = [field(5, field(1, name) + field(6, graph) + b"\xa0\x01\x05") for name in (b"then_branch", b"else_branch")[:1 + (i < 1)]]
        body = field(1, b"c") + field(2, b"y") + field(3, b"if%d" % i) + field(4, b"If") + b"".join(branches)
    graph = field(1, body) + field(2, b"g") + field(11, value("x")) + field(12, value("y")) \
        + field(11, info("c", [], TensorProto.BOOL).SerializeToString())
    write(b"\x08\x0a" + field(7, graph) + field(8, helper.make_opsetid("", 20).SerializeToString()))


# --- wrong use of tc-compile -------------------------------------------------------------------------------------------

USE = {
    "unknown_option": ["--frobnicate"],
    "unknown_target": ["--target", "abacus"],
    "unknown_cpu": ["--cpu", "z80"],
    "aarch64": ["--cpu", "aarch64"],
    "unknown_mode": ["--mode", "fastest"],
    "tuning_of_reference": ["--mode", "max-autotune", "--target", "reference"],
    "tuning_db_of_reference": ["--tuning-db", "model.onnx", "--target", "reference"],
    "tuning_machine_alone": ["--tuning-machine", "here"],
    "tuning_machine_and_mode": ["--tuning-machine", "here", "--tuning-db", "db.json", "--mode", "max-autotune"],
    "candidates_and_mode": ["--tuning-candidates", "m.tune", "--mode", "max-autotune"],
    "candidates_of_reference": ["--tuning-candidates", "m.tune", "--target", "reference"],
    "candidates_of_an_early_phase": ["--tuning-candidates", "m.tune", "--compile-to=prim"],
    "candidates_over_the_model": ["--tuning-candidates", "model.onnx"],
    "candidates_in_no_folder": ["--tuning-candidates", "nowhere/m.tune"],
    "tuning_threads_alone": ["--tuning-threads", "2"],
    "tuning_db_is_a_model": ["--tuning-db", "model.onnx"],
    "tuning_db_not_there": ["--tuning-db", "db.json"],
    "tuning_db_in_no_folder": ["--tuning-db", "nowhere/db.json", "--mode", "max-autotune"],
    "unknown_precision": ["--precision", "f33"],
    "backend_without_library": ["--backend-for", "fc1"],
    "backend_for_no_node": ["--backend-for", "=onnxruntime"],
    "unknown_backend": ["--backend-for", "fc1=cutlass"],
    "backend_for_gpus": ["--backend-for", "fc1=onnxruntime", "--target", "cuda"],
    "static_input_of_gpus": ["--static-input", "images", "--target", "cuda"],
    "static_input_not_there": ["--static-input", "image"],
    "precision_auto_without_error": ["--precision", "auto"],
    "chosen_precision_alone": ["--chosen-precision", "c.json"],
    "unknown_phase": ["--compile-to=nowhere"],
    "unknown_dim": ["--dim", "batch=4"],
    "malformed_dim": ["--dim", "batch"],
    "dim_range_backwards": ["--dim", "n=5..2"],
    "dim_no_multiple": ["--dim", "n=multiple-of:8,12,0..64"],
    "dim_range_of_no_multiple": ["--dim", "n=multiple-of:8,1..7"],
    "dim_buckets_fall": ["--dim", "n=bucket:64,8"],
    "dim_twice": ["--dim", "n=1", "--dim", "n=1..4"],
    "shape_twice": ["--shape", "x=2,3", "--shape", "x=2,3"],
    "cpu_without_cpu": ["--target", "cuda", "--cpu", "x86-64-v3"],
    "gpu_without_cuda": ["--gpu", "sm_80"],
    "external_weights_of_a_module": ["--external-weights", "--compile-to", "fuse"],
    "malformed_shape": ["--shape", "x"],
    "shape_of_wrong_rank": ["--shape", "x=1,2,3"],
    "shape_of_no_input": ["--shape", "nope=1,2"],
    "shape_contradicts": ["--shape", "x=4,4"],
}
for _name, _arguments in USE.items():
    COMPILE[_name] = (good_model, _arguments)
COMPILE["output_is_no_file"] = (good_model, ["-o", "-"])
COMPILE["output_in_no_folder"] = (good_model, ["-o", "nowhere/out.bin"])
COMPILE["output_is_a_pipe"] = (lambda: (good_model(), os.mkfifo("pipe")), ["-o", "pipe"])
COMPILE["disk_full"] = (lambda: write(digits_bytes()), ["-o", "out.bin"])
FILE_LIMIT = {"disk_full": 8192}  # bytes a file may have: writing fails beyond, as on a full disk


# --- artifacts and inputs that tc-run must refuse ----------------------------------------------------------------------

def npz(**arrays):
    np.savez("in.npz", **arrays)
    return ["digits.bin", "--inputs", "in.npz"]


def changed_artifact(change):
    with open("digits.bin", "rb") as f:
        data = bytearray(f.read())
    with open("changed.bin", "wb") as f:
        f.write(change(data))
    return ["changed.bin", "--inputs", "inputs.npz"]


@run_case
def no_such_artifact():
    return ["nowhere.bin", "--random-inputs"]


@run_case
def artifact_is_text():
    return changed_artifact(lambda data: b"this is no artifact\n" * 1000)


@run_case
def artifact_is_empty():
    return changed_artifact(lambda data: b"")


@run_case
def artifact_is_truncated():
    return changed_artifact(lambda data: data[:len(data) // 2])


@run_case
def artifact_of_another_version():
    def change(data):
        data[8] ^= 0x40  # artifact_abi.h: the version follows the eight bytes of the magic
        return data
    return changed_artifact(change)


@run_case
def inputs_missing():
    return npz()


@run_case
def input_of_wrong_name():
    return npz(pictures=np.zeros((1, 1, 8, 8), np.float32))


@run_case
def input_of_wrong_dtype():
    return npz(images=np.zeros((1, 1, 8, 8), np.int64))


@run_case
def input_of_wrong_rank():
    return npz(images=np.zeros((1, 8, 8), np.float32))


@run_case
def input_of_wrong_size():
    return npz(images=np.zeros((1, 1, 9, 9), np.float32))


@run_case
def inputs_file_missing():
    return ["digits.bin", "--inputs", "nowhere.npz"]


@run_case
def inputs_file_is_text():
    with open("in.npz", "w") as f:
        f.write("hello")
    return ["digits.bin", "--inputs", "in.npz"]


@run_case
def inputs_file_is_one_array():
    np.save("in.npy", np.zeros((1, 1, 8, 8), np.float32))
    return ["digits.bin", "--inputs", "in.npy"]


@run_case
def model_as_artifact():
    with open("model.onnx", "wb") as f:
        f.write(digits_bytes())
    return ["model.onnx", "--random-inputs"]


@run_case
def value_without_equals():
    return ["digits.bin", "--random-inputs", "--benchmark", "1"]


@run_case
def unknown_variant():
    return ["digits.bin", "--inputs", "inputs.npz", "--variant", "z80"]


@run_case
def outputs_unwritable():
    return ["digits.bin", "--inputs", "inputs.npz", "--outputs", "nowhere/out.npz"]


@run_case
def outputs_differ():
    logits = np.load(os.path.join(DIGITS, "outputs.npz"))["logits"]
    logits[7, 3] += 1
    np.savez("expected.npz", logits=logits)
    return ["digits.bin", "--inputs", "inputs.npz", "--expect", "expected.npz", "--max-rel", "2e-5"]


@run_case
def expected_of_wrong_shape():
    np.savez("expected.npz", logits=np.zeros((3, 10), np.float32))
    return ["digits.bin", "--inputs", "inputs.npz", "--expect", "expected.npz", "--max-rel", "2e-5"]


@run_case
def run_dim_twice():
    return ["digits.bin", "--random-inputs", "--dim", "batch=2", "--dim", "batch=3"]


@run_case
def run_dim_nearly_known():
    return ["digits.bin", "--random-inputs", "--dim", "bacth=2"]


@run_case
def run_tune():
    return ["digits.bin", "--tune"]


@run_case
def run_tune_of_an_artifact():
    return ["digits.bin", "--tune", "db.json"]


@run_case
def run_tune_with_inputs():
    return ["digits.bin", "--tune", "db.json", "--inputs", "inputs.npz"]


@run_case
def run_unknown_option():
    return ["digits.bin", "--frobnicate"]


# --- running -----------------------------------------------------------------------------------------------------------

def execute(command, folder, file_limit=None):
    """(exit code, standard error) of a command; a signal shows as a negative code."""
    def limit():
        if file_limit:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

    environment = {**os.environ, "NO_COLOR": "1"}
    try:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, env=environment,
                                preexec_fn=limit, restore_signals=False)
    except subprocess.TimeoutExpired:
        return "none within 60 s", ""
    text = result.stderr.replace(os.path.realpath(folder), "$DIR").strip()
    # Sizes of artifacts change with the code in them.
    text = re.sub(r"has \d+ bytes and should have \d+", "has # bytes and should have #", text)
    return result.returncode, re.sub(r"-?\d+\.\d{3,}(e[-+]?\d+)?", "#", text)


def breach(code, text, leftovers):
    """What is wrong with a failure whatever its golden message is; empty where nothing is."""
    if not isinstance(code, int) or not 1 <= code <= 5:
        return f"exit code {code}: not a refusal of bad input"
    if not re.match(r"[^\n]+: error: \S", text):
        return "the message does not begin with <file>: error:"
    if leftovers:
        return f"left behind: {', '.join(leftovers)}"
    return ""


def run_one(tools, name, artifact):
    with tempfile.TemporaryDirectory(prefix="tc-cli-") as folder:
        os.chdir(folder)
        if name in COMPILE:
            make, arguments = COMPILE[name]
            make()
            output = [] if "-o" in arguments else ["-o", "out.bin"]
            command = [os.path.join(tools, "tc-compile"), "model.onnx", *output, *arguments]
        else:
            os.symlink(artifact, "digits.bin")
            os.symlink(os.path.realpath(os.path.join(DIGITS, "inputs.npz")), "inputs.npz")
            command = [os.path.join(tools, "tc-run"), *RUN[name]()]
        before = set(os.listdir("."))
        code, text = execute(command, folder, FILE_LIMIT.get(name))
        leftovers = sorted(set(os.listdir(".")) - before)
        os.chdir(HERE)
    return code, text, breach(code, text, leftovers)


def read_messages():
    known, name = {}, None
    if os.path.exists(MESSAGES):
        with open(MESSAGES) as f:
            for line in f:
                head = re.fullmatch(r"== (\w+): exit (\d+)\n", line)
                if head:
                    name = head.group(1)
                    known[name] = (int(head.group(2)), "")
                elif name:
                    known[name] = (known[name][0], known[name][1] + line)
    return {k: (code, text.strip()) for k, (code, text) in known.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    tools = os.path.realpath(options.bin)
    known = read_messages()
    names = options.cases or [*COMPILE, *RUN]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="tc-cli-artifact-") as folder:
        artifact = os.path.join(folder, "digits.bin")
        result = subprocess.run([os.path.join(tools, "tc-compile"), os.path.join(DIGITS, "model.onnx"), "-o", artifact, "-q"])
        if result.returncode:
            print("digits: FAILED: models/digits does not compile, so tc-run is not tested")
            names, failed = [n for n in names if n in COMPILE], 1
        for name in names:
            code, text, wrong = run_one(tools, name, artifact)
            want = known.get(name, (None, ""))
            if not wrong and not options.update and (code, text) != want:
                wrong = "\n".join(difflib.unified_diff([f"exit {want[0]}", *want[1].splitlines()],
                                                       [f"exit {code}", *text.splitlines()], "expected", "got", lineterm=""))
            if wrong:
                print(f"{name}: FAILED: {wrong}\n  exit {code}\n  {text}", flush=True)
                failed += 1
            else:
                passed += 1
                known[name] = (code, text)
    if options.update:
        with open(MESSAGES, "w") as f:
            f.write("Golden messages of command_line.py: exit code and standard error per case.\n\n")
            f.write("\n".join(f"== {n}: exit {known[n][0]}\n{known[n][1]}\n" for n in [*COMPILE, *RUN] if n in known))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
