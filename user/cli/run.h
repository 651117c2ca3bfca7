/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `vapro run`: starts a command, watches every MPI process that descends from it, and ends with a summary. */
#ifndef VAPRO_RUN_H
#define VAPRO_RUN_H

/* argv[0] is "run". Returns the command's exit code (128 + n where signal n ended it), or one of ours. */
int run__main(int argc, char **argv);

#endif
