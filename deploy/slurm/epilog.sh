#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Slurm's Epilog: removes what the prolog wrote. In slurm.conf: Epilog=/etc/slurm/vapro-epilog.sh.
directory=${VAPRO_JOBS:-/run/vapro/jobs}
case $SLURM_JOB_ID in '' | *[!0-9]*) exit 0 ;; esac
rm -f "$directory/$SLURM_JOB_ID"
# With VAPRO_COMMENT=yes in the environment of slurmd, root of this node writes the verdict of vapro into the job's
# AdminComment. vaprod judges a job at the end of its latest window: this waits for it in the background, so that the node
# is free at once. By then the job is over, and Slurm changes the comment in its accounting (slurmdbd) only: slurmctld
# refuses ("Job has already finished"). comment.sh sets it while the job still runs.
[ "$VAPRO_COMMENT" = yes ] || exit 0
setsid sh -c '
	sleep "${VAPRO_COMMENT_AFTER:-12}"
	line=$(timeout 20 vapro report --one-line --job "$1" 2>/dev/null) && [ -n "$line" ] &&
		timeout 20 sacctmgr -i modify job where "jobid=$1" set "AdminComment=$line"
' vapro-comment "$SLURM_JOB_ID" </dev/null >/dev/null 2>&1 &
exit 0
