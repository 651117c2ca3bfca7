/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers as people write them: times, sizes and shares with a unit. No hex, no nan, no infinity. */
#ifndef VAPRO_UNITS_H
#define VAPRO_UNITS_H

#include <stddef.h>

/* What the formats are, for messages. */
#define UNITS_TIME "such as 30, 500ms, 5m or 1h"
#define UNITS_SIZE "such as 64K, 256M or 1G"

/* Each reads the whole text, with spaces before the unit if any, and returns 0 or -EINVAL. */
int units__number(const char *text, double *number);
int units__seconds(const char *text, double *seconds); /* ms, s (or nothing), m or min, h */
int units__bytes(const char *text, double *bytes);     /* K, M, G or T, in multiples of 1,024, also as KiB or KB */
int units__share(const char *text, double *share);     /* 0.05 or 5% */
int units__percent(const char *text, double *percent); /* 5 or 5% */

/* Each writes a value so that the function above reads the same number again. */
void units__format_seconds(double seconds, char *text, size_t size);
void units__format_bytes(unsigned long long bytes, char *text, size_t size);
void units__format_share(double share, char *text, size_t size);
void units__format_percent(double percent, char *text, size_t size);

#endif
