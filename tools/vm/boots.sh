# SPDX-License-Identifier: GPL-2.0-or-later
# What runs in each boot of boots.py: an MPICH program alone, under vaprod beside an Open MPI program, and while its
# probes are moved to other sites with calls in flight. Leaves exit codes and output; nothing is judged here.

until_true() { # SECONDS COMMAND...
	tries=$(($1 * 5))
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.2
	done
}

# Starts a program of two ranks, which wait for NAME.go before their first call.
start() { # NAME LAUNCHER PROGRAM ROUNDS
	mkdir "$1.log"
	{
		VAPRO_GO=$PWD/$1.go timeout 300 "$2" -n 2 "$3" --rounds "$4" --log "$1.log" >"$1.out" 2>"$1.err" </dev/null
		echo $? >"$1.code"
	} &
	until_true 60 grep -qs 'pid [0-9]' "$1.log/truth.0"
	until_true 60 grep -qs 'pid [0-9]' "$1.log/truth.1"
}

pids() { # NAME
	sed -n 's/^# .*rank .* pid //p' "$1.log/truth.0" "$1.log/truth.1"
}

observe() { # NAME COMMAND...
	name=$1
	shift
	{
		timeout 400 "$@" >"$name.out" 2>"$name.err" </dev/null
		echo $? >"$name.code"
	} &
}

: >alone.go
start alone mpirun.mpich mpich_steps "$ROUNDS"
until_true 320 test -s alone.code

start watched mpirun.mpich mpich_steps "$ROUNDS"
start beside mpirun steps "$ROUNDS"
# shellcheck disable=SC2046 # as many options as there are ranks
observe vaprod vaprod $(for pid in $(pids watched) $(pids beside); do echo --pid "$pid"; done) \
	--output out.ndjson --overhead-cap 0 --io off
until_true 120 sh -c '[ "$(grep -c "\"state\":\"attached\"" out.ndjson)" -ge 4 ]'
: >watched.go
: >beside.go
until_true 320 test -s watched.code
until_true 320 test -s beside.code
until_true 60 test -s vaprod.code

start moved mpirun.mpich mpich_steps "$ROUNDS"
# shellcheck disable=SC2046 # one argument for each rank
observe mover move_probes multi $(pids moved)
until_true 120 grep -qs ready mover.out
: >moved.go
until_true 320 test -s moved.code
until_true 60 test -s mover.code
