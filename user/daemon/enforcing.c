// SPDX-License-Identifier: GPL-2.0-or-later
/* What the overhead enforcer (overhead/enforce.h) does to the probes of the tracked processes. */
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "collect/requests.h"
#include "daemon/tracker_private.h"

static void warn(void *ctx, const char *code, pid_t pid, const char *text)
{
	watch__warn(ctx, code, pid, "%s", text);
}

static int close_image(void *ctx, const struct attached_image *image, double keep, struct enforcer_closed *out)
{
	const struct watch *watch = ctx;
	struct attacher_closed closed;
	int status =
	    attacher__close(watch->parts.attacher, image, keep, costs__stepped_ratio(watch->parts.costs), &closed);

	*out = (struct enforcer_closed){closed.name, closed.functions, closed.of, closed.parted};
	return status;
}

static int open_image(void *ctx, const struct attached_image *image)
{
	const struct watch *watch = ctx;

	return attacher__open(watch->parts.attacher, image);
}

struct forgetting {
	const struct watch *watch;
	const struct attached_image *image;
};

/* Persistent requests outlive their completions and are still there when posts are probed again. */
static bool is_forgotten(void *ctx, uint32_t tgid, const struct kernel_request *request)
{
	const struct forgetting *forgetting = ctx;
	const struct watch *watch = forgetting->watch;

	if (request->flags & KERNEL_REQUEST_PERSISTENT)
		return false;
	for (size_t i = 0; i < watch->count; i++)
		if ((uint32_t)watch->watched[i].pid == tgid && watch->watched[i].image == forgetting->image)
			return true;
	return false;
}

static int leave_out(void *ctx, const struct attached_image *image, uint32_t units)
{
	const struct watch *watch = ctx;
	int status = attacher__leave_out(watch->parts.attacher, image, units);

	requests__age(kernel_side__map(watch->parts.side, KERNEL_MAP_REQUESTS), is_forgotten,
		      &(struct forgetting){watch, image});
	return status;
}

static void unit_shares(void *ctx, const struct attached_image *image, double shares[FUNCTIONS_UNITS])
{
	const struct watch *watch = ctx;

	attacher__unit_shares(watch->parts.attacher, image, costs__stepped_ratio(watch->parts.costs), shares);
}

static void begin_count(void *ctx, const struct attached_image *image)
{
	const struct watch *watch = ctx;

	attacher__begin_count(watch->parts.attacher, image);
}

static bool govern_rows(void *ctx, uint64_t hits, uint64_t now_ns)
{
	const struct watch *watch = ctx;

	return row_attacher__govern(watch->parts.rows, hits, now_ns, watch__rows_decided, ctx);
}

static bool close_costliest_rows(void *ctx, pid_t pid, double speed, double debt_ns, uint64_t now_ns)
{
	const struct watch *watch = ctx;

	return row_attacher__close_costliest(watch->parts.rows, pid, speed, debt_ns, now_ns, watch__rows_decided, ctx);
}

struct enforcer *watch__new_enforcer(struct watch *watch)
{
	static const struct enforcer_ops ops = {.now = mono_now,
						.warn = warn,
						.close_image = close_image,
						.open_image = open_image,
						.leave_out = leave_out,
						.unit_shares = unit_shares,
						.begin_count = begin_count,
						.govern_rows = govern_rows,
						.close_costliest_rows = close_costliest_rows};

	return enforcer__new(&watch->parts.governor, watch->parts.costs, &ops, watch);
}

struct governed *watch__begin_governing(const struct watch *watch, const struct watched *watched, uint64_t now_ns)
{
	const struct kernel_shared *shared = kernel_side__shared(watch->parts.side);

	return enforcer__add(watch->enforcer,
			     &(struct enforcer_process){
				 .pid = watched->pid,
				 .exe = watched->identity.exe,
				 .spares_returns = kernel_side__spares_returns(watch->parts.side) &&
						   !(watched->flags & KERNEL_PROCESS_NO_RETURN),
				 .counters = &shared->counters[watched->slot],
				 .orders = &shared->governed[watched->slot],
			     },
			     now_ns);
}

void watch__join_image(const struct watch *watch, const struct watched *watched, uint64_t now_ns)
{
	const struct attached_image *image = watched->image;

	enforcer__join(watch->enforcer, watched->governed, image, image ? image->path : NULL, now_ns);
}

bool watch__govern(struct watch *watch, uint64_t now_ns)
{
	return enforcer__pass(watch->enforcer, now_ns);
}

bool watch__is_governed(const struct watch *watch)
{
	return enforcer__is_closed(watch->enforcer);
}
