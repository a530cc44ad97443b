#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Configures and builds tc with clang-22 and Ninja into build/, or into BUILD_DIR.
#
# usage: scripts/build.sh [cmake argument]...      JOBS=n: parallel jobs (default: cores, one job per 2 GiB of memory at most)
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build_dir=$(realpath -m "${BUILD_DIR:-build}")
memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
cores=$(nproc)
by_memory=$((memory_kib / (2 * 1024 * 1024)))
jobs=${JOBS:-$((by_memory < 1 ? 1 : by_memory < cores ? by_memory : cores))}

if [ ! -f "$build_dir/build.ninja" ] || [ $# -gt 0 ]; then
  cmake -G Ninja -S . -B "$build_dir" -DCMAKE_C_COMPILER="${CC:-clang-22}" -DCMAKE_CXX_COMPILER="${CXX:-clang++-22}" "$@"
fi
say "building with $jobs jobs"
cmake --build "$build_dir" --parallel "$jobs"
