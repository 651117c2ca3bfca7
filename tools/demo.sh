#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# make demo: a real MPI program on two cores, a CPU hog on one of them for three seconds, vaprod
# attached to the running processes; then what vaprod found beside what really happened. About 45 s.
# Leaves build/demo/vapro.ndjson and its page vapro.html, the truth logs and the hog's log.
set -eu

cd "$(dirname "$0")/.."
build=${BUILD:-build}
out=$build/demo
ranks=2
watch=30     # seconds that vaprod watches
hog_after=14 # from vaprod's start
hog_for=3

for program in "$build/vaprod" "$build/vapro" "$build/tools/demo_mpi" "$build/tools/hog"; do
	if [ ! -x "$program" ]; then
		echo "demo: $program is missing; run make first" >&2
		exit 1
	fi
done
if [ "$(id -u)" -ne 0 ]; then
	echo "demo: vaprod needs root" >&2
	exit 3
fi
if [ "$(nproc)" -lt "$ranks" ]; then
	echo "demo: $ranks cores are needed, here are $(nproc)" >&2
	exit 1
fi

mpi='' daemon='' hog=''
cleanup() {
	trap - EXIT INT TERM
	for pid in $hog $daemon $mpi; do
		kill "$pid" 2>/dev/null || true
	done
	wait
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

rm -rf "$out"
mkdir -p "$out/truth" "$out/scratch"
sync -f "$out" # what the build wrote is written now, not while the program waits for its own files

echo "1. A real MPI program starts on $ranks cores: four kernels of fixed work per iteration, exchange with"
echo "   the neighbour, collectives, file IO. It knows nothing of vapro; it logs the time of each of its"
echo "   segments between MPI calls, which is the truth to compare with."
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
	timeout -k 5 $((watch + 40)) mpirun --allow-run-as-root --bind-to none -n $ranks \
	"$build/tools/demo_mpi" --seconds $((watch + 5)) --log "$out/truth" --scratch "$out/scratch" --bind \
	>"$out/demo_mpi.out" 2>&1 &
mpi=$!

# a rank prints its pid in the first line of its log
tries=0
while :; do
	pids=$(sed -s -n '1s/.*pid //p' "$out"/truth/truth.* 2>/dev/null | tr '\n' ' ')
	# shellcheck disable=SC2086 # a list of words
	set -- $pids
	[ $# -eq $ranks ] && break
	tries=$((tries + 1))
	if [ $tries -gt 100 ] || ! kill -0 $mpi 2>/dev/null; then
		echo "demo: the MPI program did not start:" >&2
		cat "$out/demo_mpi.out" >&2
		exit 1
	fi
	sleep 0.1
done
sleep 1

echo "2. vaprod attaches to the running processes $* and watches for $watch s."
select=''
for pid in "$@"; do
	select="$select --pid $pid"
done
# shellcheck disable=SC2086 # a list of words
timeout -k 5 $((watch + 30)) "$build/vaprod" $select --output "$out/vapro.ndjson" --duration $watch >"$out/vaprod.out" 2>&1 &
daemon=$!

echo "3. After $hog_after s a process called \"hog\" takes half of rank 0's core for $hog_for s."
"$build/tools/hog" --cpu 0 --start-after $hog_after --seconds $hog_for --log "$out/hog.json" &
hog=$!

code=0
wait $daemon || code=$?
daemon=''
if [ $code -ne 0 ]; then
	echo "demo: vaprod ended with $code:" >&2
	cat "$out/vaprod.out" >&2
	exit $code
fi
wait $hog
hog=''
if ! wait $mpi; then
	mpi=''
	echo "demo: the MPI program's results are wrong:" >&2
	cat "$out/demo_mpi.out" >&2
	exit 1
fi
mpi=''
rm -rf "$out/scratch"

echo
echo "=== What vaprod found (vapro view $out/vapro.ndjson) ==="
echo
"$build/vapro" view --no-pager "$out/vapro.ndjson"
echo
echo "=== What really happened (the program's own log, the hog's own log) ==="
echo
/usr/bin/python3 tools/truth.py show "$out/truth" --hog "$out/hog.json"
echo
echo "=== vaprod's alarms against the truth ==="
echo
code=0
/usr/bin/python3 tools/truth.py check --truth "$out/truth" --hog "$out/hog.json" "$out/vapro.ndjson" || code=$?
if [ $code -ne 0 ]; then
	echo
	echo "Not all is as wanted. Digits under 8 outside of the hog's time, in the program's own log above, show that"
	echo "something else slowed this machine down, too, and where: those spells are seen as well and blur the hog's"
	echo "edges. Without such digits it is a fault of vapro: please report it with $out."
fi
echo
echo "All that vaprod said is in $out/vapro.ndjson; the program's result: $(cat "$out/demo_mpi.out")"
if "$build/vapro" report --html "$out/vapro.html" "$out/vapro.ndjson" 2>"$out/report.out"; then
	echo "The map above and more of it, as a page for a browser: $out/vapro.html"
else
	cat "$out/report.out" >&2
	code=1
fi
exit $code
