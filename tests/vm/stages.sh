# SPDX-License-Identifier: GPL-2.0-or-later
# What runs in a guest with stand-ins for stalls: two programs that stall for a while, one after the
# other, by stalls of different kinds, and vaprod. Judged by stages.t.

until_true() { # SECONDS COMMAND...
	tries=$(($1 * 10))
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}

run() { # NAME COMMAND...
	name=$1
	shift
	timeout 60 "$@" >"$name.out" 2>"$name.err" </dev/null
	echo $? >"$name.code"
}

# The program waits for the file NAME.go; $pid is its id.
start() { # NAME KIND-OF-STALL
	{
		VAPRO_GO=$PWD/$1.go mpirun -n 1 stalls --alone --pieces 1500 --us 1000 --idle-us 5000 --from 400 --to 1300 \
			--device /dev/standin --kind "$2" --stall-us 4000 --delay 1 >"$1.out" 2>"$1.err" </dev/null
		echo $? >"$1.code"
	} &
	until_true 30 grep -qs '"ready"' "$1.out"
	pid=$(sed -n 's/.*"ready":true,"pid":\([0-9]*\).*/\1/p' "$1.out")
}

reported() { # COUNT STATE
	[ "$(grep '"type":"process"' out.ndjson 2>/dev/null | grep -c "\"state\":\"$2\"")" -ge "$1" ]
}

insmod /vapro/standin.ko
run check vapro check --counters --config /vapro/events.conf
LD_PRELOAD=/vapro/refuse_counting.so run narrow vaprod --duration 0.2
start memory 0
selected="--pid $pid"
start execution 3
selected="$selected --pid $pid"
{
	vaprod $selected --config /vapro/events.conf --window 2.4s --output out.ndjson --capture run.capture --io off \
		--overhead-cap 0 >vaprod.out 2>vaprod.err </dev/null
	echo $? >vaprod.code
} &
until_true 60 reported 2 attached
for name in memory execution; do
	: >$name.go
	until_true 60 test -s $name.code
done
until_true 30 test -s vaprod.code
