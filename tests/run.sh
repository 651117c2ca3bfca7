#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: run.sh LOGS TEST [ARGUMENT...]. Runs a test and prints what it printed in one piece, since tests run side by
# side; a copy is in the directory LOGS.
logs=$1
shift
log=$logs/${1##*/}.out
"$@" >"$log" 2>&1
code=$?
exec 9>>"$logs/.printing"
flock 9
echo "== $1"
cat "$log"
exit "$code"
