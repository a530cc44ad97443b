#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs what is needed, builds tc, compiles the trained digit classifier in models/digits to native code, runs it on
# images that training never saw, and shows predictions, accuracy, time and the check against the reference.
#
# usage: scripts/demo.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/setup.sh
PATH="$root/.venv/bin:$PATH"
scripts/build.sh
exec python scripts/demo.py "${BUILD_DIR:-build}/bin"
