// SPDX-License-Identifier: GPL-2.0-or-later
/* What functions may spend where the calls of their processes need the budget: see row_attacher.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "probe/attach/row_attacher_private.h"
#include "probe/attach/row_image.h"

#define LIMIT_LEAST 1e-4 /* a share of nothing would be no bound */
#define SCARCE_NS                                                                                                      \
	60000000000ULL /* time without duty cycles after calls exceeded the budget, or from the last limit on */
/* A shorter limit comes from a burst of calls, or from waits in the first seconds of a process. */
#define LASTING_NS 5000000000ULL

bool row_image__is_scarce(const struct row_image *image, uint64_t now_ns)
{
	return now_ns < image->scarce_until_ns;
}

double row_image__limit(const struct row_image *image, uint64_t now_ns)
{
	return now_ns < image->limit_until_ns ? image->limit : INFINITY;
}

void row_image__make_scarce(struct row_image *image, uint64_t from_ns)
{
	image->scarce_until_ns = from_ns + SCARCE_NS;
}

/* Whether functions of an image were requested by users: these have their part whatever the calls cost. */
static bool is_requested(const struct row_image *image)
{
	for (size_t i = 0; i < image->probe_count; i++)
		if (image->probes[i]->group == ROW_USER)
			return true;
	return false;
}

void row_attacher__limit(struct row_attacher *attacher, pid_t pid, double share, uint64_t now_ns)
{
	for (size_t i = 0; i < attacher->base.count; i++) {
		struct row_image *image = row_attacher__image(attacher, i);
		bool limited = now_ns < image->limit_until_ns;

		if ((!limited && share >= attacher->budget) || !attached__is_mapped_by(&image->base, pid) ||
		    is_requested(image))
			continue;
		if (limited && pid != image->limit_pid && share > image->limit)
			continue; /* of several processes the one with least counts */
		image->limit = fmax(share, LIMIT_LEAST);
		image->limit_pid = pid;
		if (share >= attacher->budget) {
			image->limit_from_ns = 0;
			continue;
		}
		if (!limited || !image->limit_from_ns)
			image->limit_from_ns = now_ns;
		image->limit_until_ns = now_ns + SCARCE_NS;
		if (now_ns >= image->limit_from_ns + LASTING_NS)
			row_image__make_scarce(image, now_ns);
	}
}

static bool maps_only(const struct attached *image, const pid_t *pids, size_t count)
{
	for (size_t i = 0; i < image->mapper_count; i++) {
		size_t at = 0;

		while (at < count && pids[at] != image->pids[i])
			at++;
		if (at == count)
			return false;
	}
	return image->mapper_count;
}

/* Whether a function, or what shares exits with it, exceeds the functions' share of the budget alone. */
static bool exceeds(const struct row_attacher *attacher, const struct row_probe *probe)
{
	return probe->family_share > attacher->budget;
}

/* Closes an open or fitting function until the rest ends. */
static void rest_function(struct row_attacher *attacher, struct row_image *image, struct row_probe *probe)
{
	free(probe->left_out);
	probe->left_out = strdup("closed with the other probes of its processes, which are over their budget");
	probe->in_duty_cycle = true;
	probe->backoff.until_ns = image->rest_until_ns;
	if (probe->state == ROW_OPEN)
		row_image__close(attacher, image, probe);
	probe->state = ROW_LEFT_OUT;
}

void row_attacher__rest(struct row_attacher *attacher, const pid_t *pids, size_t count, uint64_t until_ns)
{
	double random = governor__random(&attacher->random);
	uint64_t now_ns = mono_now();

	for (size_t i = 0; i < attacher->base.count; i++) {
		struct row_image *image = row_attacher__image(attacher, i);

		if (attacher->base.paused || attacher->budget <= 0 || !maps_only(&image->base, pids, count))
			continue;
		image->rest_until_ns = until_ns;
		row_image__make_scarce(image, until_ns);
		for (size_t j = 0; j < image->probe_count; j++) {
			struct row_probe *probe = image->probes[j];
			bool open = probe->state == ROW_OPEN || probe->state == ROW_FITTING;

			if (exceeds(attacher, probe) &&
			    (open || (probe->state == ROW_LEFT_OUT && probe->in_duty_cycle)))
				row_image__leave_out(attacher, image, probe, false, 0, random, now_ns);
			else if (open)
				rest_function(attacher, image, probe);
		}
		row_image__describe(image);
	}
}
