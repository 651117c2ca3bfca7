/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What people read of decisions on functions with exit sites. */
#ifndef VAPRO_ROW_REPORT_H
#define VAPRO_ROW_REPORT_H

#include "probe/attach/row_attacher.h"
#include "probe/attach/row_image.h"

/* Functions of an image, picked for a decision. */
struct row_picked {
	struct row_probe **probes; /* room for all of the image */
	size_t count;
};

/*
 * Names the first few: "f (31000 calls/s, 34 %), g (120 calls/s, 0.3 %) and 4 that share their exits". A function that
 * is not called costs something only because others end where it does: it is named only where none of them is picked.
 */
void row_report__name(const struct row_picked *picked, char *text, size_t size);

/* Returns why a function is left out, for people, to be freed; NULL when out of memory. */
char *row_report__reason(const struct row_image *image, const struct row_probe *probe);

/* Reports a decision on functions of an image. */
void row_report__decision(const struct row_image *image, enum row_decision_kind kind, const struct row_picked *picked,
			  uint64_t now_ns, row_decided *decided, void *ctx);

#endif
