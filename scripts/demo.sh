#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs what is needed, builds tc, compiles the trained digit classifier in models/digits to native code, runs it on
# images that training never saw, and shows predictions, accuracy, time and the check against the reference. What the
# installation and the build say goes into a file.
#
# usage: scripts/demo.sh            the demo
#        scripts/demo.sh --tour     through the phases of the compiler, on the same model
case "${1-}" in
"" | --tour) ;;
-h | --help)
  sed -n '4,9s/^# \{0,1\}//p' "$0"
  exit 0
  ;;
*)
  printf 'demo.sh: error: "%s" is no option; --tour is, and none at all\n' "$1" >&2
  exit 1
  ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build_dir=$(realpath -m "${BUILD_DIR:-build}")
mkdir -p "$build_dir"
log=$build_dir/demo.log
: >"$log"

# Runs a command with its output in the log. On a terminal one line shows what it does, elsewhere one that it began.
quietly() {
  local what=$1 started=$SECONDS
  shift
  local hint=
  [ "$what" != "building tc" ] || [ -f "$build_dir/build.ninja" ] || hint=", a quarter of an hour on two cores the first time"
  [ -t 1 ] || say "$what$hint (log: $log)"
  "$@" >>"$log" 2>&1 &
  local job=$!
  trap 'kill $job 2>/dev/null; exit 130' INT TERM
  while [ -t 1 ] && kill -0 $job 2>/dev/null; do
    # Ninja's count, or what is being installed.
    local line
    line=$(tail -n 1 "$log" | tr '\r' '\n' | tail -n 1 | cut -c1-60)
    printf '\r\033[K== %s%s, %d s: %s' "$what" "$hint" $((SECONDS - started)) "$line"
    sleep 0.5
  done
  local status=0
  wait $job || status=$?
  trap - INT TERM
  [ -t 1 ] && printf '\r\033[K'
  if [ $status -ne 0 ]; then
    tail -n 15 "$log" >&2
    die "$what failed with status $status; all of what it said is in $log"
  fi
  [ $((SECONDS - started)) -lt 2 ] || say "$what took $((SECONDS - started)) s"
}

quietly "installing what is needed" scripts/setup.sh
PATH="$root/.venv/bin:$PATH"
quietly "building tc" scripts/build.sh
if [ "${1-}" = --tour ]; then
  exec python scripts/tour.py "$build_dir/bin"
fi
exec python scripts/demo.py "$build_dir/bin"
