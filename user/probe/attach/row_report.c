// SPDX-License-Identifier: GPL-2.0-or-later
/* What people read of decisions on functions: see row_image.h. */
#include <stdio.h>
#include <stdlib.h>

#include "probe/attach/row_costs.h"
#include "probe/attach/row_image.h"
#include "probe/attach/row_report.h"

#define NAMED_MAX 6	     /* functions named in one decision */
#define CALLED_LEAST 0.5     /* calls/s: with fewer, a function is not called */
#define OWN_REASON_LEAST 0.1 /* of its family's cost: a cheaper function is left out because of another */

static bool is_called(const struct row_probe *probe)
{
	return probe->calls_per_s >= CALLED_LEAST;
}

static const char *symbol_of(const struct row_probe *probe)
{
	return functions__row(probe->function.row)->symbol;
}

/* Whether a function of a decision costs something because one that is called, of the same decision, ends like it. */
static bool family_is_called(const struct row_picked *picked, const struct row_probe *probe)
{
	for (size_t i = 0; i < picked->count; i++)
		if (is_called(picked->probes[i]) && row_probe__same_family(picked->probes[i], probe))
			return true;
	return false;
}

/* Names functions that are called, or those that are not; at most NAMED_MAX. Returns how many. */
static size_t name_some(const struct row_picked *picked, bool called, char *text, size_t size, size_t *used)
{
	size_t named = 0;

	for (size_t i = 0; i < picked->count && named < NAMED_MAX && *used < size; i++) {
		const struct row_probe *probe = picked->probes[i];
		const char *before = named ? ", " : "";

		if (is_called(probe) != called)
			continue;
		named++;
		if (called)
			*used += (size_t)snprintf(text + *used, size - *used, "%s%s (%.0f calls/s, %.3g %%)", before,
						  symbol_of(probe), probe->calls_per_s, probe->share * 100);
		else
			*used += (size_t)snprintf(text + *used, size - *used,
						  "%s%s (not called, hits at its exits: %.3g %%)", before,
						  symbol_of(probe), probe->share * 100);
	}
	return named;
}

void row_report__name(const struct row_picked *picked, char *text, size_t size)
{
	size_t used = 0, called = 0, sharing = 0, named, more;

	text[0] = '\0';
	for (size_t i = 0; i < picked->count; i++) {
		called += is_called(picked->probes[i]);
		sharing += !is_called(picked->probes[i]) && family_is_called(picked, picked->probes[i]);
	}
	named = name_some(picked, called, text, size, &used);
	more = picked->count - named - sharing;
	if (more && used < size)
		used += (size_t)snprintf(text + used, size - used, "%s %zu more", sharing ? "," : " and", more);
	if (sharing && used < size)
		snprintf(text + used, size - used, " and %zu that share%s %s exits", sharing, sharing == 1 ? "s" : "",
			 called == 1 ? "its" : "their");
}

/* The function with most calls among those that share exits with another, by way of others where none does directly. */
static const struct row_probe *busiest_of_family(const struct row_image *image, const struct row_probe *probe)
{
	const struct row_probe *busiest = NULL;
	bool direct = false;

	for (size_t i = 0; i < image->probe_count; i++) {
		const struct row_probe *other = image->probes[i];
		bool shares;

		if (other == probe || !is_called(other) || !row_probe__same_family(other, probe))
			continue;
		shares = row_costs__share_exit(&other->function, &probe->function);
		if (busiest && (direct > shares || (direct == shares && other->calls_per_s <= busiest->calls_per_s)))
			continue;
		busiest = other;
		direct = shares;
	}
	return busiest;
}

char *row_report__reason(const struct row_image *image, const struct row_probe *probe)
{
	const char *open = probe->in_duty_cycle ? " to stay open" : "";
	const struct row_probe *busiest = busiest_of_family(image, probe);
	char *text = NULL;
	int size;

	if (busiest && (!is_called(probe) || probe->share < probe->family_share * OWN_REASON_LEAST))
		size = asprintf(&text, "shares exits with %s, which is too expensive%s", symbol_of(busiest), open);
	else if (is_called(probe))
		size = asprintf(&text, "too expensive%s: %.0f calls/s would cost %.3g %% of its process's time", open,
				probe->calls_per_s, probe->share * 100);
	else
		size = asprintf(&text,
				"too expensive%s: it is not called, but hits at its exits would cost %.3g %% of its "
				"process's time",
				open, probe->share * 100);
	return size < 0 ? NULL : text;
}

void row_report__decision(const struct row_image *image, enum row_decision_kind kind, const struct row_picked *picked,
			  uint64_t now_ns, row_decided *decided, void *ctx)
{
	struct row_decision decision = {.kind = kind,
					.image = image->base.path,
					.count = picked->count,
					.reported = true,
					.pids = image->base.pids,
					.pid_count = image->base.mapper_count};
	char functions[768];

	if (!picked->count)
		return;
	for (size_t i = 0; i < picked->count; i++) {
		struct row_probe *probe = picked->probes[i];
		double left_s = ((double)probe->backoff.until_ns - (double)now_ns) * 1e-9;

		decision.calls_per_s += probe->calls_per_s;
		decision.cost_pct += probe->own_share * 100;
		decision.reported &= probe->reported;
		decision.in_duty_cycle |= probe->in_duty_cycle;
		probe->reported = true;
		if (kind == ROWS_LEFT_OUT && (!i || left_s < decision.left_out_s))
			decision.left_out_s = left_s;
	}
	row_report__name(picked, functions, sizeof(functions));
	decision.functions = functions;
	decided(ctx, &decision);
}
