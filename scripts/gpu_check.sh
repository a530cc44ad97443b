#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Checks tc on a machine with an NVIDIA GPU that has PyTorch, onnx and a CUDA toolkit, but need have no LLVM and no
# network: tools are built on another machine and travel in a folder of less than 64 MiB.
#
# usage: scripts/gpu_check.sh pack FOLDER               where tc was built: tools that need no LLVM, as FOLDER/tools.tar.xz
#        scripts/gpu_check.sh run FOLDER REPORT [step...]   in a checkout on the GPU's machine; what came out, in folder REPORT
#
# steps (default: all but the peers and python):
#   conformance   the ONNX backend test cases                             conformance.txt
#   random        random graphs (COUNT, 2000)                             random.json
#   suite         the GPU suite: exported, compiled, compared, timed      suite.json, compile.txt
#   peers         the same beside torch.compile in MODES (default,reduce-overhead,max-autotune-no-cudagraphs)
#   profile       time of each kernel of the suite                        profile.txt
#   python        the package's tests, torch.compile's backend on the GPU; needs cffi and PyTorch there  python.txt
#   lines         numbers of running sums and of positions of the largest  lines.txt
#   tuning        numbers of all schedules that max-autotune measures     tuning.txt
#   sort          sorts and top-k of all types, against NumPy             sort.txt
#   sanitizer     compute-sanitizer's memcheck and racecheck on the suite's small models  sanitizer.txt
# NAMES: models of the suite (all). FLAGS: more options of tc-compile for them; with --precision tf32 set TF32=1, too. JOBS: processes that
# compile (cores; 1 with FLAGS="--mode max-autotune", which measures on the GPU). GPUS: of conformance (1). BUILD_DIR: of pack (build).
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() { sed -n '/^# usage/,/^# NAMES/s/^# \{0,1\}//p' "$root/scripts/gpu_check.sh" >&2; exit 1; }

pack() {
  build_dir=$(realpath "${BUILD_DIR:-build}")
  work=$(mktemp -d)
  was=$(sed -n 's/^TC_STATIC_LLVM:BOOL=//p' "$build_dir/CMakeCache.txt")
  trap 'rm -rf "$work"; cmake -DTC_STATIC_LLVM="${was:-OFF}" "$build_dir" >/dev/null' EXIT
  mkdir -p "$1" "$work/tc/bin"
  # Which links them once more, and compiles nothing.
  cmake -DTC_STATIC_LLVM=ON "$build_dir" >/dev/null
  cmake --build "$build_dir" --parallel "${JOBS:-2}" --target tc-compile tc-run
  cp "$build_dir/bin/tc-compile" "$build_dir/bin/tc-run" "$work/tc/bin/"
  if [ -e "$build_dir/python/tc_compiler/_tcrt.abi3.so" ]; then
    cmake --build "$build_dir" --parallel "${JOBS:-2}" --target tc_python
    cp -rL "$build_dir/python" "$work/tc/python" && rm -rf "$work"/tc/python/{CMakeFiles,cmake_install.cmake,_tcrt.c}
    mkdir "$work/tc/lib" && cp "$build_dir/lib/libtcrt.so.0" "$work/tc/lib/"
  fi
  tar -C "$work/tc" -cf - . | xz -2 --block-size=16MiB -T 0 >"$1/tools.tar.xz"
  say "packed: $(du -h "$1/tools.tar.xz" | cut -f 1) in $1"
}

unpack() {
  [ -f "$1/tools.tar.xz" ] || die "there is no $1/tools.tar.xz; make it by scripts/gpu_check.sh pack"
  mkdir -p "$work/tc"
  tar -C "$work/tc" -xJf "$1/tools.tar.xz"
  bin=$work/tc/bin
  "$bin/tc-compile" --version >/dev/null || die "the tools of $1 do not run here"
}

# A line for each model: seconds to compile, bytes of the artifact and of its weights.
compile_one() {
  local began ended
  began=$(date +%s.%N)
  if ! "$bin/tc-compile" "$work/zoo/$1/model.pt2" -o "$work/art/$1.bin" --target cuda --jobs 2 ${FLAGS:-} >"$work/art/$1.log" 2>&1; then
    echo "$1 failed: $(grep -m 1 error: "$work/art/$1.log")"
    return
  fi
  ended=$(date +%s.%N)
  echo "$1 $(python3 -c "print(f'{$ended - $began:.1f} s')") $(stat -c %s "$work/art/$1.bin") bytes$(sed -n "s/^[^:]*: \(.*; tuning took.*\)/; \1/p" "$work/art/$1.log")"
}

suite() {
  local names
  names=${NAMES:-$(cd test/zoo && python3 -c 'import gpu_zoo; print(*gpu_zoo.SUITE)')}
  mkdir -p "$work/zoo" "$work/art"
  if [ ! -f "$work/art/done" ]; then
    say "exporting and compiling $(wc -w <<<"$names") models"
    # shellcheck disable=SC2086
    printf '%s\n' $names | FORMATS=pt2 OMP_NUM_THREADS=4 xargs -P 8 -I{} python3 test/zoo/gpu_zoo.py "$work/zoo" {} >"$report/export.log" 2>&1 || true
    export -f compile_one
    export bin work FLAGS
    # shellcheck disable=SC2086
    printf '%s\n' $names | xargs -P "$(((jobs + 1) / 2))" -I{} bash -c 'compile_one {}' | sort | tee "$report/compile.txt"
    touch "$work/art/done"
  fi
  say "comparing and timing"
  # shellcheck disable=SC2086
  TC=$bin python3 benchmarks/compare_gpu.py "$work/art" "$report/$1.json" "$2" $names 2>&1 | tee "$report/$1.txt"
}

profile() {
  local artifact
  for artifact in "$work"/art/*.bin; do
    echo "== $(basename "$artifact" .bin)"
    "$bin/tc-run" "$artifact" --device cuda --random-inputs --profile 2>&1
  done >"$report/profile.txt"
}

# With the package, processes keep their contexts of the GPU.
conformance() {
  local how=()
  local -x PYTHONPATH=${PYTHONPATH:-} LD_LIBRARY_PATH="$work/tc/lib:${LD_LIBRARY_PATH:-}"
  if [ -d "$work/tc/python" ] && PYTHONPATH="$work/tc/python:$PYTHONPATH" python3 -c 'import tc_compiler' 2>/dev/null; then
    PYTHONPATH="$work/tc/python:$PYTHONPATH" how=(--in-process)
  fi
  python3 test/Conformance/run.py "$bin" --target cuda "${how[@]}" --jobs "$jobs" --gpus "${GPUS:-1}" --work "$work/conformance" --way static 2>&1 |
    tee "$report/conformance.txt"
}

package() {
  [ -d "$work/tc/python" ] || die "the tools were packed without the Python package: scripts/setup.sh and scripts/build.sh make it"
  python3 -c 'import cffi, pytest, torch' || die "the package's tests need cffi, pytest and torch"
  local status=0
  local -x TC_BIN=$bin PYTHONPATH="$work/tc/python:${PYTHONPATH:-}" LD_LIBRARY_PATH="$work/tc/lib:${LD_LIBRARY_PATH:-}"
  TC_TEST_DEVICE=cuda python3 -m pytest -q -p no:cacheprovider test/Python/test_dynamo.py 2>&1 | tee "$report/python.txt" || status=1
  python3 -m pytest -q -p no:cacheprovider test/Python/test_cuda.py 2>&1 | tee -a "$report/python.txt" || status=1
  return "$status"
}

sanitizer() {
  local artifact tool
  for tool in memcheck racecheck; do
    for artifact in "$work"/art/*.bin; do
      [ "$(stat -c %s "$artifact")" -lt 4000000 ] || continue
      timeout 120 compute-sanitizer --tool "$tool" --error-exitcode 9 "$bin/tc-run" "$artifact" --device cuda --random-inputs >"$work/log" 2>&1 &&
        echo "$tool $(basename "$artifact"): clean" || echo "$tool $(basename "$artifact"): exit $? $(grep -m 1 '=========.*\(ERROR\|Invalid\|hazard\)' "$work/log")"
    done
  done | tee "$report/sanitizer.txt"
}

run() {
  local folder=$1
  report=$(realpath -m "$2")
  shift 2
  [ $# -gt 0 ] || set -- conformance random suite sanitizer
  jobs=${JOBS:-$(nproc)}
  mkdir -p "$report"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  unpack "$(realpath "$folder")"
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | tee "$report/gpu.txt"
  local step failed=0
  for step in "$@"; do
    case $step in
    conformance) conformance || failed=1 ;;
    random) python3 test/Fuzz/fuzz.py "$bin" --target cuda --count "${COUNT:-2000}" --seed "${SEED:-0}" --jobs "$jobs" --keep "$work/fuzz" --report "$report/random.json" 2>&1 |
      tee "$report/random.txt" || failed=1 ;;
    suite) suite suite eager || failed=1 ;;
    peers) suite peers "${MODES:-default,reduce-overhead,max-autotune-no-cudagraphs}" || failed=1 ;;
    profile) profile || failed=1 ;;
    python) package || failed=1 ;;
    lines) python3 test/Integration/lines_cuda.py "$bin" 2>&1 | tee "$report/lines.txt" || failed=1 ;;
    tuning) python3 test/Integration/tuning_cuda.py "$bin" 2>&1 | tee "$report/tuning.txt" || failed=1 ;;
    sort) python3 test/Integration/sort_cuda.py "$bin" 2>&1 | tee "$report/sort.txt" || failed=1 ;;
    sanitizer) sanitizer || failed=1 ;;
    *) usage ;;
    esac
  done
  return "$failed"
}

case "${1:-} $#" in
"pack 2") pack "$(realpath -m "$2")" ;;
run\ [0-9]*) [ $# -ge 3 ] || usage; shift; run "$@" ;;
*) usage ;;
esac
