/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heat map of one job and class as a picture for a paper (SVG 1.1), as wide as a column of two: ranks host by host
 * over time, slow regions outlined and numbered, hatched where nothing was evaluated. A picture has at most SVG_ROWS
 * rows and SVG_COLUMNS columns; what shares one shows its slowest value.
 */
#ifndef VAPRO_EXPORT_SVG_H
#define VAPRO_EXPORT_SVG_H

#include <stdio.h>

#include "page/run_report.h"

#define SVG_BEGIN "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- vapro report -->\n" /* how each picture begins */
#define SVG_ROWS 1000
#define SVG_COLUMNS 1000

/*
 * Finds the map of a class (NULL: computation). Returns NULL with a sentence in err where the run has no such map, or
 * where several jobs have one.
 */
const struct view_map *svg__choose(const struct run_report *report, const char *class, char *err, size_t err_size);

/* Draws a map. Returns 0, or a negative errno where memory or out fails. */
int svg__write(const struct run_report *report, const struct view_map *map, FILE *out);

#endif
