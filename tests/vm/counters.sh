# SPDX-License-Identifier: GPL-2.0-or-later
# What runs in a guest with a PMU: seven classes of work on one edge, which vaprod counts. Judged by
# counters.t.

until_true() { # SECONDS COMMAND...
	tries=$(($1 * 10))
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}

classes() { # DIRECTORY OPTIONS...
	mkdir -p "$1"
	cd "$1" || exit 1
	shift
	{
		mpirun -n 1 classes --classes 7 --rounds 9 --us 700 --delay 1 >program.out 2>program.err </dev/null
		echo $? >program.code
	} &
	until_true 30 grep -qs '"ready"' program.out
	pid=$(sed -n 's/.*"ready":true,"pid":\([0-9]*\).*/\1/p' program.out)
	kill -STOP "$pid"
	{
		vaprod --pid "$pid" --output out.ndjson --capture run.capture --overhead-cap 0 --io off "$@" \
			>vaprod.out 2>vaprod.err </dev/null
		echo $? >vaprod.code
	} &
	until_true 60 grep -qs '"attached"' out.ndjson
	kill -CONT "$pid"
	until_true 60 test -s program.code
	until_true 30 test -s vaprod.code
	cd ..
}

timeout 60 vapro check --counters >check.out 2>&1 </dev/null
echo $? >check.code
classes merged
# every fragment travels singly, so that the capture has the count of each
classes single --rare-members 1000 --workload instructions,branches
