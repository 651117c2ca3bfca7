#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: run.sh LOGS TEST [ARGUMENT...]. Runs a test and prints what it printed in one piece, since tests run side by
# side; a copy is in the directory LOGS. With an argument that is no path the test is a part of its program. The records
# that a test leaves in the directory VAPRO_UNIT_RECORDS may not contradict themselves.
logs=$1
shift
name=${1##*/}
case "${2-}" in
"" | */* | -*) ;;
*) [ -e "$2" ] || name=$name-$2 ;;
esac
log=$logs/$name.out
VAPRO_UNIT_RECORDS=$(cd "$logs" && pwd)/.records/$name
export VAPRO_UNIT_RECORDS
rm -rf "$VAPRO_UNIT_RECORDS"
mkdir -p "$VAPRO_UNIT_RECORDS"
"$@" >"$log" 2>&1
code=$?
rmdir "$VAPRO_UNIT_RECORDS" 2>/dev/null || "${0%/*}/../tools/contradictions.py" "$VAPRO_UNIT_RECORDS" >>"$log" 2>&1 || code=1
exec 9>>"$logs/.printing"
flock 9
echo "== $1 ${name#"${1##*/}"}"
cat "$log"
exit "$code"
