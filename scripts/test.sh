#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs, builds and runs all tests. The last line counts them: "N passed, N failed". Exit status 0 only where all pass.
#
# usage: scripts/test.sh [ctest argument]...      for instance -R lit
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build_dir=$(realpath -m "${BUILD_DIR:-build}")
scripts/setup.sh
PATH="$root/.venv/bin:$PATH"
started=$SECONDS
scripts/build.sh
say "built in $((SECONDS - started)) s"
report=$build_dir/test-report.xml
rm -f "$report"
status=0
ctest --test-dir "$build_dir" --parallel "$(nproc)" --output-on-failure --no-tests=error --output-junit "$report" "$@" || status=$?
say "everything took $SECONDS s"
python scripts/count_tests.py "$report" || status=1
exit "$status"
