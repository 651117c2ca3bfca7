/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moments of values up to the fourth, in one pass, by the updates of Pebay (SAND2008-6212). Moments of disjoint values
 * add, in any order. A plain value; zero is empty.
 */
#ifndef VAPRO_MOMENTS_H
#define VAPRO_MOMENTS_H

struct moments {
	double n, mean;
	double m2, m3, m4; /* sums of powers of the deviations from the mean */
	double least, most;
};

void moments__add(struct moments *moments, double value);
void moments__merge(struct moments *into, const struct moments *from);

/* Skewness and kurtosis of a population (of normal values 0 and 3); NAN where all values are equal. */
double moments__skewness(const struct moments *moments);
double moments__kurtosis(const struct moments *moments);

/*
 * Varbench's resource variability (ICPP'18, equation 1): the kurtosis with the sign of the skewness. NAN where all
 * values are equal.
 */
double moments__rv(const struct moments *moments);

#endif
