/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queries that a confined reader serves (sandbox/confine.h); the first call of the programs' main(). */
#ifndef VAPRO_READER_H
#define VAPRO_READER_H

void reader__main(int argc, char **argv);

#endif
