/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "report/summary.h"
#include "report/summary_parts.h"

#define REGIONS_PRINTED 10
#define GAPS_PRINTED 8
#define INDENT 12

const char *const summary_reason_text[VAPRO_UNCOVERED_REASONS] = {
    [VAPRO_COVERED] = "covered",
    [VAPRO_FEW_FRAGMENTS] = "seen too few times to know its usual speed",
    [VAPRO_SPREAD] = "its durations differ too much to be the same work",
    [VAPRO_RARE] = "rare",
    [VAPRO_GOVERNED] = "probes were closed to keep the overhead down",
    [VAPRO_NO_RETURN] = "no return probes (--no-return)",
    [VAPRO_NOT_SEEN] = "before the first or after the last call",
    [VAPRO_LOST] = "records were lost",
    [VAPRO_NO_WORKLOAD] = "its work was not measured",
    [VAPRO_WARM_UP] = "among the first of its workload on a rank",
    [VAPRO_SHED] = "not stored, for the memory cap",
};

static const char *const loss_text[VAPRO_LOSSES] = {
    [VAPRO_LOST_RING_FULL] = "the ring buffer was full (--ring-bytes)",
    [VAPRO_LOST_MAP_FULL] = "the kernel's map was full (--map-entries)",
    [VAPRO_LOST_NO_STORAGE] = "the kernel had no memory for a thread",
    [VAPRO_LOST_NESTING] = "calls did not nest",
    [VAPRO_LOST_ARGUMENT] = "an argument could not be read",
    [VAPRO_LOST_TRUNCATED] = "more requests than are followed in one call",
    [VAPRO_LOST_GOVERNED] = "probes were closed in the middle of them",
    [VAPRO_LOST_VANISHED] = "calls that never returned (longjmp, exit)",
    [VAPRO_LOST_UNACCOUNTED] = "for a reason unknown",
    [VAPRO_LOST_APPROXIMATED] = "calls have an approximate call-site or size",
    [VAPRO_LOST_UNMATCHED] = "requests were not seen both posted and completed",
    [VAPRO_LOST_COUNTER] = "their instructions were not counted",
    [VAPRO_LOST_STATES] = "a process had more states than its share",
};

static int compare_gaps(const void *a, const void *b)
{
	const struct gap *x = a, *y = b;

	return x->rank_seconds > y->rank_seconds ? -1 : x->rank_seconds < y->rank_seconds;
}

static void print_gaps(const struct job_summary *job, FILE *out, unsigned width)
{
	struct gap *sorted = calloc(job->gap_count + 1, sizeof(*sorted));
	char text[1024], head[32];

	if (!sorted)
		return;
	if (job->gap_count)
		memcpy(sorted, job->gaps, job->gap_count * sizeof(*sorted));
	qsort(sorted, job->gap_count, sizeof(*sorted), compare_gaps);
	if (job->gap_count)
		fprintf(out, "  not judged, share of the ranks' time:\n");
	for (size_t i = 0; i < job->gap_count && i < GAPS_PRINTED; i++) {
		snprintf(head, sizeof(head), "    %5.1f %%", 100 * sorted[i].rank_seconds / job->rank_seconds);
		snprintf(text, sizeof(text), "%s: %s", sorted[i].state, summary_reason_text[sorted[i].reason]);
		regions__wrap(out, head, text, INDENT, width);
	}
	if (job->gap_count > GAPS_PRINTED)
		fprintf(out, "            and %zu more\n", job->gap_count - GAPS_PRINTED);
	free(sorted);
}

static void print_losses(const struct job_summary *job, FILE *out)
{
	for (int i = 0; i < VAPRO_LOSSES; i++) {
		if (job->lost[i] && (i == VAPRO_LOST_APPROXIMATED || i == VAPRO_LOST_UNMATCHED))
			fprintf(out, "    %llu %s\n", (unsigned long long)job->lost[i], loss_text[i]);
		else if (job->lost[i])
			fprintf(out, "!!! %llu fragments lost: %s\n", (unsigned long long)job->lost[i], loss_text[i]);
	}
}

static void print_job(const struct job_summary *job, FILE *out, unsigned width)
{
	char lasted[40];

	duration__text((double)(job->end_ns - job->begin_ns) / 1e9, lasted, sizeof(lasted));
	fprintf(out, "job %s: %u rank%s watched for %s, %llu fragments\n", *job->name ? job->name : "(no name)",
		job->ranks, job->ranks == 1 ? "" : "s", lasted, (unsigned long long)job->fragments);
	if (job->partial)
		fprintf(out, "!!! only %u of %u ranks were seen: others may be slower or be waited for\n", job->ranks,
			job->world_size);
	if (!(job->rank_seconds > 0))
		return;
	fprintf(out, "  judged      %.1f %% of the ranks' time", 100 * job->covered_total / job->rank_seconds);
	for (int i = 0; i < VAPRO_CLASSES; i++) {
		if (job->performed_weight[i] > 0)
			fprintf(out, "%s%s %.1f %%", i ? ", " : ": ", vapro_class_name[i],
				100 * job->covered[i] / job->rank_seconds);
	}
	fprintf(out, "\n  speed       ");
	/* the speed of a hardly judged class would mislead: waiting shows as effects */
	for (int i = 0, printed = 0; i < VAPRO_CLASSES; i++) {
		if (job->performed_weight[i] > 0 && job->covered[i] >= 0.01 * job->rank_seconds)
			fprintf(out, "%s%s %.1f %%", printed++ ? ", " : "", vapro_class_name[i],
				100 * job->performed[i] / job->performed_weight[i]);
	}
	fprintf(out, " of what it has shown it can\n");
	fprintf(out, "  overhead    %.2f %% of the job's time, worst process %.2f %%\n",
		job->overhead / job->rank_seconds, job->overhead_max);
	if (job->small_count)
		fprintf(out, "  small       %llu slow region%s of too little weight to be listed, %s lost\n",
			(unsigned long long)job->small_count, job->small_count == 1 ? "" : "s",
			duration__text(job->small_seconds, lasted, sizeof(lasted)));
	print_gaps(job, out, width);
	print_losses(job, out);
}

/* Sums lost seconds, without effects, which only waited. */
static double lost_seconds(const struct regions *regions, bool sure, size_t *count)
{
	double seconds = 0;

	*count = 0;
	for (size_t i = 0; i < regions->count; i++) {
		if (region__sure(&regions->items[i]) != sure || regions->items[i].effect_of)
			continue;
		seconds += regions->items[i].lost_seconds;
		(*count)++;
	}
	return seconds;
}

static void print_verdict(struct summary *summary, FILE *out, unsigned width)
{
	uint64_t start_ns = UINT64_MAX;
	double all = 0, sure, unsure;
	size_t sure_count, unsure_count;
	char lost[40];

	for (size_t i = 0; i < summary->job_count; i++) {
		if (summary->jobs[i].begin_ns < start_ns)
			start_ns = summary->jobs[i].begin_ns;
		all += summary->jobs[i].rank_seconds;
	}
	sure = lost_seconds(&summary->regions, true, &sure_count);
	unsure = lost_seconds(&summary->regions, false, &unsure_count);
	if (!summary->job_count) {
		fprintf(out, "nothing was watched\n");
		return;
	}
	if (!sure_count)
		fprintf(out, "no variance found%s\n", unsure_count ? " that the evidence confirms" : "");
	else
		fprintf(out, "%zu slow region%s: %s lost in all, %.2f %% of the ranks' time\n", sure_count,
			sure_count == 1 ? "" : "s", duration__text(sure, lost, sizeof(lost)),
			all > 0 ? 100 * sure / all : 0);
	if (unsure_count)
		fprintf(out, "%zu more unconfirmed: %s, perhaps slow, perhaps other work\n", unsure_count,
			duration__text(unsure, lost, sizeof(lost)));
	regions__print(&summary->regions, out, start_ns, width, REGIONS_PRINTED);
}

void summary__print(struct summary *summary, FILE *out, unsigned width)
{
	if (!width)
		width = 80;
	if (width < 40)
		width = 40;
	print_verdict(summary, out, width);
	for (size_t i = 0; i < summary->chosen_count; i++)
		regions__wrap(out, i ? "" : "\nchosen", summary->chosen[i], INDENT, width);
	asides__print(&summary->asides, out, width);
	for (size_t i = 0; i < summary->job_count; i++) {
		putc('\n', out);
		print_job(&summary->jobs[i], out, width);
	}
	if (summary->cpu_seconds > 0)
		fprintf(out, "vapro itself used %.2f %% of one CPU\n", summary->cpu_pct_seconds / summary->cpu_seconds);
	for (size_t i = 0; i < summary->trouble_count; i++)
		fprintf(out, "!!! %s\n", summary->troubles[i]);
}
