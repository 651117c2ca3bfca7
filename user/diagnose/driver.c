/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/driver.h"

#include "base/grow.h"

static bool major_on_cpu(const struct breakdown *breakdown)
{
	bool major = false;

	for (int node = 0; node <= NODE_BACKEND; node++)
		major |= breakdown->node[node].major;
	return major;
}

static bool wants(const struct diagnosis_of *item, enum counter_group group, unsigned counted, double least)
{
	/* Without counters no group can be wanted. */
	if (!(counted & 1U << COUNTER_TOP) || item->tried & 1U << group ||
	    diagnoses__sum_of(item)->counted[group] >= least)
		return false;
	if (group == COUNTER_TOP)
		return major_on_cpu(&item->breakdown);
	return diagnoses__sum_of(item)->counted[COUNTER_TOP] > 0 &&
	       item->breakdown.node[counter_group_infos[group].parent].major;
}

/* Interrupts lie in the time on the CPU, or in the kernel's, where they are not separated. */
static bool wants_interrupts(const struct breakdown *breakdown)
{
	return major_on_cpu(breakdown) || breakdown->node[NODE_KERNEL].major || breakdown->node[NODE_IRQ].major;
}

int driver__see(struct driver *driver, uint32_t job, struct diagnosis_of *item, unsigned counted, double least)
{
	item->wished = 0;
	driver->interrupted |= wants_interrupts(&item->breakdown);
	for (int group = 0; group < COUNTER_GROUPS; group++) {
		struct driver_wish *wish = NULL;

		if (driver->refused & 1U << group || !wants(item, (enum counter_group)group, counted, least))
			continue;
		item->wished |= 1U << group;
		if (group == COUNTER_TOP)
			continue; /* the group that is on without any wish */
		for (size_t i = 0; i < driver->count && !wish; i++) {
			if (driver->queue[i].job == job && driver->queue[i].variance == item->id &&
			    (int)driver->queue[i].group == group)
				wish = &driver->queue[i];
		}
		if (!wish) {
			if (driver->count >= DRIVER_QUEUE)
				continue;
			if (grow(&driver->queue, &driver->capacity, driver->count + 1, sizeof(*driver->queue)))
				return -ENOMEM;
			wish = &driver->queue[driver->count++];
			*wish = (struct driver_wish){job, item->id, (enum counter_group)group, false};
		}
		wish->seen = true;
	}
	return 0;
}

bool driver__switch(struct driver *driver, struct driver_wish *vain)
{
	bool over = driver->count && driver->queue[0].seen && driver->windows >= DRIVER_PATIENCE;
	bool first = true;
	size_t live = 0;

	driver->interrupts = driver->interrupted;
	driver->interrupted = false;
	if (over) {
		*vain = driver->queue[0];
		driver->queue[0].seen = false;
	}
	for (size_t i = 0; i < driver->count; i++) {
		struct driver_wish wish = driver->queue[i];

		if (wish.seen) {
			wish.seen = false;
			driver->queue[live++] = wish;
		} else if (!i) {
			first = false;
		}
	}
	driver->count = live;
	driver->windows = !live ? 0 : first ? driver->windows + 1 : 1;
	return over;
}

void driver__refuse(struct driver *driver, enum counter_group group)
{
	bool first = driver->count && driver->queue[0].group == group;
	size_t live = 0;

	driver->refused |= 1U << group;
	for (size_t i = 0; i < driver->count; i++) {
		if (driver->queue[i].group != group)
			driver->queue[live++] = driver->queue[i];
	}
	driver->count = live;
	if (first)
		driver->windows = live > 0;
}

const struct driver_wish *driver__current(const struct driver *driver)
{
	return driver->count ? driver->queue : NULL;
}

int driver__stage(const struct diagnosis_of *item, bool *final)
{
	int stage = 2; /* all of suspension is known in time anyway */

	*final = !item->wished;
	for (int node = 0; node < FACTOR_NODES && *final; node++) {
		if (item->breakdown.node[node].present && factor_infos[node].stage > stage)
			stage = factor_infos[node].stage;
	}
	for (int group = COUNTER_GROUPS - 1; group >= 0; group--) {
		if (item->wished & 1U << group)
			stage = counter_group_infos[group].stage > 1 ? counter_group_infos[group].stage - 1 : 1;
	}
	return stage;
}

void driver__free(struct driver *driver)
{
	free(driver->queue);
	*driver = (struct driver){0};
}

static const struct archive_column driver_columns[] = {
    ARCHIVE_ONE(struct driver, windows),
    ARCHIVE_ONE(struct driver, refused),
    ARCHIVE_ONE(struct driver, interrupts),
    ARCHIVE_ONE(struct driver, interrupted),
};
static const struct archive_table driver_table = ARCHIVE_TABLE("stages", struct driver, driver_columns);

static const struct archive_column wish_columns[] = {
    ARCHIVE_ONE(struct driver_wish, job),
    ARCHIVE_ONE(struct driver_wish, variance),
    ARCHIVE_ONE(struct driver_wish, group),
    ARCHIVE_ONE(struct driver_wish, seen),
};
static const struct archive_table wish_table = ARCHIVE_TABLE("wishes", struct driver_wish, wish_columns);

void driver__archive(struct archive *archive, struct driver *driver, size_t jobs)
{
	archive__record(archive, &driver_table, driver);
	archive__rows(archive, &wish_table, &driver->queue, &driver->count, &driver->capacity);
	for (size_t i = 0; archive__reads(archive) && i < driver->count; i++)
		archive__check(archive, driver->queue[i].job < jobs && driver->queue[i].group < COUNTER_GROUPS,
			       "a stage is of no job");
}
