// SPDX-License-Identifier: GPL-2.0-or-later
#include "page/scale.h"

#include <math.h>

static const struct scale_stop light_speed[] = {{100, 0xdbe8f2}, {95, 0xd3e2ee}, {88, 0xf3e3a6}, {80, 0xf5b955},
						{60, 0xe27430},	 {35, 0xa62a44}, {0, 0x3a0f52}};
static const struct scale_stop dark_speed[] = {{100, 0x16303f}, {95, 0x193749}, {88, 0x4b5540}, {80, 0x94702a},
					       {60, 0xdf9036},	{35, 0xffc56e}, {0, 0xfff7dd}};
static const struct scale_stop light_waiting[] = {
    {100, 0xe6f1ef}, {75, 0xa9d3d6}, {50, 0x63a7c2}, {25, 0x2f6ea8}, {0, 0x15306e}};
static const struct scale_stop dark_waiting[] = {
    {100, 0x14262b}, {75, 0x1d4f5e}, {50, 0x287f96}, {25, 0x4fb6c9}, {0, 0xb4f2f4}};

#define STOPS(list)                                                                                                    \
	{                                                                                                              \
		list, sizeof(list) / sizeof(*(list))                                                                   \
	}

const struct scale scales[SCALE_KINDS][SCALE_GROUNDS] = {
    [SCALE_SPEED] = {[SCALE_LIGHT] = STOPS(light_speed), [SCALE_DARK] = STOPS(dark_speed)},
    [SCALE_WAITING] = {[SCALE_LIGHT] = STOPS(light_waiting), [SCALE_DARK] = STOPS(dark_waiting)},
};

static uint32_t mix(uint32_t a, uint32_t b, double part, unsigned shift)
{
	double x = a >> shift & 255, y = b >> shift & 255;

	return (uint32_t)lround(x + (y - x) * part) << shift;
}

uint32_t scale__color(const struct scale *scale, double pct)
{
	const struct scale_stop *from = scale->stops, *to;
	double part;

	pct = fmin(fmax(pct, 0), 100);
	for (to = from + 1; to + 1 < scale->stops + scale->count && pct < to->pct; to++)
		;
	from = to - 1;
	part = (from->pct - pct) / (from->pct - to->pct);
	return mix(from->rgb, to->rgb, part, 16) | mix(from->rgb, to->rgb, part, 8) | mix(from->rgb, to->rgb, part, 0);
}
