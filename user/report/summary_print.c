// SPDX-License-Identifier: GPL-2.0-or-later
/* The summary for a person: causes first, then whose job it is, then the regions, then what could not be compared. */
#include <ctype.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_name.h"
#include "base/duration.h"
#include "base/job_names.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/wrap.h"
#include "report/cause_text.h"
#include "report/json.h"
#include "report/summary.h"
#include "report/summary_parts.h"
#include "report/profile_text.h"
#include "report/variability_text.h"

#define NOTHING 0.005 /* share of a job's time below which nothing was compared */
#define LITTLE 0.2    /* share below which that is said beside what was found */
#define SHORT_S 30    /* of a job that was watched for less, much is before the first and after the last call */

const char *const summary_reason_text[VAPRO_UNCOVERED_REASONS] = {
    [VAPRO_COVERED] = "covered",
    [VAPRO_FEW_FRAGMENTS] = "seen too few times to know its usual speed",
    [VAPRO_SPREAD] = "not comparable: durations vary too much (probably different work)",
    [VAPRO_RARE] = "rare",
    [VAPRO_GOVERNED] = "probes were closed to keep the overhead down",
    [VAPRO_NO_RETURN] = "no return probes (--no-return)",
    [VAPRO_NOT_SEEN] = "before the first or after the last observed call",
    [VAPRO_LOST] = "records were lost",
    [VAPRO_NO_WORKLOAD] = "its work was not measured",
    [VAPRO_WARM_UP] = "among the first of its workload on a rank",
    [VAPRO_SHED] = "not stored, for the memory cap",
};

const char *const summary_reason_help[VAPRO_UNCOVERED_REASONS] = {
    [VAPRO_COVERED] = "nothing",
    [VAPRO_FEW_FRAGMENTS] = "a longer run",
    [VAPRO_SPREAD] = "hardware counters, or --workload, which says what the work depends on",
    [VAPRO_RARE] = "a longer run",
    [VAPRO_GOVERNED] =
	"a higher --overhead-budget, up to --overhead-cap, or fewer calls of the functions that warnings name",
    [VAPRO_NO_RETURN] = "a run without --no-return",
    [VAPRO_NOT_SEEN] = "--function NAME, which watches functions of a program that rarely calls MPI",
    [VAPRO_LOST] = "a larger ring-bytes (configuration file)",
    [VAPRO_NO_WORKLOAD] = "a run in which counters are available throughout",
    [VAPRO_WARM_UP] = "a longer run",
    [VAPRO_SHED] = "a higher --memory-cap",
};

static double rank_seconds(const struct summary *summary)
{
	double all = 0;

	for (size_t i = 0; i < summary->job_count; i++)
		all += summary->jobs[i].rank_seconds;
	return all;
}

/* Returns the reason of most of the time that was not compared; VAPRO_COVERED where there is none. */
static int main_reason(const struct job_summary *job, double *seconds)
{
	double by_reason[VAPRO_UNCOVERED_REASONS] = {0};
	int most = VAPRO_COVERED;

	for (size_t i = 0; i < job->gap_count; i++)
		by_reason[job->gaps[i].reason] += job->gaps[i].rank_seconds;
	for (int i = 0; i < VAPRO_UNCOVERED_REASONS; i++) {
		if (by_reason[i] > by_reason[most])
			most = i;
	}
	*seconds = by_reason[most];
	return most;
}

/* Writes why much of a job was not compared, and what would help. */
static void write_reason(const struct job_summary *job, char *text, size_t size)
{
	bool brief = (double)(job->end_ns - job->begin_ns) < SHORT_S * 1e9;
	double seconds;
	int most = main_reason(job, &seconds);

	if (most == VAPRO_COVERED)
		snprintf(text, size, "A longer run may help.");
	else
		snprintf(text, size, "%.0f %% of it: %s. What would help: %s%s.", 100 * seconds / job->rank_seconds,
			 summary_reason_text[most], most == VAPRO_NOT_SEEN && brief ? "a longer run; or " : "",
			 summary_reason_help[most]);
}

/* Writes what kept processes from being seen; job NULL: of any job. Returns whether anything did. */
static bool write_obstacle(const struct summary *summary, const struct job_summary *job, char *text, size_t size)
{
	enum obstacle_kind kind;
	size_t count;
	const char *first =
	    obstacles__first(summary->obstacles, job ? job->said : NULL, job ? job->user : 0, &kind, &count);
	const char *help = first ? obstacles__help(kind) : NULL;
	char more[64] = "";

	if (!first)
		return false;
	if (count > 1)
		snprintf(more, sizeof(more), "; and %zu more process%s", count - 1, count > 2 ? "es" : "");
	snprintf(text, size, "%s%s.%s%s%s", first, more, help ? " What would help: " : "", help ? help : "",
		 help ? "." : "");
	*text = (char)toupper((unsigned char)*text);
	return true;
}

/* Returns a user in words, as this machine knows it; "" where the user is not known. */
static const char *user_name(uint32_t user, char *buf, size_t size)
{
	const struct passwd *entry = user ? getpwuid(user - 1) : NULL;

	*buf = 0;
	if (entry)
		snprintf(buf, size, "user %s", entry->pw_name);
	else if (user)
		snprintf(buf, size, "user %u", user - 1);
	return regions__defuse(buf);
}

char *summary__job_name(const struct summary_title *title, char *buf)
{
	const char *base = title->program ? base_name(title->program) : "";
	const char *called = title->called ? title->called : "";
	char by[80], identity[JOB_IDENTITY_SHORT_SIZE];
	const size_t size = SUMMARY_JOB_NAME;

	user_name(title->user, by, sizeof(by));
	*buf = '\0';
	if (!*base && !*called) {
		text__append(buf, size, "job %s%s%s%s", *title->job ? title->job : "(no name)", *by ? " (" : "", by,
			     *by ? ")" : "");
		return regions__defuse(buf);
	}
	text__append(buf, size, "%s%s", base, title->others ? " and others" : "");
	if (*called)
		text__append(buf, size, "%s\"%s\"", *buf ? " " : "job ", called);
	text__append(buf, size, " (%s%s%s)",
		     !*title->job   ? "no name"
		     : title->whole ? title->job
				    : job_names__short(title->job, identity),
		     *by ? ", " : "", by);
	return regions__defuse(buf);
}

/* Returns whether two jobs of one user have the same short identity. */
static bool alike(const struct job_summary *job, const struct job_summary *other)
{
	char own[JOB_IDENTITY_SHORT_SIZE], its[JOB_IDENTITY_SHORT_SIZE];

	return other != job && other->user == job->user &&
	       !strcmp(job_names__short(job->said, own), job_names__short(other->said, its));
}

char *summary__job_title(const struct summary *summary, const struct job_summary *job, char *buf)
{
	struct summary_title title = {.job = job->said,
				      .called = job->called,
				      .program = job->program,
				      .others = job->programs,
				      .user = job->user};

	for (size_t i = 0; !title.whole && i < summary->job_count; i++)
		title.whole = alike(job, &summary->jobs[i]);
	return summary__job_name(&title, buf);
}

bool summary__no_result(const struct summary *summary, const struct job_summary *job, char *text, size_t size)
{
	char name[SUMMARY_JOB_NAME], why[1600];

	if (!(job->rank_seconds > 0) || job->covered_total >= NOTHING * job->rank_seconds)
		return false;
	if (!write_obstacle(summary, job, why, sizeof(why)))
		write_reason(job, why, sizeof(why));
	snprintf(text, size, "no result: %.1f %% of the time of %s could be compared. %s",
		 100 * job->covered_total / job->rank_seconds, summary__job_title(summary, job, name), why);
	return true;
}

/* Says of a job of which little was compared how much that is, why, and what would help. Returns whether it is one. */
static bool summary__little_compared(const struct summary *summary, const struct job_summary *job, char *text,
				     size_t size)
{
	char name[SUMMARY_JOB_NAME], why[1600];

	if (!(job->rank_seconds > 0) || job->covered_total >= LITTLE * job->rank_seconds)
		return false;
	if (job->covered_total >= NOTHING * job->rank_seconds || !write_obstacle(summary, job, why, sizeof(why)))
		write_reason(job, why, sizeof(why));
	snprintf(text, size,
		 "only %.1f %% of the time of %s could be compared; of the rest, only what the kernel attributes is "
		 "judged. %s",
		 100 * job->covered_total / job->rank_seconds, summary__job_title(summary, job, name), why);
	return true;
}

bool summary__nothing_watched(const struct summary *summary, const char *command, bool replayed, char *text,
			      size_t size)
{
	bool windows = summary->regions.count > 0 || (summary->job_count && summary->start_ns > 0);
	char why[1600];

	for (size_t i = 0; i < summary->job_count; i++)
		windows |= summary->jobs[i].end_ns > 0;
	if (windows)
		return false;
	if (write_obstacle(summary, NULL, why, sizeof(why)))
		snprintf(text, size, "no result: nothing could be compared. %s", why);
	else if (summary->job_count)
		snprintf(text, size,
			 "no result: what was found ended before anything could be compared; a longer run would help");
	else if (replayed)
		snprintf(text, size, "no result: the input has nothing that could be analysed");
	else
		snprintf(text, size, "no MPI or multi-threaded process was found%s%s", command ? " in: " : "",
			 command ? command : "");
	return true;
}

void summary__say_nothing_found(const struct summary *summary, char *text, size_t size)
{
	double all = rank_seconds(summary), covered = 0;

	for (size_t i = 0; i < summary->job_count; i++)
		covered += summary->jobs[i].covered_total;
	if (all > 0)
		snprintf(text, size, "no slow region found in the %.1f %% of the ranks' time that could be compared",
			 100 * covered / all);
	else
		snprintf(text, size, "no slow region found");
}

#define CAUSES_PRINTED 5
#define REGIONS_PRINTED 5
#define JOBS_PRINTED 5
#define OBSTACLES_PRINTED 5
#define SHOWN 0.0005 /* least share of the ranks' time that is not "0.0 %" */
#define NAMED 0.02   /* least share of the ranks' time of a state that is named */
#define INDENT 12

const char *const summary_loss_text[VAPRO_LOSSES] = {
    [VAPRO_LOST_RING_FULL] = "the ring buffer was full (ring-bytes)",
    [VAPRO_LOST_MAP_FULL] = "the kernel's map was full",
    [VAPRO_LOST_NO_STORAGE] = "the kernel had no memory for a thread",
    [VAPRO_LOST_ARGUMENT] = "an argument could not be read",
    [VAPRO_LOST_TRUNCATED] = "more requests than are followed in one call",
    [VAPRO_LOST_GOVERNED] = "probes were closed in the middle of them",
    [VAPRO_LOST_VANISHED] = "calls that never returned (longjmp, exit)",
    [VAPRO_LOST_UNACCOUNTED] = "for a reason unknown",
    [VAPRO_LOST_APPROXIMATED] = "calls have an approximate call-site or size",
    [VAPRO_LOST_UNMATCHED] = "requests: only the post or only the completion was seen",
    [VAPRO_LOST_COUNTER] = "their instructions were not counted",
    [VAPRO_LOST_STATES] = "a process had more states than its share",
    [VAPRO_LOST_PUBLISHED] = "fragments were not published: brokers were absent or slow (publish-memory)",
    [VAPRO_LOST_INTERFERENCE] = "waits for a CPU are charged to no task: too many at once",
};

/* The time of one reason, and the state that has most of it. */
struct reason_sum {
	enum vapro_uncovered_reason reason;
	double rank_seconds;
	const struct gap *most;
};

static int compare_reasons(const void *a, const void *b)
{
	const struct reason_sum *x = a, *y = b;

	return x->rank_seconds > y->rank_seconds ? -1 : x->rank_seconds < y->rank_seconds;
}

/* Prints reasons, and a state where it has much: records name no state of little time, and all texts agree. */
static void print_gaps(const struct job_summary *job, FILE *out, unsigned width)
{
	struct reason_sum sums[VAPRO_UNCOVERED_REASONS] = {0};
	char text[1024], head[32];

	for (int i = 0; i < VAPRO_UNCOVERED_REASONS; i++)
		sums[i].reason = (enum vapro_uncovered_reason)i;
	for (size_t i = 0; i < job->gap_count; i++) {
		const struct gap *gap = &job->gaps[i];
		struct reason_sum *sum = &sums[gap->reason];

		sum->rank_seconds += gap->rank_seconds;
		if (*gap->state && gap->rank_seconds >= NAMED * job->rank_seconds &&
		    (!sum->most || gap->rank_seconds > sum->most->rank_seconds))
			sum->most = gap;
	}
	qsort(sums, VAPRO_UNCOVERED_REASONS, sizeof(*sums), compare_reasons);
	if (sums[0].rank_seconds >= SHOWN * job->rank_seconds)
		fprintf(out, "  not judged, share of the ranks' time:\n");
	for (int i = 0; i < VAPRO_UNCOVERED_REASONS && sums[i].rank_seconds >= SHOWN * job->rank_seconds; i++) {
		snprintf(head, sizeof(head), "    %5.1f %%", 100 * sums[i].rank_seconds / job->rank_seconds);
		if (sums[i].most)
			snprintf(text, sizeof(text), "%s; most: %s, %.1f %%", summary_reason_text[sums[i].reason],
				 sums[i].most->state, 100 * sums[i].most->rank_seconds / job->rank_seconds);
		else
			snprintf(text, sizeof(text), "%s", summary_reason_text[sums[i].reason]);
		wrap__print(out, head, text, INDENT, width);
	}
}

static void print_losses(const struct job_summary *job, FILE *out)
{
	for (int i = 0; i < VAPRO_LOSSES; i++) {
		if (job->lost[i] && (i == VAPRO_LOST_APPROXIMATED || i == VAPRO_LOST_UNMATCHED ||
				     i == VAPRO_LOST_PUBLISHED || i == VAPRO_LOST_INTERFERENCE))
			fprintf(out, "    %llu %s\n", (unsigned long long)job->lost[i], summary_loss_text[i]);
		else if (job->lost[i])
			fprintf(out, "!!! %llu fragment%s lost: %s\n", (unsigned long long)job->lost[i],
				job->lost[i] == 1 ? "" : "s", summary_loss_text[i]);
	}
}

static void print_head(const struct summary *summary, const struct job_summary *job, FILE *out, unsigned width)
{
	char lasted[40], begin[JSON_TIME_SIZE], name[SUMMARY_JOB_NAME], hosts[280] = "", text[1600];

	duration__text((double)(job->end_ns - job->begin_ns) / 1e9, lasted, sizeof(lasted));
	json__time(job->begin_ns, begin);
	begin[19] = 0; /* cuts after seconds */
	begin[10] = ' ';
	summary__job_title(summary, job, name);
	if (job->host_count == 1)
		snprintf(hosts, sizeof(hosts), " on host %.256s", job->hosts[0]);
	else if (job->host_count)
		snprintf(hosts, sizeof(hosts), " on %zu hosts", job->host_count);
	snprintf(text, sizeof(text), "%s: %u rank%s%s, watched for %s from %s UTC, %llu fragments", name, job->ranks,
		 job->ranks == 1 ? "" : "s", hosts, lasted, begin, (unsigned long long)job->fragments);
	wrap__print(out, "", text, 0, width);
	if (job->partial)
		fprintf(out, "!!! only %u of %u ranks were seen: others may be slower or be waited for\n", job->ranks,
			job->world_size);
}

/* Prints what each class had: of what it is a share, and how fast it was. */
static void print_shares(const struct job_summary *job, FILE *out, unsigned width)
{
	char text[512];
	size_t used = 0;
	bool any = false;

	used = (size_t)snprintf(text, sizeof(text), "%.1f %% of the ranks' time",
				100 * job->covered_total / job->rank_seconds);
	for (int i = 0; i < VAPRO_CLASSES; i++) {
		if (job->performed_weight[i] > 0)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %.1f %%", any ? ", " : ": ",
						 vapro_class_name[i], 100 * job->covered[i] / job->rank_seconds);
		any |= job->performed_weight[i] > 0;
	}
	wrap__print(out, "  judged", text, INDENT + 2, width);
	if (job->unseen_s > 0 && job->covered_total > 0) {
		char longest[40], rank[32] = "";

		if (job->unseen_rank >= 0)
			snprintf(rank, sizeof(rank), " (rank %d)", job->unseen_rank);
		snprintf(text, sizeof(text), "at most %s at a time without work that was judged%s",
			 duration__text(job->unseen_s, longest, sizeof(longest)), rank);
		wrap__print(out, "  unseen", text, INDENT + 2, width);
	}
	used = 0;
	/* the speed of a hardly judged class would mislead; of communication it is mostly waiting, which shows as
	 * effects */
	for (int i = 0; i < VAPRO_CLASSES; i++) {
		if (i != VAPRO_COMMUNICATION && job->performed_weight[i] > 0 &&
		    job->covered[i] >= 0.01 * job->rank_seconds)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %.1f %% of best observed",
						 used ? ", " : "average: ", vapro_class_name[i],
						 100 * job->performed[i] / job->performed_weight[i]);
	}
	if (used)
		wrap__print(out, "  speed", text, INDENT + 2, width);
	if (job->covered[VAPRO_COMMUNICATION] >= 0.01 * job->rank_seconds &&
	    job->performed_weight[VAPRO_COMMUNICATION] > 0) {
		snprintf(text, sizeof(text), "%.1f %% of the judged time in communication",
			 100 * (1 - job->performed[VAPRO_COMMUNICATION] / job->performed_weight[VAPRO_COMMUNICATION]));
		wrap__print(out, "  waiting", text, INDENT + 2, width);
	}
}

static void print_job(const struct summary *summary, const struct job_summary *job, FILE *out, unsigned width)
{
	char monitor[80] = "";

	print_head(summary, job, out, width);
	if (!(job->rank_seconds > 0))
		return;
	print_shares(job, out, width);
	if (summary->cpu_seconds > 0)
		snprintf(monitor, sizeof(monitor), "; this monitor used %.2f %% of one CPU",
			 summary->cpu_pct_seconds / summary->cpu_seconds);
	if (job->overhead_weight > 0) {
		char text[256], process[32] = "";

		if (job->overhead_pid)
			snprintf(process, sizeof(process), " (pid %u)", job->overhead_pid);
		snprintf(text, sizeof(text), "%.2f %% of the job's time, worst process %.2f %%%s%s",
			 job->overhead / job->overhead_weight, job->overhead_max, process, monitor);
		wrap__print(out, "  overhead", text, INDENT + 2, width);
	}
}

/* Prints what of a job could not be compared, and what was lost. */
static void print_limits(const struct summary *summary, const struct job_summary *job, FILE *out, unsigned width)
{
	char lost[40], name[SUMMARY_JOB_NAME];

	if (!(job->rank_seconds > 0))
		return;
	if (summary->job_count > 1 && (job->gap_count || job->small_count)) {
		summary__job_title(summary, job, name);
		fprintf(out, "%s\n", name);
	}
	if (job->small_count)
		fprintf(out, "  small       %llu slow region%s of too little weight to be listed, %s lost\n",
			(unsigned long long)job->small_count, job->small_count == 1 ? "" : "s",
			duration__text(job->small_seconds, lost, sizeof(lost)));
	print_gaps(job, out, width);
	print_losses(job, out);
}

/* Prints what kept processes from being seen; the first of it may be in the first line as well. */
static void print_obstacles(const struct obstacles *obstacles, FILE *out)
{
	uint64_t all = obstacles__count(obstacles);

	for (size_t i = 0; i < OBSTACLES_PRINTED && obstacles__text(obstacles, i); i++)
		fprintf(out, "!!! %s\n", obstacles__text(obstacles, i));
	if (all > OBSTACLES_PRINTED)
		fprintf(out, "!!! and %llu more processes that were not seen\n",
			(unsigned long long)(all - OBSTACLES_PRINTED));
}

/* Sums lost seconds, without effects, which only waited. */
static double lost_seconds(const struct regions *regions, bool sure, size_t *count)
{
	double seconds = 0;

	*count = 0;
	for (size_t i = 0; i < regions->count; i++) {
		if (regions__sure(&regions->items[i]) != sure || regions->items[i].effect_of ||
		    regions__is_nothing(&regions->items[i]))
			continue;
		seconds += regions->items[i].lost_seconds;
		(*count)++;
	}
	return seconds;
}

/* Whether a cause of a job is listed. */
static bool is_found(const struct cause_list *list, const struct job_summary *job)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (list->items[i].user == job->user && !strcmp(list->items[i].job, job->said))
			return true;
	return false;
}

/* Whether a job hung: that is its result. */
static bool hangs(const struct summary *summary, const char *job)
{
	for (size_t i = 0; i < summary->hang_count; i++) {
		if (summary->hangs[i].alarm && !strcmp(summary->hangs[i].job, job))
			return true;
	}
	return false;
}

bool summary__say_coverage(const struct summary *summary, const struct cause_list *list, const struct job_summary *job,
			   bool little, char *text, size_t size)
{
	bool none = !is_found(list, job) && !hangs(summary, job->said) && summary__no_result(summary, job, text, size);

	return little ? !none && summary__little_compared(summary, job, text, size) : none;
}

/* Prints alarms that jobs hang, or times without progress that are none. Returns whether there was one. */
static bool print_hangs(const struct summary *summary, FILE *out, unsigned width, bool alarms)
{
	bool any = false;

	for (size_t i = 0; i < summary->hang_count; i++) {
		const struct hang_said *hang = &summary->hangs[i];
		char job[280] = "", *text = NULL;

		if (hang->alarm != alarms)
			continue;
		if (summary->job_count > 1 && *hang->job)
			snprintf(job, sizeof(job), " [job %.256s]", hang->job);
		if (asprintf(&text, "%s: %s%s", hang->alarm ? json_severity_name[hang->severity] : "note",
			     hang->text ? hang->text : "?", job) >= 0)
			wrap__print(out, "", printable(text), 0, width);
		free(text);
		any = true;
	}
	return any;
}

/*
 * Prints of each job in which nothing was found and nothing compared why that is, then where little was compared: of
 * many jobs the first ones, and how many there are, unless `all`.
 */
static void print_coverage(const struct summary *summary, const struct cause_list *list, FILE *out, unsigned width,
			   bool all)
{
	char text[RESULT_TEXT_SIZE];

	for (int little = 0; little < 2; little++) {
		size_t count = 0;

		for (size_t i = 0; i < summary->job_count; i++) {
			if (!summary__say_coverage(summary, list, &summary->jobs[i], little, text, sizeof(text)))
				continue;
			if (all || count < JOBS_PRINTED)
				wrap__print(out, "", text, 0, width);
			count++;
		}
		if (all || count <= JOBS_PRINTED)
			continue;
		snprintf(text, sizeof(text), "and %zu further job%s of which %s could be compared",
			 count - JOBS_PRINTED, count == JOBS_PRINTED + 1 ? "" : "s", little ? "little" : "nothing");
		wrap__print(out, "", text, 0, width);
	}
}

/* Prints what was found, as causes, the worst first; or that nothing was; then how far anything could be seen. */
static void print_causes(struct summary *summary, FILE *out, unsigned width, bool all)
{
	struct cause_list list = {0};
	struct causes *causes = NULL;
	bool judged = !summary->job_count, hang = print_hangs(summary, out, width, true);
	char text[RESULT_TEXT_SIZE];

	/* a job of which there is no window is no job without a result */
	for (size_t i = 0; i < summary->job_count; i++)
		judged |= !summary__no_result(summary, &summary->jobs[i], text, sizeof(text));
	if (summary__causes(summary, &causes, &list))
		fputs("!!! out of memory: the causes are not listed\n", out);
	else if (list.count)
		cause_text__print(&list, out, width, all ? SIZE_MAX : CAUSES_PRINTED, summary->job_count > 1);
	else if (judged && !hang) {
		summary__say_nothing_found(summary, text, sizeof(text));
		wrap__print(out, "", text, 0, width);
	}
	print_coverage(summary, &list, out, width, all);
	causes__free_list(&list);
	causes__free(causes);
	print_hangs(summary, out, width, false);
}

static unsigned width_of(const struct summary_options *options)
{
	unsigned width = options && options->width ? options->width : 80;

	return width < 40 ? 40 : width;
}

void summary__print_top(struct summary *summary, FILE *out, const struct summary_options *options)
{
	unsigned width = width_of(options);
	char text[RESULT_TEXT_SIZE];

	if (summary__nothing_watched(summary, options ? options->command : NULL, options && options->replayed, text,
				     sizeof(text))) {
		wrap__print(out, "", text, 0, width);
		return;
	}
	print_causes(summary, out, width, options && options->all);
	for (size_t i = 0; i < summary->job_count; i++) {
		if (!summary->jobs[i].end_ns)
			continue;
		putc('\n', out);
		print_job(summary, &summary->jobs[i], out, width);
	}
}

void summary__print_rest(struct summary *summary, FILE *out, const struct summary_options *options)
{
	size_t most = options && options->all ? SIZE_MAX : REGIONS_PRINTED, sure_count, unsure_count;
	double all = rank_seconds(summary), sure, unsure;
	uint64_t start_ns = summary->start_ns;
	unsigned width = width_of(options);
	char lost[40];

	for (size_t i = 0; i < summary->job_count; i++) {
		if (summary->jobs[i].begin_ns && (!start_ns || summary->jobs[i].begin_ns < start_ns))
			start_ns = summary->jobs[i].begin_ns;
	}
	sure = lost_seconds(&summary->regions, true, &sure_count);
	unsure = lost_seconds(&summary->regions, false, &unsure_count);
	if (sure_count || unsure_count)
		putc('\n', out);
	if (sure_count) {
		fprintf(out, "%zu slow region%s: %s lost in all", sure_count, sure_count == 1 ? "" : "s",
			duration__text(sure, lost, sizeof(lost)));
		if (all > 0)
			fprintf(out, ", %.2f %% of the ranks' time", 100 * fmin(1, sure / all));
		putc('\n', out);
	}
	if (unsure_count)
		fprintf(out, "%zu %ssuspected region%s (%s): slow, or doing different work\n", unsure_count,
			sure_count ? "more " : "", unsure_count == 1 ? "" : "s",
			duration__text(unsure, lost, sizeof(lost)));
	regions__print(&summary->regions, out,
		       &(struct regions_options){.start_ns = start_ns,
						 .width = width,
						 .most = most,
						 .details = options && options->all,
						 .more = options ? options->more : NULL});
	for (size_t i = 0; i < summary->chosen_count; i++)
		wrap__print(out, i ? "" : "\nchosen", summary->chosen[i], INDENT, width);
	findings__print(&summary->findings, out, width);
	for (size_t i = 0; i < summary->earlier_count; i++)
		wrap__print(out, i ? "" : "\nearlier runs", summary->earlier[i], INDENT, width);
	if (options && options->all && summary->variability_count) {
		fputs("\nVariability of equal work, by batches\n", out);
		variability_text__print(summary->variability, summary->variability_count, out, width);
	}
	if (options && options->all && summary->profile_count) {
		fputs("\nTime of each rank, seconds\n", out);
		profile_text__print(summary->profiles, summary->profile_count, out);
	}
	if (summary->job_count)
		putc('\n', out);
	for (size_t i = 0; i < summary->job_count; i++)
		print_limits(summary, &summary->jobs[i], out, width);
	print_obstacles(summary->obstacles, out);
	for (size_t i = 0; i < summary->trouble_count; i++)
		fprintf(out, "!!! %s\n", summary->troubles[i]);
}

void summary__print(struct summary *summary, FILE *out, const struct summary_options *options)
{
	summary__print_top(summary, out, options);
	if (summary->job_count || summary->regions.count || summary->trouble_count)
		summary__print_rest(summary, out, options);
}
