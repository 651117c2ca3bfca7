// SPDX-License-Identifier: GPL-2.0-or-later
#include "overhead/io_tax.h"

#include <math.h>

#define LINGER_S 5 /* tracing goes on so long after a request, and so long before a verdict, unless it costs much */
#define EARLY 0.2  /* share of the bound's allowance in LINGER_S: this cost brings a verdict at once */
#define SMALL 0.1  /* share of the bound: a tax below is worth it whatever is learnt */
#define FIRST_IDLE_S 60
#define RETRY_SHARE 0.1 /* of the bound, that trying again may cost on average at first */
#define MOST_VAIN 4	/* 16 minutes */

void io_tax__init(struct io_tax *tax, double bound)
{
	*tax = (struct io_tax){.bound = bound, .unrequested_s = LINGER_S};
}

static void stop(struct io_tax *tax)
{
	tax->traced_s = tax->calls_s = tax->tax = tax->learnt = 0;
}

/* Updates the means, over the time traced so far, later on over some seconds. */
static void note(struct io_tax *tax, const struct io_second *second)
{
	double weight = second->seconds / (tax->traced_s < LINGER_S ? tax->traced_s : LINGER_S);
	double calls_s = second->calls / second->seconds;

	tax->calls_s += (calls_s - tax->calls_s) * weight;
	tax->tax += (calls_s * second->each_ns * 1e-9 / second->cpus - tax->tax) * weight;
	tax->learnt += (second->learnt_ns * 1e-9 / second->seconds - tax->learnt) * weight;
}

static bool is_too_expensive(const struct io_tax *tax, const struct io_second *second)
{
	if (tax->bound <= 0)
		return false;
	if (tax->traced_s < LINGER_S && tax->tax * tax->traced_s < EARLY * tax->bound * LINGER_S)
		return false;
	return tax->tax > tax->bound || (tax->tax > tax->bound * SMALL && tax->tax * second->cpus > tax->learnt);
}

/* What was judged after a moment is tried again sooner, unless it cost so much that it has to be rare. */
static double idle_s(const struct io_tax *tax)
{
	return fmax(FIRST_IDLE_S * fmin(1, tax->traced_s / LINGER_S),
		    tax->tax * tax->traced_s / (tax->bound * RETRY_SHARE));
}

enum io_verdict io_tax__second(struct io_tax *tax, const struct io_second *second)
{
	if (second->seconds <= 0)
		return IO_AS_REQUESTED;
	tax->unrequested_s =
	    second->requested || (tax->traced_s > 0 && second->inside) ? 0 : tax->unrequested_s + second->seconds;
	tax->idle_s = tax->idle_s > second->seconds ? tax->idle_s - second->seconds : 0;
	if (tax->traced_s > 0) {
		tax->traced_s += second->seconds;
		note(tax, second);
		if (is_too_expensive(tax, second)) {
			tax->idle_s = idle_s(tax) * (double)(1U << tax->vain);
			tax->vain += tax->vain < MOST_VAIN;
			tax->traced_s = 0;
			return IO_GIVEN_UP;
		}
		if (tax->traced_s > 2 * LINGER_S)
			tax->vain = 0;
	}
	if (tax->unrequested_s >= LINGER_S) {
		stop(tax);
	} else if (!tax->traced_s && !tax->idle_s) {
		stop(tax);
		tax->traced_s = 1e-9;
	}
	return IO_AS_REQUESTED;
}
