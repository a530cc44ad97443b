#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What wheels of the Python package hold, installed from a build into folders: with the tools it compiles and runs, without them it runs and says what
to install; so does what TC_RUNTIME_ONLY builds, with a C compiler alone.

usage: package.py CMAKE BUILD_DIR C_COMPILER
"""
import os
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
DIGITS = os.path.join(ROOT, "models", "digits")
COMPILE = "import sys, tc_compiler as tc; tc.compile(sys.argv[1], output=sys.argv[2])"
MOST_BYTES = 1_000_000


def call(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode:
        sys.exit(f"{' '.join(command)} ended with status {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


def install(cmake, build, prefix, *components):
    for component in components:
        call(cmake, "--install", build, "--prefix", prefix, "--component", component)


def python(prefix, *arguments):
    """This interpreter with the package in the folder, and none of tc's tools on PATH."""
    return call(sys.executable, *arguments, cwd=prefix, env={"PATH": prefix, "PYTHONPATH": prefix, "PYTHONDONTWRITEBYTECODE": "1"})


def check_runtime(prefix, build, artifact):
    packed = os.path.join(os.path.dirname(prefix), "packed.zip")
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder, _, files in os.walk(prefix):
            for path in (os.path.join(folder, file) for file in files):
                archive.write(path)
                with open(path, "rb") as file:
                    if build.encode() in file.read():
                        sys.exit(f"{path} names the build folder {build}")
    size = os.path.getsize(packed)
    if size > MOST_BYTES:
        sys.exit(f"the package without the tools takes {size} bytes, more than {MOST_BYTES}")
    if not any(name.startswith("libtcrt-ort.so.") for name in os.listdir(os.path.join(prefix, "tc_compiler"))):
        sys.exit("the package lacks libtcrt-ort, which artifacts of --backend-for need")
    python(prefix, os.path.join(ROOT, "test", "Python", "runtime_alone.py"), artifact, DIGITS)


def main(cmake, build, compiler):
    with tempfile.TemporaryDirectory(prefix="tc-package-") as work:
        whole, alone, own, artifact = (os.path.join(work, name) for name in ("whole", "alone", "own", "digits.bin"))
        install(cmake, build, whole, "python", "python_tools")
        python(whole, "-c", COMPILE, os.path.join(DIGITS, "model.onnx"), artifact)
        install(cmake, build, alone, "python")
        check_runtime(alone, build, artifact)
        built = os.path.join(work, "build")
        call(cmake, "-G", "Ninja", "-S", ROOT, "-B", built, "-DTC_RUNTIME_ONLY=ON", f"-DCMAKE_C_COMPILER={compiler}", f"-DPython3_EXECUTABLE={sys.executable}",
             "-DTC_BUILD_PYTHON=ON") # fmt: skip
        call(cmake, "--build", built)
        install(cmake, built, own, "python")
        check_runtime(own, built, artifact)


if __name__ == "__main__":
    main(*sys.argv[1:])
