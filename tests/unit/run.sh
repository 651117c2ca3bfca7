#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Usage: run.sh TEST. Runs a test and prints what it printed in one piece, since tests run side by side.
log=$1.out
"$1" >"$log" 2>&1
code=$?
exec 9>>"$(dirname "$1")/.printing"
flock 9
echo "== $1"
cat "$log"
exit "$code"
