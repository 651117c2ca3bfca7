/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How people read a duration: in the same digits wherever it is printed. */
#ifndef VAPRO_DURATION_H
#define VAPRO_DURATION_H

#include <stddef.h>

/* Writes "12 us", "45 ms", "1.45 s", "12.3 s", "3 min 5 s" or "2 h 1 min" and returns buf. */
char *duration__text(double seconds, char *buf, size_t size);

#endif
