# SPDX-License-Identifier: GPL-2.0-or-later
# What runs in a guest, in its shell. Each part leaves a directory with the output (NAME.out, NAME.err)
# and exit code (NAME.code) of its programs; kernels.t judges them. Nothing is judged here.

# Runs a command to its end, at most 60 s.
run() { # NAME COMMAND...
	name=$1
	shift
	timeout 60 "$@" >"$name.out" 2>"$name.err" </dev/null
	echo $? >"$name.code"
}

# Starts a command; its id is in NAME.pid.
start() { # NAME COMMAND...
	name=$1
	shift
	(
		"$@" >"$name.out" 2>"$name.err" </dev/null &
		echo $! >"$name.pid"
		wait $!
		echo $? >"$name.code"
	) &
	until_true 10 test -s "$name.pid"
}

# Waits for what was started; one that does not end is killed, as its exit code shows.
finish() { # NAME SECONDS
	until_true "$2" test -s "$1.code" || kill -9 "$(cat "$1.pid")"
	until_true 5 test -s "$1.code"
}

until_true() { # SECONDS COMMAND...
	tries=$(($1 * 10))
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}

reported() { # COUNT STATE FILE: whether so many processes are said to be in a state
	[ "$(grep '"type":"process"' "$3" 2>/dev/null | grep -c "\"state\":\"$2\"")" -ge "$1" ]
}

# Waits for two ranks that log to a directory; $ranks are their ids, $selected the options that select them.
find_ranks() { # DIRECTORY
	until_true 30 grep -qs 'pid [0-9]' "$1/truth.0"
	until_true 30 grep -qs 'pid [0-9]' "$1/truth.1"
	ranks=$(sed -n 's/^# .*rank .* pid //p' "$1/truth.0" "$1/truth.1")
	selected=
	for pid in $ranks; do
		selected="$selected --pid $pid"
	done
}

start_job() { # ITERATIONS
	start program mpirun -n 2 iterate --iterations "$1" --log .
	find_ranks .
}

check() {
	run check vapro check
	run vaprod vaprod --duration 0.2
}

# vaprod takes seconds to load in an emulated machine: a program is stopped meanwhile, or it would have ended.
hold() {
	kill -STOP $ranks
}

release() {
	kill -CONT $ranks
}

# One rank that counts its own calls, from the first on.
counts() {
	start program mpirun -n 1 flat_out --rate 3000 --seconds 1.5 --delay 1
	until_true 20 grep -qs '"ready"' program.out
	ranks=$(sed -n 's/.*"ready":true,"pid":\([0-9]*\).*/\1/p' program.out)
	hold
	start vaprod vaprod --pid "$ranks" --output out.ndjson --overhead-cap 0 --io off
	until_true 30 reported 1 attached out.ndjson
	release
	finish program 30
	finish vaprod 20
}

# Starts vaprod; the job continues when vaprod is ready to attach.
watch() { # OPTIONS...
	hold
	start vaprod vaprod $selected --output out.ndjson "$@"
	until_true 30 grep -qs '"hello"' out.ndjson
	release
	until_true 20 reported 2 attached out.ndjson
}

# Two running ranks to their end.
job() {
	start_job 100
	watch --capture run.capture --overhead-cap 0 --io on
	finish program 60
	finish vaprod 20
	run stg vapro stg run.capture
}

# The programs of one graph, a job each, all under one vaprod: to load it takes longer than to run them.
graphs() { # PROGRAM...
	all=
	for name in "$@"; do
		mkdir "$name.log"
		launcher=mpirun
		case $name in mpich_*) launcher=mpirun.mpich ;; esac
		VAPRO_GO=$PWD/$name.go start "$name" $launcher -n 2 "$name" --log "$name.log"
		find_ranks "$name.log"
		all="$all $selected"
	done
	start vaprod vaprod $all --output out.ndjson --capture run.capture --io off --overhead-cap 0
	until_true 120 reported $((2 * $#)) attached out.ndjson
	for name in "$@"; do
		: >"$name.go"
		finish "$name" 60
	done
	finish vaprod 60
	run stg vapro stg --json run.capture
}

# vaprod detaches or is killed in the middle, and the program continues. Leaves the program's code before, while and
# after. The program is stopped for the slow part of detaching, so that its code can be read.
leave() { # SIGNAL
	start_job $((iterations * 3))
	run before changed_text $ranks
	watch
	run while changed_text $ranks
	kill "-$1" "$(cat vaprod.pid)"
	sleep 0.3
	hold
	finish vaprod 30
	run after changed_text $ranks
	release
	finish program 60
}

part() { # NAME COMMAND...
	echo "vm: $1, up $(cut -d' ' -f1 /proc/uptime) s"
	mkdir -p "$1"
	(cd "$1" && shift && "$@")
}

part check check
if [ "$(cat check/vaprod.code)" = 0 ]; then
	iterations=120
	# without sessions and multi links each site is attached by itself, which takes longer
	grep -q '^[^[]*"attach_mode":"perf"' check/vaprod.out && iterations=200
	part counts counts
	part job job
	part graphs graphs steps mpich_steps steps_f08 mpich_steps_h
	part detach leave INT
	part kill leave KILL
fi
