#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Makes the packages of a build, installs each on a bare Debian 12 root, and compiles, runs and measures a model there.
# The roots are made with debootstrap, in a temporary folder. Needs root, debootstrap and a Debian mirror.
#
# usage: scripts/test_packages.sh [FOLDER]      FOLDER: with packages that are there already
# BUILD_DIR: the build, default build. Where it cannot be done it says why, and ends with status 0.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

skip() { printf 'test_packages.sh: skipped: %s\n' "$*"; exit 0; }
build_dir=$(realpath -m "${BUILD_DIR:-build}")
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
security=${DEBIAN_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
[ "$(id -u)" -eq 0 ] || skip "making a Debian root needs root"
for program in debootstrap dpkg-shlibdeps file; do
  command -v $program >/dev/null || skip "$program is not here; apt-get install debootstrap dpkg-dev file"
done
[ -f "$build_dir/CPackConfig.cmake" ] || die "$build_dir is no configured build; run scripts/build.sh first"

work=$(mktemp -d "${TMPDIR:-/tmp}/tc-packages-XXXXXX")
mounted=()
cleanup() {
  for folder in "${mounted[@]}"; do umount "$folder" 2>/dev/null || umount -l "$folder"; done
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT

packages=${1:-$work/packages}
[ $# -gt 0 ] || say "making the packages"
[ $# -gt 0 ] || cpack --config "$build_dir/CPackConfig.cmake" -B "$work/packages" >"$work/cpack.log" 2>&1 || {
  tail -n 20 "$work/cpack.log" >&2
  die "cpack failed"
}
archive=$(echo "$packages"/tc-*.tar.xz)
package=$(echo "$packages"/tc_*.deb)
ls -sh "$archive" "$package"

say "making a bare Debian 12"
debootstrap --variant=minbase bookworm "$work/first" "$mirror" >"$work/debootstrap.log" 2>&1 || {
  tail -n 3 "$work/debootstrap.log"
  skip "debootstrap could not make a root from $mirror"
}
cp -a "$work/first" "$work/second"
for root in first second; do
  mount -t proc proc "$work/$root/proc" || skip "/proc cannot be mounted in a new root"
  mounted+=("$work/$root/proc")
done

# check ROOT PREFIX: with the package's own copy of the model.
check() {
  local model=$2/share/doc/tc/models/digits
  chroot "$1" env -i PATH="$2/bin:/usr/bin:/bin" HOME=/root LC_ALL=C bash -euc "
    cd /tmp
    tc-compile --version
    tc-compile $model/model.onnx -o digits.bin --verify
    tc-run digits.bin --inputs $model/inputs.npz --expect $model/outputs.npz --max-rel 2e-5
    tc-inspect digits.bin > /dev/null
    tc-compile $model/model.onnx -o fused.mlir --compile-to=fuse -q && tc-opt fused.mlir > /dev/null
    tc-bench digits.bin --seconds 0 --peers none --html page.html > /dev/null && test -s page.html
    for tool in tc-compile tc-run tc-inspect tc-bench tc-cache tc-refit tc-sign tc-reduce tc-compare tc-opt; do
      test -s $2/share/man/man1/\$tool.1 -o -s $2/share/man/man1/\$tool.1.gz
      source $2/share/bash-completion/completions/\$tool
      complete -p \$tool > /dev/null
    done
    if ldd $2/bin/tc-* $2/lib/libtcrt-host.so | grep 'not found'; then exit 1; fi
    test -s $2/include/tcrt/tcrt.h
    ls $2/lib/libtcrt.so* $2/lib/libtcrt.a > /dev/null"
}

say "the archive, unpacked in /srv"
tar -xf "$archive" -C "$work/first/srv"
# Anywhere: it is moved, too.
mv "$work"/first/srv/tc-* "$work/first/srv/tc"
check "$work/first" /srv/tc

say "the Debian package"
echo "deb $security bookworm-security main" >"$work/second/etc/apt/sources.list.d/security.list"
cp /etc/resolv.conf "$work/second/etc/resolv.conf"
cp "$package" "$work/second/tmp/"
in_second() { chroot "$work/second" env DEBIAN_FRONTEND=noninteractive "$@" >>"$work/apt.log" 2>&1; }
in_second apt-get update || { tail -n 3 "$work/apt.log"; skip "apt-get update does not reach $mirror from the new root"; }
in_second apt-get install -y --no-install-recommends "/tmp/$(basename "$package")" || {
  tail -n 20 "$work/apt.log" >&2
  die "the package cannot be installed"
}
check "$work/second" /usr
in_second apt-get remove -y tc
[ ! -e "$work/second/usr/bin/tc-compile" ] || die "the package leaves files behind"
say "both packages work on a bare Debian 12"
