#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Checks that clang-format would change nothing (.clang-format: LLVM style, 120 columns). The ctest entry "format" runs it.
#
# usage: scripts/check_format.sh [--fix] [file]...      --fix: change the files; default: all tracked sources
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

fix=no
if [ "${1:-}" = --fix ]; then
  fix=yes
  shift
fi
tool=${CLANG_FORMAT:-clang-format-22}
command -v "$tool" >/dev/null || die "$tool is not here; run scripts/setup.sh"
files=("$@")
if [ $# -eq 0 ]; then
  mapfile -t files < <(git -c safe.directory='*' ls-files '*.h' '*.c' '*.cpp')
  if [ ${#files[@]} -eq 0 ]; then
    echo "check_format.sh: error: git lists no sources here; run it in a checkout" >&2
    exit 1
  fi
fi
for file in "${files[@]}"; do
  [[ $file == *.@(h|c|cpp) ]] || die "$file is not C or C++"
done
if [ $fix = yes ]; then
  exec "$tool" -i "${files[@]}"
fi
status=0
for file in "${files[@]}"; do
  if ! "$tool" --dry-run -Werror "$file" >/dev/null 2>&1; then
    echo "$file: error: not formatted; scripts/check_format.sh --fix $file mends it" >&2
    status=1
  fi
done
exit $status
