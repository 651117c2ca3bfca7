/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The colours of heat maps, one table for page and picture. They differ in lightness from one end to the other, so that
 * they are in order for the colour-blind and in print without colours too. Speed runs from pale to dark by way of
 * yellow and red; waiting for others, which is no fault of the rank that waits, is blue all the way.
 */
#ifndef VAPRO_PAGE_SCALE_H
#define VAPRO_PAGE_SCALE_H

#include <stddef.h>
#include <stdint.h>

enum scale_kind { SCALE_SPEED, SCALE_WAITING, SCALE_KINDS };
enum scale_ground { SCALE_LIGHT, SCALE_DARK, SCALE_GROUNDS };

struct scale_stop {
	uint8_t pct;  /* performance; waiting is the rest to 100 */
	uint32_t rgb; /* 0xrrggbb; between two stops colours are mixed in proportion */
};

struct scale {
	const struct scale_stop *stops; /* from 100 % down to 0 */
	size_t count;
};

extern const struct scale scales[SCALE_KINDS][SCALE_GROUNDS];

/* Returns the colour of a performance in percent. */
uint32_t scale__color(const struct scale *scale, double pct);

#endif
