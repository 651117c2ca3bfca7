# SPDX-License-Identifier: GPL-2.0-or-later
# What runs in a guest with a PMU: kernels that log the true work of each computation, and ranks of which
# one is slow from start to end. Judged by workloads.t.

until_true() { # SECONDS COMMAND...
	tries=$(($1 * 50))
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.02
	done
}

ready() { # RANKS
	[ "$(grep -cs '"ready"' program.out)" = "$1" ]
}

attached() { # RANKS
	[ "$(grep -cs '"state":"attached"' out.ndjson)" -ge "$1" ]
}

# Ranks wait before their first call until they are watched.
watch() { # DIRECTORY RANKS PROGRAM-AND-ARGUMENTS OPTIONS...
	mkdir -p "$1"
	cd "$1" || exit 1
	ranks=$2
	command=$3
	shift 3
	{
		# shellcheck disable=SC2086 # a list of words
		VAPRO_GO=$PWD/go mpirun -n "$ranks" $command >program.out 2>program.err </dev/null
		echo $? >program.code
	} &
	until_true 30 ready "$ranks"
	# shellcheck disable=SC2046 # as many options as there are ranks
	{
		vaprod $(sed -n 's/.*"ready":true,"pid":\([0-9]*\).*/--pid \1/p' program.out) --output out.ndjson \
			--capture run.capture --overhead-cap 0 --io off "$@" >vaprod.out 2>vaprod.err </dev/null
		echo $? >vaprod.code
	} &
	until_true 60 attached "$ranks"
	: >go
	until_true 120 test -s program.code
	until_true 60 test -s vaprod.code
	echo "vm: ${PWD##*/} done, up $(cut -d' ' -f1 /proc/uptime) s"
	cd ..
}

# every fragment travels singly, so that the capture has the work of each
singly="--rare-members 100000"
# shellcheck disable=SC2086
{
	watch cg 2 "cg --rounds 8" $singly
	watch ft 2 "ft --rounds 5" $singly
	watch ep 2 "ep --rounds 24" $singly
	watch pagerank 2 "pagerank --rounds 8" $singly --workload instructions,page-faults
}
# with default options, on a CPU without another rank
watch cg_default 1 "cg --rounds 60"
watch ft_default 1 "ft --rounds 24"
watch ep_default 1 "ep --rounds 200"
watch pagerank_default 1 "pagerank --rounds 60"
watch slow 2 "slow_rank --steps 2400 --slow 1"
watch slow_arguments 2 "slow_rank --steps 2400 --slow 1" --counters none
