# SPDX-License-Identifier: GPL-2.0-or-later
# What runs in a guest whose instructions can be counted: one rank, disturbed by a busy program and then
# held back by a CPU quota. Judged by factors.t.

until_true() { # SECONDS COMMAND...
	tries=$(($1 * 10))
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}

now() { # of the clock that records have
	date -u +%Y-%m-%dT%H:%M:%SZ
}

group=/sys/fs/cgroup/job
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir $group
{
	mpirun -n 1 iterate --iterations 100000 --log . >program.out 2>program.err </dev/null
	echo $? >program.code
} &
launcher=$!
until_true 30 grep -qs 'pid [0-9]' truth.0
pid=$(sed -n 's/^# .*rank .* pid //p' truth.0)
echo "$pid" >$group/cgroup.procs
# vaprod takes seconds to load in an emulated machine
kill -STOP "$pid"
{
	vaprod --pid "$pid" --output out.ndjson --window 3 --overhead-cap 0 --io off >vaprod.out 2>vaprod.err </dev/null
	echo $? >vaprod.code
} &
until_true 60 grep -qs '"attached"' out.ndjson
kill -CONT "$pid"
sleep 5
now >hog.begin
hog --cpu 0 --seconds 3 >hog.out 2>&1
now >hog.end
sleep 3
now >quota.begin
cat $group/cpu.stat >stat.before
echo "3000 10000" >$group/cpu.max
sleep 3
echo "max 10000" >$group/cpu.max
cat $group/cpu.stat >stat.after
now >quota.end
sleep 3
kill -INT "$(pidof vaprod)"
until_true 60 test -s vaprod.code
kill -KILL "$pid"
wait $launcher
