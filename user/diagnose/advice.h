/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One or two sentences on what to do, by rules over the finest major factor. */
#ifndef VAPRO_ADVICE_H
#define VAPRO_ADVICE_H

#include <vapro/analysis.h>

/* Of a variance whose diagnosis is complete but for the advice. Writes at most size bytes. */
void advice__write(const struct result_variance *variance, bool waiting, bool transfer, char *buf, size_t size);

#endif
