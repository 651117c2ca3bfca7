// SPDX-License-Identifier: GPL-2.0-or-later
/* Links of sets of functions: opened, closed, and made again without refused sites. See row_attacher.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "probe/attach/row_attacher_private.h"
#include "probe/attach/row_costs.h"
#include "probe/attach/row_plan.h"
#include "probe/attach/row_image.h"

void row_image__describe(struct row_image *image)
{
	struct attached_image *public = &image->base.public;

	public->functions = public->shifted = public->at_entry = public->stepped = public->skipped_count = 0;
	for (size_t i = 0; i < image->probe_count; i++) {
		const struct row_probe *probe = image->probes[i];

		if (probe->state == ROW_REFUSED)
			continue;
		if (probe->state == ROW_LEFT_OUT) {
			attached__skip(&image->base, functions__row(probe->function.row)->symbol,
				       probe->left_out ? probe->left_out : "");
			continue;
		}
		public->functions++;
		public->shifted += probe->function.shifted;
		public->at_entry += !probe->function.shifted;
		public->stepped += probe->function.stepped;
	}
	for (size_t i = 0; i < image->unseen->skip_count; i++)
		attached__skip(&image->base, image->unseen->skips[i].function, image->unseen->skips[i].reason);
}

static int compare_sites(const void *a, const void *b)
{
	const struct row_site *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/*
 * Functions that end in the same waiting function share its exits: each offset is gathered once. entries: only the
 * first site of each function, its entry.
 */
static size_t gather(struct row_probe *const *probes, size_t count, bool entries, struct row_site **out)
{
	size_t total = 0, once = 0;
	struct row_site *sites;

	for (size_t i = 0; i < count; i++)
		total += probes[i]->function.site_count;
	sites = calloc(total + 1, sizeof(*sites));
	*out = sites;
	if (!sites)
		return 0;
	total = 0;
	for (size_t i = 0; i < count; i++) {
		const struct row_function *function = &probes[i]->function;
		size_t own = entries && function->site_count ? 1 : function->site_count;

		memcpy(sites + total, function->sites, own * sizeof(*sites));
		total += own;
	}
	qsort(sites, total, sizeof(*sites), compare_sites);
	for (size_t i = 0; i < total; i++)
		if (!once || sites[once - 1].offset != sites[i].offset)
			sites[once++] = sites[i];
	return once;
}

static bool has_site(const struct row_function *function, uint64_t offset)
{
	for (size_t i = 0; i < function->site_count; i++)
		if (function->sites[i].offset == offset)
			return true;
	return false;
}

/* Marks functions with a site that the kernel refuses; returns how many. */
static size_t find_refused(struct row_probe *const *probes, size_t count, const struct row_site *sites,
			   size_t site_count, const bool *site_refused, bool *refused)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		refused[i] = false;
		for (size_t j = 0; j < site_count && !refused[i]; j++)
			refused[i] = site_refused[j] && has_site(&probes[i]->function, sites[j].offset);
		found += refused[i];
	}
	return found;
}

int row_attacher__link(struct row_attacher *attacher, const struct row_image *image, struct row_probe *const *probes,
		       size_t count, enum row_sites_wanted wanted, pid_t pid, bool *refused, struct kernel_link **link)
{
	struct row_site *sites;
	size_t site_count = gather(probes, count, wanted == ROW_LOOK_ENTRIES, &sites);
	bool *site_refused = calloc(site_count + 1, sizeof(*site_refused));
	int status = -ENOMEM;

	*link = NULL;
	if (!sites || !site_refused)
		goto out;
	for (size_t i = 0; i < site_count && wanted != ROW_SITES; i++)
		sites[i].cookie |= KERNEL_SITE_LOOK;
	status = attached__link_sites(&attacher->base, &image->base, sites, site_count, pid, true, site_refused, link);
	if (refused && (!status || status == -EOPNOTSUPP) &&
	    find_refused(probes, count, sites, site_count, site_refused, refused) && *link) {
		/* a function is seen entirely or not at all */
		kernel_side__unlink(attacher->base.side, *link);
		*link = NULL;
		status = -EOPNOTSUPP;
	}
out:
	free(sites);
	free(site_refused);
	return status;
}

bool row_attacher__is_closing(struct row_attacher *attacher)
{
	return async_detach__busy(attacher->base.detacher, 0);
}

/* Prevents an edge begun before from being joined with later calls. */
static void forget_edges(struct row_attacher *attacher)
{
	__atomic_fetch_add(kernel_side__shared(attacher->base.side)->rows_generation, 1, __ATOMIC_RELEASE);
}

/* Gathers the open functions of a set. Returns how many. */
static size_t members_of(const struct row_image *image, int64_t set, struct row_probe **members)
{
	size_t count = 0;

	for (size_t i = 0; i < image->probe_count; i++)
		if (image->probes[i]->state == ROW_OPEN && image->probes[i]->set == set)
			members[count++] = image->probes[i];
	return count;
}

/* Links the functions of a set for a process (0: for all); those that the kernel refuses leave it. 0 or -errno. */
static int link_set(struct row_attacher *attacher, struct row_image *image, int64_t set, pid_t pid)
{
	struct row_probe **members = calloc(image->probe_count + 1, sizeof(*members));
	bool *refused = calloc(image->probe_count + 1, sizeof(*refused));
	struct attached_link link = {.pid = pid, .set = set};
	int status = members && refused ? 0 : -ENOMEM;
	size_t count;

	while (!status && !attached__find_link(&image->base, set, pid) && (count = members_of(image, set, members))) {
		bool any = false;

		status = row_attacher__link(attacher, image, members, count, ROW_SITES, pid, refused, &link.open);
		if (!status)
			status = attached__add_link(&attacher->base, &image->base, &link);
		if (status != -EOPNOTSUPP)
			continue;
		for (size_t i = 0; i < count; i++) {
			if (!refused[i])
				continue;
			any = true;
			members[i]->state = ROW_REFUSED;
			row_sites__skip(image->unseen, members[i]->function.name, members[i]->function.entry,
					"the kernel refuses to probe one of its instructions");
		}
		status = any ? 0 : status;
	}
	free(members);
	free(refused);
	return status;
}

/* The process for which a mapper's links are; 0: all. */
static pid_t linked_for(const struct row_image *image, size_t mapper)
{
	return image->base.alone[mapper] ? image->base.pids[mapper] : 0;
}

int row_image__link_mapper(struct row_attacher *attacher, struct row_image *image, size_t mapper)
{
	pid_t pid = linked_for(image, mapper);
	int status = 0;

	for (size_t i = 0; i < image->probe_count && !status && !attacher->base.paused; i++)
		if (image->probes[i]->state == ROW_OPEN)
			status = link_set(attacher, image, image->probes[i]->set, pid);
	return status;
}

/* What functions that share links have in common; a family has the group of its first function. */
struct kind {
	enum row_group group;
	unsigned int class;
};

static struct kind kind_of(const struct row_image *image, const struct row_probe *probe)
{
	struct kind kind = {.group = probe->group};
	double calls_per_s = probe->family ? 0 : probe->calls_per_s;

	for (size_t i = image->probe_count; probe->family && i--;)
		if (row_probe__same_family(image->probes[i], probe)) {
			kind.group = image->probes[i]->group;
			calls_per_s += image->probes[i]->calls_per_s;
		}
	kind.class = row_plan__class(calls_per_s);
	return kind;
}

/*
 * Opens the functions of a group and a class that fit as one set, or one family alone where links are per site. 0:
 * none.
 */
static int64_t make_set(struct row_attacher *attacher, struct row_image *image)
{
	bool alone = kernel_side__frugal(attacher->base.side);
	const struct row_probe *first = NULL;
	struct kind wanted = {0}, kind;

	for (size_t i = 0; i < image->probe_count; i++) {
		struct row_probe *probe = image->probes[i];

		if (probe->state != ROW_FITTING)
			continue;
		kind = kind_of(image, probe);
		if (first && !row_probe__same_family(first, probe) &&
		    (alone || wanted.group != kind.group || wanted.class != kind.class))
			continue;
		if (!first) {
			first = probe;
			wanted = kind;
			image->sets++;
		}
		probe->state = ROW_OPEN;
		probe->set = image->sets;
	}
	return first ? image->sets : 0;
}

static int open_set(struct row_attacher *attacher, struct row_image *image, int64_t set)
{
	bool any = false;
	int status = 0;

	for (size_t i = 0; i < image->base.mapper_count && !status; i++)
		status = link_set(attacher, image, set, linked_for(image, i));
	for (size_t i = 0; i < image->probe_count; i++) {
		struct row_probe *probe = image->probes[i];

		if (probe->state != ROW_OPEN || probe->set != set)
			continue;
		any = true;
		if (status) {
			probe->state = ROW_REFUSED;
			row_sites__skip(image->unseen, probe->function.name, probe->function.entry, strerror(-status));
		}
		row_attacher__measure(attacher, probe);
		row_costs__mark(probe);
		row_backoff__opened(&probe->backoff);
		row_attacher__describe_row(attacher, image, probe);
	}
	if (status || !any)
		attached__drop_set(&attacher->base, &image->base, set);
	return status;
}

int row_image__open(struct row_attacher *attacher, struct row_image *image)
{
	bool any = false;
	int first = 0;
	int64_t set;

	while ((set = make_set(attacher, image))) {
		int status = open_set(attacher, image, set);

		if (!first)
			first = status;
		any = true;
	}
	if (any) {
		image->opened_ns = image->mark_ns = mono_now();
		row_attacher__describe_outlined(attacher);
		forget_edges(attacher);
	}
	row_image__describe(image);
	return first;
}

/* Closes a set in the background; its functions but one fit and are to be opened again. */
static void close_set(struct row_attacher *attacher, struct row_image *image, int64_t set,
		      const struct row_probe *left_out)
{
	/* the kernel side first ignores all hits of the set: while links close, the others see only a part */
	for (size_t i = 0; i < image->probe_count; i++) {
		struct row_probe *member = image->probes[i];

		if (member->state != ROW_OPEN || member->set != set)
			continue;
		member->state = member == left_out ? ROW_LEFT_OUT : ROW_FITTING;
		row_attacher__describe_row(attacher, image, member);
	}
	row_attacher__describe_outlined(attacher);
	forget_edges(attacher);
	attached__drop_set(&attacher->base, &image->base, set);
	row_image__describe(image);
}

void row_image__close(struct row_attacher *attacher, struct row_image *image, struct row_probe *probe)
{
	close_set(attacher, image, probe->set, probe);
}

void row_image__reunite(struct row_attacher *attacher, struct row_image *image)
{
	for (size_t i = 0; i < image->probe_count; i++)
		for (size_t j = 0; image->probes[i]->state == ROW_FITTING && j < image->probe_count; j++)
			if (image->probes[j]->state == ROW_OPEN &&
			    row_probe__same_family(image->probes[i], image->probes[j]))
				close_set(attacher, image, image->probes[j]->set, NULL);
}
