#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Downloads what another machine is made of, from the mirror that apt of this one uses, and unpacks it
# under build/vm. A private apt state is used: nothing is installed here, and no root is needed.
#
#   fetch.sh kernel ARCH SUITE   kernel-ARCH-SUITE: the newest cloud kernel of a Debian suite
#   fetch.sh sysroot ARCH        sysroot-ARCH: headers, libraries and MPI to build for ARCH and to run there
#   fetch.sh guest ARCH          guest-ARCH: the shell of the guests
#   fetch.sh headers ARCH SUITE  headers-RELEASE: to build modules here for that kernel
#
# ARCH is Debian's name (amd64, arm64). Prints the directory. VAPRO_MIRROR overrides the mirror.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/../.." && pwd)/build/vm
user_space=bookworm # of the guests; only kernels differ

# The address goes to a file under build/ only: it belongs to the machine.
mirror() {
	if [ -n "${VAPRO_MIRROR-}" ]; then
		echo "$VAPRO_MIRROR"
		return
	fi
	# shellcheck disable=SC2016 # apt expands these
	(unset APT_CONFIG && apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages') |
		awk '$2 !~ /security/ && !seen { print $1; seen = 1 }'
}

# A private apt state of one suite and CPU.
apt_state() { # ARCH SUITE
	state=$cache/apt-$1-$2
	uri=$(mirror)
	[ -n "$uri" ] || {
		echo "fetch.sh: apt has no mirror here; set VAPRO_MIRROR" >&2
		exit 1
	}
	mkdir -p "$state/parts" "$state/lists/partial" "$state/archives/partial" "$state/empty/partial"
	: >"$state/status"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $2 main" >"$state/sources.list"
	cat >"$state/apt.conf" <<-END
		APT::Architecture "$1";
		APT::Architectures { "$1"; };
		APT::Install-Recommends "false";
		APT::Sandbox::User "";
		Dir::Etc::sourcelist "$state/sources.list";
		Dir::Etc::sourceparts "$state/parts";
		Dir::Etc::preferencesparts "$state/parts";
		Dir::State::lists "$state/lists";
		Dir::State::status "$state/status";
		Dir::Cache "$state";
		Dir::Cache::archives "$state/archives";
		Acquire::Languages "none";
		Acquire::Retries "3";
		Debug::NoLocking "true";
	END
	export APT_CONFIG="$state/apt.conf"
	apt-get -qq update
}

unpack() { # DEB DIRECTORY TAR-OPTIONS
	deb=$1 into=$2
	shift 2
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$into" --no-same-owner "$@"
}

# A directory is made under another name and renamed when complete, so that an interrupted download leaves none.
begin() { # DIRECTORY
	final=$cache/$1
	[ -d "$final" ] && return 1
	rm -rf "$final.new"
	mkdir -p "$final.new"
}

finish() {
	rm -rf "$state/archives"
	mv "$final.new" "$final"
}

kernel() { # ARCH SUITE
	begin "kernel-$1-$2" || return 0
	apt_state "$1" "$2"
	meta=$("$here/../deps.sh" names kernel "$1")
	image=$(apt-cache depends "$meta" | awk '/Depends: linux-image/ && !seen { print $2; seen = 1 }')
	# newer kernels keep the image apart from the package of that name
	binary=$(apt-cache depends "$image" | awk '/Depends: linux-binary/ && !seen { print $2; seen = 1 }')
	image=${binary:-$image}
	(cd "$state/archives" && apt-get -qq download "$image")
	for deb in "$state/archives/$image"_*.deb; do
		unpack "$deb" "$final.new" --wildcards '*/vmlinuz*'
	done
	find "$final.new" -type f -name 'vmlinuz*' -exec mv {} "$final.new/vmlinuz" ';' -quit
	finish
}

sysroot() { # ARCH
	packages=$("$here/../deps.sh" names sysroot "$1")
	echo "$packages" | cmp -s - "$cache/sysroot-$1/packages" || rm -rf "$cache/sysroot-$1"
	begin "sysroot-$1" || return 0
	apt_state "$1" $user_space
	# --print-uris leaves out what is in the archive directory already: it is shown an empty one
	# shellcheck disable=SC2086 # a list of words
	files=$(apt-get -qq -y -o Dir::Cache::archives="$state/empty" install --print-uris $packages | awk '{ print $2 }')
	# shellcheck disable=SC2086
	apt-get -qq -y install --download-only $packages >/dev/null
	mkdir -p "$final.new/usr/bin" "$final.new/usr/sbin" "$final.new/usr/lib"
	for directory in bin sbin lib; do
		ln -s "usr/$directory" "$final.new/$directory"
	done
	for file in $files; do
		unpack "$state/archives/$file" "$final.new" --keep-directory-symlink --exclude './usr/share/doc/*' \
			--exclude './usr/share/man/*' --exclude './usr/share/locale/*'
	done
	echo "$packages" >"$final.new/packages"
	finish
}

guest() { # ARCH
	begin "guest-$1" || return 0
	apt_state "$1" $user_space
	name=$("$here/../deps.sh" names guest)
	(cd "$state/archives" && apt-get -qq download "$name")
	for deb in "$state/archives/$name"_*.deb; do
		unpack "$deb" "$final.new" --exclude './usr/share/*'
	done
	finish
}

release_of() { # ARCH SUITE
	grep -a -o -m 1 'Linux version [^ ]*' "$cache/kernel-$1-$2/vmlinuz" | head -n 1 | cut -d ' ' -f 3
}

# Headers of exactly the kernel that boots. Their tools run here, so these are for this machine.
headers() { # ARCH SUITE
	kernel "$1" "$2"
	release=$(release_of "$1" "$2")
	begin "headers-$release" || return 0
	apt_state "$1" "$2"
	if ! apt-cache show "linux-headers-$release" >/dev/null 2>&1; then # the mirror has a newer one by now
		rm -rf "$final.new" "$cache/kernel-$1-$2"
		kernel "$1" "$2"
		release=$(release_of "$1" "$2")
		begin "headers-$release" || return 0
	fi
	names=$("$here/../deps.sh" names headers "$release")
	kbuild=$(apt-cache depends "linux-headers-$release" | awk '/Depends: linux-kbuild/ && !seen { print $2; seen = 1 }')
	# shellcheck disable=SC2086 # a list of words
	(cd "$state/archives" && apt-get -qq download $names)
	for name in $names; do
		unpack "$state/archives/$name"_*.deb "$final.new"
	done
	rm -rf "$state/archives"
	unset APT_CONFIG
	apt_state "$(dpkg --print-architecture)" "$2"
	(cd "$state/archives" && apt-get -qq download "$kbuild")
	unpack "$state/archives/$kbuild"_*.deb "$final.new"
	sed -i "s#^include /usr/src#include $final/usr/src#" "$final.new/usr/src/linux-headers-$release/Makefile"
	finish
}

case "${1-}" in
headers) headers "${2:?}" "${3:?}" ;;
kernel) kernel "${2:?}" "${3:?}" ;;
sysroot) sysroot "${2:?}" ;;
guest) guest "${2:?}" ;;
*)
	sed -n '3,11s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
echo "$final"
