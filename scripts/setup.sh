#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs what building and testing tc needs on Debian 12: Debian packages, a Python environment in .venv (pinned by
# requirements.txt), ptxas where there is no CUDA toolkit (requirements-cuda.txt), and the ONNX source in third_party/.
# Safe to repeat; takes a second where all is there.
#
# usage: scripts/setup.sh      as root, or as a user who may call sudo
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

onnx_version=1.23.2
onnx_sha256=008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8

packages=(
  clang-22 lld-22 clang-format-22            # compiler, linker, formatter
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools liblld-22-dev
  libprotobuf-dev protobuf-compiler          # the ONNX library
  libcli11-dev nlohmann-json3-dev catch2     # command lines, JSON, unit tests
  zlib1g-dev libzstd-dev                     # what LLVM's CMake package asks for
  libre2-dev libjpeg62-turbo-dev libpng-dev libwebp-dev libtiff-dev libopenjp2-7-dev libssl-dev   # libtcrt-host; libssl-dev: tc-sign, too
  ninja-build git ca-certificates python3 python3-venv python3-dev   # python3-dev: the Python package
)

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null || die "apt-get is not here and these packages are missing: ${missing[*]}; install them by hand"
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "installing ${missing[*]} needs root; run this as root or install sudo"
    as_root=(sudo)
  fi
  say "installing Debian packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  for package in "${missing[@]}"; do
    apt-cache show "$package" >/dev/null 2>&1 ||
      die "apt offers no package $package; LLVM 22 comes with Debian 12's security updates, add bookworm-security to apt's sources"
  done
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

# Debian's own Python, which python3-venv belongs to; another one may stand first on PATH.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
wanted=$(sha256sum requirements.txt | cut -d ' ' -f 1)
if [ "$(cat .venv/requirements.sha256 2>/dev/null)" != "$wanted" ]; then
  say "installing Python packages into .venv"
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.txt
  echo "$wanted" >.venv/requirements.sha256
fi

# A toolkit at hand is taken first (lib/Target/README.md).
if [ ! -e .venv/bin/ptxas ] && [ ! -x /usr/local/cuda/bin/ptxas ] && ! command -v ptxas >/dev/null; then
  say "installing ptxas into .venv"
  if .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --no-deps -r requirements-cuda.txt; then
    ptxas=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/cu13/bin/ptxas
    chmod +x "$ptxas"
    ln -s "$(realpath --relative-to=.venv/bin "$ptxas")" .venv/bin/ptxas
  else
    say "ptxas is not installed: compiling for --target cuda will need a CUDA toolkit; all else works"
  fi
fi

.venv/bin/python scripts/fetch_sdist.py onnx "$onnx_version" "$onnx_sha256" third_party
say "setup is complete"
