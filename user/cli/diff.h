/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `vapro diff`: what became slower from one run to another. */
#ifndef VAPRO_DIFF_H
#define VAPRO_DIFF_H

/* With --fail-on slower: something is significantly slower. No other exit code of vapro has this value. */
#define EXIT_SLOWER 7

/* argv[0] is "diff". Returns an exit code. */
int diff__main(int argc, char **argv);

#endif
