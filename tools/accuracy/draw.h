/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random numbers that are the same on every machine (splitmix64). */
#ifndef VAPRO_ACCURACY_DRAW_H
#define VAPRO_ACCURACY_DRAW_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

struct draw {
	uint64_t seed;
	double spare;
	bool has_spare;
};

static inline uint64_t draw__mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* 0 <= x < 1 */
static inline double draw__unit(struct draw *draw)
{
	return (double)(draw__mix(draw->seed += 0x9e3779b97f4a7c15ULL) >> 11) * 0x1p-53;
}

static inline double draw__between(struct draw *draw, double low, double high)
{
	return low + (high - low) * draw__unit(draw);
}

/* low..high, both included */
static inline int draw__int(struct draw *draw, int low, int high)
{
	return low + (int)(draw__unit(draw) * (high - low + 1));
}

static inline double draw__gauss(struct draw *draw)
{
	double radius, angle;

	if (draw->has_spare) {
		draw->has_spare = false;
		return draw->spare;
	}
	radius = sqrt(-2 * log(draw__unit(draw) + 0x1p-54));
	angle = 6.283185307179586 * draw__unit(draw);
	draw->spare = radius * sin(angle);
	draw->has_spare = true;
	return radius * cos(angle);
}

/* A function of its arguments only, without a state. */
static inline double draw__hash(uint64_t seed, uint64_t a, uint64_t b)
{
	return (double)(draw__mix(seed ^ draw__mix(a ^ draw__mix(b + 0x9e3779b97f4a7c15ULL))) >> 11) * 0x1p-53;
}

#endif
