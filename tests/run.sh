#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: run.sh LOGS TEST [ARGUMENT...]. Runs a test and prints what it printed in one piece, since tests run side by
# side; a copy is in the directory LOGS. With an argument that is no path the test is a part of its program.
logs=$1
shift
name=${1##*/}
case "${2-}" in
"" | */* | -*) ;;
*) [ -e "$2" ] || name=$name-$2 ;;
esac
log=$logs/$name.out
"$@" >"$log" 2>&1
code=$?
exec 9>>"$logs/.printing"
flock 9
echo "== $1 ${name#"${1##*/}"}"
cat "$log"
exit "$code"
