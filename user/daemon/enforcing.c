// SPDX-License-Identifier: GPL-2.0-or-later
/* What the overhead enforcer (overhead/enforcer.h) does to the probes of the tracked processes. */
#include <bpf/libbpf.h>

#include "base/base_name.h"
#include "base/clock.h"
#include "collect/map_walk.h"
#include "daemon/tracker_private.h"

static void warn(void *ctx, const char *code, pid_t pid, const char *text)
{
	tracker__warn(ctx, code, pid, "%s", text);
}

static void close_image(void *ctx, const struct attached_image *image, double keep, struct enforcer_closed *out)
{
	const struct tracker *tracker = ctx;
	struct attacher_closed closed;

	attacher__close(tracker->parts.attacher, image, keep, costs__stepped_ratio(tracker->parts.costs), &closed);
	*out = (struct enforcer_closed){closed.name, closed.functions, closed.of, closed.parted};
}

static int open_remaining(void *ctx, const struct attached_image *image)
{
	const struct tracker *tracker = ctx;

	return attacher__open_remaining(tracker->parts.attacher, image);
}

static int open_image(void *ctx, const struct attached_image *image)
{
	const struct tracker *tracker = ctx;

	return attacher__open(tracker->parts.attacher, image);
}

static bool end_learning(void *ctx, const struct attached_image *image)
{
	const struct tracker *tracker = ctx;

	return attacher__end_learning(tracker->parts.attacher, image, costs__stepped_ratio(tracker->parts.costs));
}

static bool detaching(void *ctx)
{
	const struct tracker *tracker = ctx;

	return attacher__detaching(tracker->parts.attacher);
}

static bool still_hit(void *ctx)
{
	const struct tracker *tracker = ctx;

	return attacher__still_hit(tracker->parts.attacher);
}

static void costly(void *ctx, const struct attached_image *image, struct functions_spared *spared)
{
	const struct tracker *tracker = ctx;

	attacher__costly(tracker->parts.attacher, image, spared);
}

struct forgetting {
	const struct tracker *tracker;
	const struct attached_image *image;
};

/* Persistent requests outlive their completions and are still there when posts are probed again. */
static bool is_forgotten(void *ctx, const void *key, const void *value)
{
	const struct forgetting *forgetting = ctx;
	uint32_t tgid = ((const struct kernel_request_key *)key)->tgid;
	const struct kernel_request *request = value;
	const struct tracker *tracker = forgetting->tracker;

	if (request->flags & KERNEL_REQUEST_PERSISTENT)
		return false;
	for (size_t i = 0; i < tracker->count; i++)
		if ((uint32_t)tracker->tracked[i].pid == tgid && tracker->tracked[i].image == forgetting->image)
			return true;
	return false;
}

static int leave_out(void *ctx, const struct attached_image *image, uint32_t units, bool *parted)
{
	const struct tracker *tracker = ctx;
	int status = attacher__leave_out(tracker->parts.attacher, image, units, parted);

	map_walk__delete(kernel_side__map(tracker->parts.side, KERNEL_MAP_REQUESTS), is_forgotten,
			 &(struct forgetting){tracker, image});
	return status;
}

static void unit_shares(void *ctx, const struct attached_image *image, double shares[FUNCTIONS_UNITS])
{
	const struct tracker *tracker = ctx;

	attacher__unit_shares(tracker->parts.attacher, image, costs__stepped_ratio(tracker->parts.costs), shares);
}

static bool may_be_short(void *ctx, const struct attached_image *image)
{
	const struct tracker *tracker = ctx;

	return attacher__may_be_short(tracker->parts.attacher, image);
}

static void begin_count(void *ctx, const struct attached_image *image)
{
	const struct tracker *tracker = ctx;

	attacher__begin_count(tracker->parts.attacher, image);
}

static uint32_t others(void *ctx, const struct attached_image *image)
{
	(void)ctx;
	return image->filtered ? image->filtered - 1 : 0;
}

static bool share(void *ctx, const struct attached_image *image)
{
	return tracker__share(ctx, image, mono_now());
}

static bool govern_rows(void *ctx, uint64_t hits, uint64_t now_ns)
{
	const struct tracker *tracker = ctx;

	return row_attacher__govern(tracker->parts.rows, hits, now_ns, tracker__rows_decided, ctx);
}

static bool close_costliest_rows(void *ctx, pid_t pid, double speed, double calls, double debt_ns, uint64_t now_ns)
{
	const struct tracker *tracker = ctx;

	return row_attacher__close_costliest(tracker->parts.rows, pid, speed, calls, debt_ns, now_ns,
					     tracker__rows_decided, ctx);
}

static void limit_rows(void *ctx, pid_t pid, double share, uint64_t now_ns)
{
	const struct tracker *tracker = ctx;

	row_attacher__limit(tracker->parts.rows, pid, share, now_ns);
}

static void rest_rows(void *ctx, const pid_t *pids, size_t count, uint64_t until_ns)
{
	const struct tracker *tracker = ctx;

	row_attacher__rest(tracker->parts.rows, pids, count, until_ns);
}

struct enforcer *tracker__new_enforcer(struct tracker *tracker)
{
	static const struct enforcer_ops ops = {.now = mono_now,
						.own_cpu = cpu_of_all,
						.warn = warn,
						.close_image = close_image,
						.open_remaining = open_remaining,
						.open_image = open_image,
						.end_learning = end_learning,
						.detaching = detaching,
						.still_hit = still_hit,
						.costly = costly,
						.leave_out = leave_out,
						.unit_shares = unit_shares,
						.begin_count = begin_count,
						.may_be_short = may_be_short,
						.others = others,
						.share = share,
						.govern_rows = govern_rows,
						.close_costliest_rows = close_costliest_rows,
						.limit_rows = limit_rows,
						.rest_rows = rest_rows};

	return enforcer__new(&tracker->parts.governor, tracker->parts.costs, &ops, tracker);
}

struct governed *tracker__begin_governing(const struct tracker *tracker, const struct tracked *tracked, uint64_t now_ns)
{
	const struct kernel_shared *shared = kernel_side__shared(tracker->parts.side);

	return enforcer__add(tracker->enforcer,
			     &(struct enforcer_process){
				 .pid = tracked->pid,
				 .owner = tracked->identity.owner,
				 .exe = tracked->identity.name,
				 .spares_returns = kernel_side__spares_returns(tracker->parts.side) &&
						   !(tracked->flags & KERNEL_PROCESS_NO_RETURN),
				 .counters = &shared->counters[tracked->slot],
				 .orders = &shared->governed[tracked->slot],
				 .records = collector__records(tracker->parts.collector, tracked->slot),
			     },
			     now_ns);
}

void tracker__join_image(struct tracker *tracker, const struct tracked *tracked, uint64_t now_ns)
{
	const struct attached_image *image = tracked->image;

	enforcer__join(tracker->enforcer, tracked->governed, image, image ? image->path : NULL,
		       image && tracker__attached_before(tracker, image, now_ns), now_ns);
}

uint64_t tracker__govern(struct tracker *tracker, uint64_t now_ns)
{
	return enforcer__pass(tracker->enforcer, now_ns);
}

bool tracker__follow(struct tracker *tracker, const struct wire_request *request, uint32_t units, uint64_t until_ns,
		     const char *why)
{
	bool maps = false;

	for (size_t i = 0; i < tracker->count; i++) {
		const struct tracked *tracked = &tracker->tracked[i];

		if (tracked->ended_ns || !tracked->image || tracked->identity.uid + 1 != request->user ||
		    strcmp(tracked->identity.job, request->job) != 0 ||
		    strcmp(base_name(tracked->image->path), request->image) != 0)
			continue;
		enforcer__follow(tracked->governed, units, until_ns, why);
		maps = true;
	}
	return maps;
}

bool tracker__is_governed(const struct tracker *tracker)
{
	return enforcer__is_closed(tracker->enforcer);
}
