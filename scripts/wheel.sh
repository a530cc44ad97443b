#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Makes the wheels of the Python package, tc_compiler and tc_compiler_runtime, with auditwheel's tag of the oldest glibc that
# they run with; then installs each into a fresh environment and tries it there, LLVM's libraries being hidden (as root).
# A first build in build/wheel takes about half an hour on two cores.
#
# usage: scripts/wheel.sh [FOLDER]      FOLDER: for the wheels, default build/dist
# PYTHONS: the interpreters that try them, default that of .venv. JOBS: as of scripts/build.sh.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

dist=$(realpath -m "${1:-build/dist}")
tools=build/wheel-tools
[ -x .venv/bin/python ] || die "there is no .venv; run scripts/setup.sh first"
export PIP_DISABLE_PIP_VERSION_CHECK=1 CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)}
work=$(mktemp -d "${TMPDIR:-/tmp}/tc-wheel-XXXXXX")
trap 'rm -rf "$work"' EXIT

[ -x $tools/bin/python ] || .venv/bin/python -m venv $tools
$tools/bin/python -m pip install --quiet --require-hashes --only-binary :all: -r requirements-wheel.txt

# make FOLDER MEGABYTES: the wheel of FOLDER's pyproject.toml, which may have so many.
make() {
  say "making the wheel of $1"
  rm -rf "$work/raw"
  .venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir "$work/raw" "$1"
  PATH="$root/$tools/bin:$PATH" $tools/bin/python -m auditwheel -v repair --wheel-dir "$dist" "$work"/raw/*.whl >"$work/auditwheel.log" 2>&1 || {
    tail -n 5 "$work/auditwheel.log" >&2
    die "auditwheel refuses the wheel of $1"
  }
  wheel=$(sed -n 's/.*Fixed-up wheel written to //p' "$work/auditwheel.log")
  ls -sh "$wheel"
  rm -rf "$work/unpacked"
  .venv/bin/python -m zipfile -e "$wheel" "$work/unpacked"
  if grep -rlF "$root/" "$work/unpacked"; then die "files of $wheel name the folder that they were built in"; fi
  [ "$(stat -c %s "$wheel")" -le $(($2 * 1000 * 1000)) ] || die "$wheel has more than $2 MB"
}

# hidden COMMAND...: with nothing of this environment, and without LLVM's libraries and Protocol Buffers'.
hidden() {
  local clean=(env -i PATH=/usr/bin:/bin HOME="$work" LC_ALL=C.UTF-8 "$@")
  if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
    say "LLVM's libraries stay visible: hiding them needs root"
    "${clean[@]}"
    return
  fi
  unshare -m bash -euc 'mkdir -p "$0/empty" && touch "$0/empty/none"
    for folder in /usr/lib/llvm-*; do mount --bind "$0/empty" "$folder"; done
    for file in /usr/lib/x86_64-linux-gnu/lib{LLVM,MLIR,lld,protobuf}*.so*; do [ ! -e "$file" ] || mount --bind "$0/empty/none" "$file"; done
    exec "$@"' "$work" "${clean[@]}"
}

# environment PYTHON WHEEL: a fresh one, in $work/venv.
environment() {
  rm -rf "$work/venv"
  "$1" -m venv "$work/venv"
  "$work/venv/bin/python" -m pip install --quiet "$2"
}

make . 120
compiler=$wheel
make python/runtime 1
runtime=$wheel
IFS=' ' read -r -a pythons <<<"${PYTHONS:-.venv/bin/python}"
for python in "${pythons[@]}"; do
  say "trying them with $("$python" --version)"
  environment "$python" "$compiler"
  hidden "$work/venv/bin/python" test/Integration/readme.py "$work/venv/bin" docs/python.md
  hidden "$work/venv/bin/python" -c 'import sys, tc_compiler as tc; tc.compile("models/digits/model.onnx", output=sys.argv[1])' "$work/digits.bin"
  environment "$python" "$runtime"
  hidden "$work/venv/bin/python" test/Python/runtime_alone.py "$work/digits.bin" models/digits
done
say "the wheels are in $dist"
