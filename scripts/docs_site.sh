#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Builds the documentation as a site: every page of the repository, the notebook as it runs, and the Python package's reference. Needs build/,
# which scripts/build.sh made. A warning of Sphinx, such as a link that leads nowhere, is an error. Sphinx (0.3 GB) goes into .venv-docs, pinned by
# requirements-docs.txt; pages outside of the repository are not asked for.
#
# usage: scripts/docs_site.sh [--install | OUT]      --install: Sphinx alone, no site; OUT: a folder (build/docs-site/html)
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build_dir=$(realpath -m "${BUILD_DIR:-build}")
[ -e "$build_dir/python/tc_compiler/_tcrt.abi3.so" ] || die "$build_dir has no Python package; run scripts/setup.sh and scripts/build.sh first"
python=.venv-docs/bin/python
wanted=$(sha256sum requirements-docs.txt | cut -d ' ' -f 1)
if [ "$(cat .venv-docs/requirements.sha256 2>/dev/null)" != "$wanted" ]; then
  say "installing Sphinx into .venv-docs"
  # Debian's own Python, as in scripts/setup.sh.
  base=/usr/bin/python3
  [ -x "$base" ] || base=python3
  [ -x "$python" ] || "$base" -m venv .venv-docs
  "$python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-docs.txt
  echo "$wanted" >.venv-docs/requirements.sha256
fi
[ "${1:-}" != --install ] || exit 0
work=$build_dir/docs-site # what a run of the notebook writes is put beside the site
rm -rf "$work"
mkdir -p "$work"
PYTHONPATH=$build_dir/python TC_BIN=$build_dir/bin PYTHONDONTWRITEBYTECODE=1 \
  "$python" -m sphinx -q -W --keep-going -c docs/site -b html -d "$work/doctrees" . "$work/html"
if [ -n "${1:-}" ]; then
  mkdir -p "$1"
  cp -r "$work/html/." "$1"
fi
say "the site is ${1:-$work/html}/index.html"
