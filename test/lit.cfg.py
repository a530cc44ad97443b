# How lit finds and runs the tests of this folder. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os
import shutil

import lit.formats

config.name = "tc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Unit", "lib", "CMakeLists.txt", "README.md"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.tc_binary_dir, "test")

path = [os.path.join(config.tc_binary_dir, "bin"), config.llvm_tools_dir, config.environment.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)
config.environment["NO_COLOR"] = "1"
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TMPDIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions.append(("%python", config.python))
config.substitutions.append(("%source", config.tc_source_dir))
# Folders with a libcuda.so.1 that needs no GPU (test/Unit/FakeCuda); %fakecuda-old and %fakecuda-too-old are older drivers.
config.substitutions.append(("%fakecuda", os.path.join(config.test_exec_root, "Unit", "fake-cuda")))

# What the machine and the build have; REQUIRES lines name these.
try:
    with open("/proc/cpuinfo") as cpuinfo:
        flags = next((line.split() for line in cpuinfo if line.startswith("flags")), [])
except OSError:
    flags = []
for feature in ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile"):
    if feature in flags:
        config.available_features.add(feature)
if os.path.exists("/dev/nvidiactl"):
    config.available_features.add("cuda")
if any(os.access(os.path.join(folder, "ptxas"), os.X_OK) for folder in (*os.environ.get("PATH", "").split(os.pathsep), "/usr/local/cuda/bin")):
    config.available_features.add("ptxas")
for program in ("chromium", "fish", "man", "mandoc", "zsh"):
    if shutil.which(program):
        config.available_features.add(program)
if config.tc_sanitize:
    config.available_features.add("sanitizer")
