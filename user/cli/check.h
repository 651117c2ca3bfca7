/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `vapro check`: what this machine can do, what is missing and why. */
#ifndef VAPRO_CHECK_H
#define VAPRO_CHECK_H

/* argv[0] is "check". Returns 0 where vaprod can run, 3 where kernel or privileges do not allow it, 2 for bad usage. */
int check__main(int argc, char **argv);

#endif
