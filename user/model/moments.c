/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/moments.h"

#include <math.h>

void moments__add(struct moments *moments, double value)
{
	double before = moments->n, n = before + 1, delta = value - moments->mean, step = delta / n;
	double square = step * step, term = delta * step * before;

	moments->least = before > 0 ? fmin(moments->least, value) : value;
	moments->most = before > 0 ? fmax(moments->most, value) : value;
	moments->n = n;
	moments->mean += step;
	moments->m4 += term * square * (n * n - 3 * n + 3) + 6 * square * moments->m2 - 4 * step * moments->m3;
	moments->m3 += term * step * (n - 2) - 3 * step * moments->m2;
	moments->m2 += term;
}

void moments__merge(struct moments *into, const struct moments *from)
{
	double a = into->n, b = from->n, n = a + b, delta = from->mean - into->mean;
	double step = delta / n, product = a * b;
	struct moments sum = {.n = n};

	if (!(b > 0))
		return;
	if (!(a > 0)) {
		*into = *from;
		return;
	}
	sum.mean = into->mean + step * b;
	sum.m2 = into->m2 + from->m2 + delta * step * product;
	sum.m3 =
	    into->m3 + from->m3 + delta * step * step * product * (a - b) + 3 * step * (a * from->m2 - b * into->m2);
	sum.m4 = into->m4 + from->m4 + delta * step * step * step * product * (a * a - product + b * b) +
		 6 * step * step * (a * a * from->m2 + b * b * into->m2) + 4 * step * (a * from->m3 - b * into->m3);
	sum.least = fmin(into->least, from->least);
	sum.most = fmax(into->most, from->most);
	*into = sum;
}

double moments__skewness(const struct moments *moments)
{
	return moments->m2 > 0 ? sqrt(moments->n) * moments->m3 / pow(moments->m2, 1.5) : NAN;
}

double moments__kurtosis(const struct moments *moments)
{
	return moments->m2 > 0 ? moments->n * moments->m4 / (moments->m2 * moments->m2) : NAN;
}

double moments__rv(const struct moments *moments)
{
	double kurtosis = moments__kurtosis(moments);

	return moments->m3 < 0 ? -kurtosis : kurtosis;
}
