#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# comment.sh JOB, as root: writes the verdict of vapro on a running job of Slurm, as vaprod of this node has it at present,
# into the job's AdminComment. vapro_spank.so runs it at the end of a batch script (comment=.../comment.sh).
case $1 in '' | *[!0-9]*) exit 2 ;; esac
PATH=$PATH:/usr/local/bin:/usr/bin:/bin
line=$(timeout 2 vapro report --one-line --job "$1" 2>/dev/null) && [ -n "$line" ] || exit 1
exec timeout 2 scontrol update JobId="$1" "AdminComment=$line"
