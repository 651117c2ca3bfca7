#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs the Debian packages that vapro needs, where they are missing. Only this file has their
# names. deps.sh [missing] build | test | bench | tidy | package | strangers | cross | vm; quiet and without the network where nothing is missing.
# With `missing` it installs nothing: it names what is missing and fails.
# deps.sh names sysroot ARCH | guest ARCH | kernel ARCH | headers RELEASE prints what tools/vm/fetch.sh unpacks for another
# machine, without installing it here.
set -eu

# the decoder of a CPU's instructions: on x86-64 Zydis, since capstone 4 knows no EVEX instruction
decoder() { # ARCH
	case "$1" in
	amd64 | x86_64) echo libzydis-dev ;;
	*) echo libcapstone-dev ;;
	esac
}

build='gcc g++ clang llvm make pkg-config libbpf-dev libelf-dev libdw-dev libiberty-dev libcjson-dev
zlib1g-dev libzstd-dev libnats-dev libgsl-dev libncurses-dev libcmocka-dev bpftool clang-format python3'
build="$build $(decoder "$(uname -m)")"
run='perl gfortran openmpi-bin libopenmpi-dev mpich libmpich-dev libucx-dev libhwloc-dev libomp-dev hpcc lammps scalapack-mpi-test netpipe-openmpi examl
prometheus jq logrotate zstd python3-mpi4py iproute2 nats-server stress-ng python3-jsonschema binutils pmccabe mandoc gdb e2fsprogs valgrind qemu-user zsh fish chromium'
bench='bpftrace linux-perf prometheus-alertmanager prometheus-node-exporter'
tidy='clang-tidy'
# programs of others, which make accept WHAT=strangers watches
strangers='gromacs quantum-espresso quantum-espresso-data nwchem openfoam python3-mpi4py python3-numpy python3-torch'
package='debhelper lintian rpm rpmlint'
cross='clang llvm lld make bpftool'
vm='qemu-system-x86 qemu-system-arm debian-archive-keyring gcc-aarch64-linux-gnu gfortran-aarch64-linux-gnu'

# for another CPU: what vapro and the test programs are built with and run on there
sysroot='libc6-dev libgcc-12-dev libstdc++-12-dev libbpf-dev libelf-dev libdw-dev libiberty-dev DECODER libcjson-dev libgsl-dev
zlib1g-dev libzstd-dev libnats-dev libncurses-dev libopenmpi-dev openmpi-bin libmpich-dev mpich libucx-dev libhwloc-dev gfortran'

install=yes
if [ "${1-}" = missing ]; then
	install=
	shift
fi

case "${1-}" in
build) wanted=$build ;;
test) wanted="$build $run" ;;
bench) wanted="$build $run $bench" ;;
tidy) wanted="$build $tidy" ;;
strangers) wanted=$strangers ;;
package) wanted="$build $package" ;;
cross) wanted=$cross ;;
vm) wanted="$build $run $cross $vm" ;;
names)
	case "${2-}" in
	sysroot) echo $sysroot | sed "s/DECODER/$(decoder "${3:?}")/" ;; # in one line
	guest) echo busybox-static ;;
	kernel) echo "linux-image-cloud-${3:?}" ;;
	headers) # of a kernel's release, such as 6.1.0-50-cloud-arm64
		release=${3:?}
		echo "linux-headers-$release linux-headers-${release%-cloud-*}-common"
		;;
	*) exit 2 ;;
	esac
	exit 0
	;;
*)
	echo "usage: deps.sh [missing] build|test|bench|tidy|package|strangers|cross|vm" >&2
	exit 2
	;;
esac

# pkg-config is a virtual package of pkgconf from Debian 12 on
present() {
	dpkg-query -W -f '${db:Status-Status} ${Package} ${Provides}\n' 2>/dev/null |
		awk '$1 == "installed" { for (i = 2; i <= NF; i++) { sub(/[,:].*/, "", $i); print $i } }'
}

have=$(present)
missing=
for package in $wanted; do
	if ! printf '%s\n' "$have" | grep -qxF "$package"; then
		missing="$missing $package"
	fi
done
[ -n "$missing" ] || exit 0
if [ -z "$install" ]; then
	echo "these packages (Debian's names) are missing:$missing" >&2
	echo "\`make deps\` installs them, as root." >&2
	exit 1
fi

if ! command -v apt-get >/dev/null; then
	echo "deps.sh: no apt-get here; these packages (Debian's names) are missing:$missing" >&2
	exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
	echo "deps.sh: not root; please install:$missing" >&2
	exit 1
fi
echo "deps.sh: installing$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Another apt may be running, as after a boot: this one waits for its lock.
wait_for_lock="-o DPkg::Lock::Timeout=600"
# shellcheck disable=SC2086 # lists of words
if ! { apt-get -q update && apt-get -qy $wait_for_lock install --no-install-recommends $missing; } >"$log" 2>&1 </dev/null; then
	cat "$log" >&2
	echo "deps.sh: could not install:$missing" >&2
	exit 1
fi
