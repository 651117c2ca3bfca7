// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/tracker_private.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/base_name.h"
#include "base/clock.h"
#include "target/translator.h"

#define KEEP_NS 60000000000ULL /* links of each target stay so long after their reason has gone */
#define PAID_MOST 0.0025       /* share of a CPU that others may pay for links that reach them */
#define SECOND_NS 1000000000ULL

/* Whether a process holds room for links of its own on an image, or would where that is parted. */
static bool holds(const struct tracked *tracked, const struct attached_image *image)
{
	return !tracked->ended_ns && tracked->image == image;
}

static size_t count_of(const struct tracker *tracker, const struct attached_image *image, uid_t uid)
{
	size_t count = 0;

	for (size_t i = 0; i < tracker->count; i++)
		count += holds(&tracker->tracked[i], image) && tracker->tracked[i].identity.owner == uid;
	return count;
}

/* Finds the user who has most of the room. Returns how much. */
static size_t find_greatest(const struct tracker *tracker, const struct attached_image *image, uid_t *uid)
{
	uid_t uids[KERNEL_SLOTS];
	size_t counts[KERNEL_SLOTS], users = 0, most = 0, j;

	for (size_t i = 0; i < tracker->count; i++) {
		const struct tracked *tracked = &tracker->tracked[i];

		if (!holds(tracked, image))
			continue;
		for (j = 0; j < users && uids[j] != tracked->identity.owner; j++)
			;
		if (j == users && users == KERNEL_SLOTS)
			continue;
		uids[j] = tracked->identity.owner;
		counts[j] = j == users ? 1 : counts[j] + 1;
		users += j == users;
		if (counts[j] <= most)
			continue;
		most = counts[j];
		*uid = uids[j];
	}
	return most;
}

void tracker__crowded(struct tracker *tracker, const struct process *process, uint64_t device, uint64_t inode,
		      uint64_t now_ns)
{
	refusals__add(&tracker->bystanders.refused,
		      &(struct refusal){.pid = process->pid,
					.start_time = process->start_time,
					.device = device,
					.inode = inode,
					.spared = tracker__spares_bystanders(tracker, now_ns)});
}

/* Drops the process that calls least of the user who has most of the room, where that is more than so many. */
static bool drop_one(struct tracker *tracker, const struct attached_image *image, size_t more_than, uint64_t now_ns)
{
	struct tracked *least = NULL;
	uid_t uid = 0;

	if (find_greatest(tracker, image, &uid) <= more_than)
		return false;
	for (size_t i = 0; i < tracker->count; i++) {
		struct tracked *tracked = &tracker->tracked[i];

		/* the first second has no rate yet */
		if (holds(tracked, image) && tracked->identity.owner == uid &&
		    (!least || !(tracked->calls_per_s >= least->calls_per_s)))
			least = tracked;
	}
	tracker__crowded(tracker, &least->identity, image->device, image->inode, now_ns);
	tracker__detach(tracker, least, "too many processes have links of their own, for the sake of others", now_ns);
	return true;
}

/* Has no more targets of linked images than may have links of their own. */
static void make_few(struct tracker *tracker, uint64_t now_ns)
{
	for (size_t i = 0; i < tracker->count; i++) {
		const struct attached_image *image = tracker->tracked[i].ended_ns ? NULL : tracker->tracked[i].image;
		size_t count = 0;

		if (!image || !image->linked)
			continue;
		for (size_t j = 0; j < tracker->count; j++)
			count += holds(&tracker->tracked[j], image);
		while (count > tracker->bystanders.most && drop_one(tracker, image, 0, now_ns))
			count--;
	}
}

void tracker__make_room(struct tracker *tracker, const struct process_mapping *mapping, uid_t uid, uint64_t now_ns)
{
	const struct attached_image *image = NULL;

	if (attacher__own_links(tracker->parts.attacher, mapping) < tracker->bystanders.most)
		return;
	for (size_t i = 0; i < tracker->count && !image; i++)
		if (!tracker->tracked[i].ended_ns && tracker->tracked[i].image &&
		    tracker->tracked[i].image->inode == mapping->inode &&
		    tracker->tracked[i].image->device == mapping->device)
			image = tracker->tracked[i].image;
	if (image)
		drop_one(tracker, image, count_of(tracker, image, uid) + 1, now_ns);
}

/* Links each target alone; what reaches others goes first, and at once. Returns whether there was such a link. */
static bool part(struct tracker *tracker, uint64_t now_ns)
{
	struct attacher *attacher = tracker->parts.attacher;
	struct row_attacher *rows = tracker->parts.rows;
	int status, rows_status;

	tracker->bystanders.until_ns = now_ns + KEEP_NS;
	if (!attacher__any_linked(attacher) && !row_attacher__any_linked(rows))
		return false;
	attacher__close_shared(attacher);
	row_attacher__close_shared(rows);
	make_few(tracker, now_ns);
	for (size_t i = 0; i < tracker->count && !tracker->parts.no_return; i++)
		if (!tracker->tracked[i].ended_ns && tracker__returns_kill(&tracker->tracked[i].identity))
			tracker__detach(tracker, &tracker->tracked[i],
					"this kernel would kill it at a return probe of links for single processes",
					now_ns);
	status = attacher__part(attacher);
	rows_status = row_attacher__part(rows);
	if (status || rows_status)
		tracker__warn(tracker, "attach_failed", 0, "some links for single processes could not be opened: %s",
			      strerror(-(status ? status : rows_status)));
	for (size_t i = 0; i < tracker->count; i++)
		if (!tracker->tracked[i].ended_ns)
			enforcer__reset_rates(tracker->tracked[i].governed);
	return true;
}

static bool is_known(const struct bystanders *bystanders, pid_t pid)
{
	for (size_t i = 0; i < bystanders->count; i++)
		if (bystanders->translators[i] == pid)
			return true;
	return false;
}

static void add(struct tracker *tracker, pid_t pid, const char *name, const char *path, uint64_t now_ns)
{
	struct bystanders *bystanders = &tracker->bystanders;

	if (is_known(bystanders, pid))
		return;
	if (bystanders->count < BYSTANDERS_TRANSLATORS)
		bystanders->translators[bystanders->count++] = pid;
	else
		bystanders->overflown = true;
	/* where processes are selected it would not have been one of them, as far as is known */
	if (!tracker->selection->ancestor && !tracker->selection->glob_count && !tracker->selection->pid_count)
		snprintf(
		    tracker->refusal, sizeof(tracker->refusal),
		    "process %d (%s) runs under a binary translator (%s), which a probe would kill, and is not watched",
		    pid, base_name(path), name);
	if (part(tracker, now_ns))
		tracker__warn(
		    tracker, "translator", pid,
		    "process %d (%s) is a binary translator (%s) and would be killed by a probe in code that it "
		    "translates: until it ends, probes are set for each tracked process alone, and a call of one "
		    "tracked process costs %.0f ns more for each of the others",
		    pid, base_name(path), name, tracker->parts.costs->beside_ns);
}

void tracker__translated(struct tracker *tracker, pid_t pid, const char *path, uint64_t now_ns)
{
	const char *name = translator__of_path(path);

	if (name)
		add(tracker, pid, name, path, now_ns);
}

void tracker__find_translators(struct tracker *tracker, uint64_t now_ns)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	while (dir && (entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		const char *name = pid > 0 ? process__translator(pid) : NULL;

		if (name)
			add(tracker, pid, name, name, now_ns);
	}
	if (dir)
		closedir(dir);
}

bool tracker__spares_bystanders(const struct tracker *tracker, uint64_t now_ns)
{
	return tracker->bystanders.count || now_ns < tracker->bystanders.until_ns;
}

static void drop_ended(struct tracker *tracker, uint64_t now_ns)
{
	struct bystanders *bystanders = &tracker->bystanders;

	for (size_t i = 0; i < bystanders->count; i++)
		if (kill(bystanders->translators[i], 0) && errno == ESRCH)
			bystanders->translators[i--] = bystanders->translators[--bystanders->count];
		else
			bystanders->until_ns = now_ns + KEEP_NS;
	if (bystanders->count || !bystanders->overflown)
		return;
	bystanders->overflown = false;
	tracker__find_translators(tracker, now_ns);
}

/* How many more processes may have links of their own on the image of a refusal. */
static uint32_t room_for(void *ctx, const struct refusal *refusal)
{
	const struct tracker *tracker = ctx;
	struct process_mapping mapping = {.device = refusal->device, .inode = refusal->inode};
	uint32_t linked = attacher__own_links(tracker->parts.attacher, &mapping);

	return linked < tracker->bystanders.most ? tracker->bystanders.most - linked : 0;
}

static void retry_one(void *ctx, pid_t pid)
{
	tracker__is_candidate(ctx, pid, mono_now());
}

/* Has processes that were refused inspected again where there is room for them now. */
static void retry(struct tracker *tracker, uint64_t now_ns)
{
	struct refusals *refused = &tracker->bystanders.refused;

	for (size_t i = refused->count; i > 0; i--)
		if (kill(refused->of[i - 1].pid, 0) && errno == ESRCH)
			refusals__forget(refused, refused->of[i - 1].pid);
	refusals__retry(refused, tracker__spares_bystanders(tracker, now_ns), room_for, retry_one, tracker);
}

/* Whether another process than targets maps an image that is linked for all; a search of all processes. */
static bool reaches_others(struct tracker *tracker, uint64_t now_ns)
{
	verdicts__outdated(&tracker->verdicts);
	for (size_t i = 0; i < tracker->count; i++) {
		const struct attached_image *image = tracker->tracked[i].ended_ns ? NULL : tracker->tracked[i].image;

		if (image && image->linked &&
		    verdicts__is_shared(
			&tracker->verdicts, tracker->selection,
			&(struct process_mapping){.device = image->device, .inode = image->inode, .path = image->path},
			now_ns))
			return true;
	}
	return false;
}

void tracker__watch_bystanders(struct tracker *tracker, uint64_t now_ns)
{
	struct bystanders *bystanders = &tracker->bystanders;
	uint64_t hits = *kernel_side__shared(tracker->parts.side)->untracked_hits;
	double cost_ns = (double)(hits - bystanders->hits) * tracker->parts.costs->call_ns;
	bool due = now_ns >= bystanders->second_ns + SECOND_NS;

	if (due) {
		drop_ended(tracker, now_ns);
		retry(tracker, now_ns);
	}
	if (due || cost_ns > SECOND_NS * PAID_MOST) {
		bystanders->hits = hits;
		bystanders->second_ns = now_ns;
	}
	if (cost_ns <= SECOND_NS * PAID_MOST || !reaches_others(tracker, now_ns) || !part(tracker, now_ns))
		return;
	tracker__warn(
	    tracker, "bystanders_pay", 0,
	    "probes in libraries that other processes map, too, cost processes that are not tracked %.2g ms of CPU "
	    "time within a second: from now on these probes are set for each tracked process alone",
	    cost_ns * 1e-6);
}

void tracker__bystanders_of_window(struct tracker *tracker, double seconds, double *hits, double *pct)
{
	struct bystanders *bystanders = &tracker->bystanders;
	uint64_t now = *kernel_side__shared(tracker->parts.side)->untracked_hits;

	*hits = (double)(now - bystanders->window_hits);
	*pct = seconds > 0 ? *hits * tracker->parts.costs->call_ns * 1e-9 / seconds * 100 : 0;
	bystanders->window_hits = now;
}
