#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Tests what needs PyTorch: the backend of torch.compile, training artifacts, modules, the notebook, from build/, which scripts/build.sh made. PyTorch and what belongs to it
# (3 GB) goes into .venv-torch, pinned by requirements-bench.txt. scripts/test.sh runs without, .ci/run has both.
#
# usage: scripts/test_torch.sh [--install | --operators | --inductor FILE] [pytest argument]...
#
#   --install         PyTorch alone, no tests
#   --operators       PyTorch's op_db through the backend, too (half an hour more)
#   --inductor FILE   instead, PyTorch's cases of Inductor through the backend: FILE is test_torchinductor.py of its sources, see test/Torch/README.md
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build_dir=$(realpath -m "${BUILD_DIR:-build}")
[ -e "$build_dir/python/tc_compiler/_tcrt.abi3.so" ] || die "$build_dir has no Python package; run scripts/setup.sh and scripts/build.sh first"
python=.venv-torch/bin/python
packages=$({ grep -E '^(numpy|torch|safetensors|expecttest)==' requirements-bench.txt; grep -oE '^(cffi|pytest|ml_dtypes)==[0-9.]+' requirements.txt; })
if [ "$(cat .venv-torch/packages 2>/dev/null)" != "$packages" ]; then
  say "installing PyTorch into .venv-torch"
  [ -x "$python" ] || python3 -m venv .venv-torch
  # shellcheck disable=SC2086
  "$python" -m pip install --quiet --disable-pip-version-check $packages
  echo "$packages" >.venv-torch/packages
fi
[ "${1:-}" != --install ] || exit 0
export PYTHONPATH=$build_dir/python TC_BIN=$build_dir/bin
if [ "${1:-}" = --inductor ]; then
  [ -f "${2:-}" ] || die "--inductor asks for test_torchinductor.py of PyTorch's sources; test/Torch/README.md says where they are"
  "$python" test/Torch/inductor_suite.py "$2"
  "$python" test/Torch/inductor_suite.py "$2" --dynamic
  exit
fi
operators=
if [ "${1:-}" = --operators ]; then
  operators=1
  shift
fi
"$python" -m pytest -q --show-capture=no test/Python/test_dynamo.py test/Python/test_dynamo_cases.py test/Python/test_training.py test/Python/test_modules.py test/Python/test_benchmarks.py "$@"
"$python" scripts/notebook.py docs/python-tour.ipynb >/dev/null
if [ -n "$operators" ]; then
  "$python" test/Torch/backend.py --samples 1
fi
