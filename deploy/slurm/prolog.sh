#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Slurm's Prolog: writes what people call the job, for vaprod on this node (vapro-records(5), names). The file is root's,
# so that no process of the job can forge it. In slurm.conf: Prolog=/etc/slurm/vapro-prolog.sh, or one line of a prolog
# that exists. It never fails: a node is not drained for the sake of a name.
#
# slurmd gives a Prolog the number and the user of the job. Where it does not give the name, scontrol is asked once, for
# at most a second; VAPRO_ASK=no in the environment of slurmd spares that, and the job has the names of its environment.
directory=${VAPRO_JOBS:-/run/vapro/jobs}
id=$SLURM_JOB_ID
case $id in '' | *[!0-9]*) exit 0 ;; esac

name=$SLURM_JOB_NAME account=$SLURM_JOB_ACCOUNT partition=$SLURM_JOB_PARTITION
nodes=$SLURM_JOB_NUM_NODES user=$SLURM_JOB_USER uid=$SLURM_JOB_UID
if [ -z "$name" ] && [ "${VAPRO_ASK:-yes}" = yes ]; then
	separator=$(printf '\001')
	line=$(timeout 1 squeue --noheader --jobs="$id" --Format="Account:64${separator},Partition:64${separator},NumNodes:16${separator},Name:128" 2>/dev/null |
		head -n 1) || line=
	if [ -n "$line" ]; then
		account=${line%%"$separator"*} line=${line#*"$separator"}
		partition=${line%%"$separator"*} line=${line#*"$separator"}
		nodes=${line%%"$separator"*} name=${line#*"$separator"}
	fi
fi
[ -n "$uid" ] || exit 0
[ "$account" = "(null)" ] && account= # no accounting

# a value ends at the end of its line
value() {
	printf '%s=' "$1"
	printf '%s' "$2" | tr -d '\n\r' | sed 's/ *$//'
	printf '\n'
}

umask 022
mkdir -p "$directory" 2>/dev/null && {
	value uid "$uid"
	value name "$name"
	value account "$account"
	value partition "$partition"
	value nodes "$nodes"
	value user "$user"
} >"$directory/.$id" 2>/dev/null && mv -f "$directory/.$id" "$directory/$id" 2>/dev/null
exit 0
