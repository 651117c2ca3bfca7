/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `vapro diagnose`: queries a running vaprod why a region chosen by hand was slow (VAPRO (PPoPP'22) section 3.5). */
#ifndef VAPRO_CLI_DIAGNOSE_H
#define VAPRO_CLI_DIAGNOSE_H

/* argv[0] is "diagnose". Returns 0, 1 no response, 2 usage, 3 not root. */
int diagnose__main(int argc, char **argv);

#endif
