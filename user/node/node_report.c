// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/node_report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "base/wrap.h"

enum { LIST_SIZE = 256 };

enum node_verdict node_report__verdict(const struct node_report *report)
{
	enum node_verdict own = report->check->verdict, other;

	if (!report->profile)
		return own;
	other = report->compared ? report->compared->verdict : NODE_UNDECIDED;
	if (own == NODE_UNDECIDED && node_run__machine(report->run)->count == 1)
		return other;
	return own > other ? own : other;
}

/* Writes when a run began. */
static const char *begin_of(const struct node_run *run, char text[32])
{
	time_t begin = (time_t)(node_run__begin_ns(run) / 1000000000);
	struct tm utc;

	*text = '\0';
	if (gmtime_r(&begin, &utc))
		strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
	return text;
}

static const char *percent(double share, char text[16])
{
	*text = '\0';
	if (!isnan(share))
		snprintf(text, 16, "%.1f %%", 100 * share);
	return text;
}

/* Writes a kernel with its type of core. */
static const char *name_of(const struct node_finding *finding, char text[64])
{
	snprintf(text, 64, "%s%s%s", node_kernel_name[finding->kernel], *finding->core_type ? " " : "",
		 finding->core_type);
	return text;
}

static void print_findings(const struct node_report *report, const struct node_check *check, const char *difference,
			   FILE *out, unsigned width)
{
	const struct machine_cpus *machine = node_run__machine(report->run);
	char name[64], mean[40], scatter[16], differs[16], list[LIST_SIZE];

	fprintf(out, "%-18s %12s %9s %9s  %s\n", "kernel", "iteration", "scatter", difference, "verdict");
	for (size_t i = 0; i < check->count; i++) {
		const struct node_finding *finding = &check->items[i];

		*mean = '\0';
		if (!isnan(finding->mean_ns))
			duration__text(finding->mean_ns * 1e-9, mean, sizeof(mean));
		fprintf(out, "%-18s %12s %9s %9s  %s", name_of(finding, name), mean, percent(finding->scatter, scatter),
			percent(finding->difference, differs), node_verdict_name[finding->verdict]);
		if (finding->verdict > NODE_UNDECIDED)
			fprintf(out, ": %s%s", finding->count ? "CPU " : "all CPUs",
				machine_cpus__list(machine, finding->instances, finding->count, list, sizeof(list)));
		fputc('\n', out);
		if (*finding->why)
			wrap__print(out, "", finding->why, 19, width);
	}
}

/* Says what was run. */
static void print_head(const struct node_report *report, FILE *out)
{
	const struct machine_cpus *machine = node_run__machine(report->run);
	uint32_t *all = calloc(machine->count, sizeof(*all));
	char list[LIST_SIZE] = "";

	for (uint32_t i = 0; all && i < machine->count; i++)
		all[i] = i;
	if (all)
		machine_cpus__list(machine, all, machine->count, list, sizeof(list));
	free(all);
	fprintf(out, "%s: CPU%s %s%s%s, %.0f s", machine->host, machine->count > 1 ? "s" : "", list,
		*machine->model ? " of " : "", machine->model, node_run__seconds(report->run));
	fprintf(out, "; arrays of %llu MiB, last-level cache of %llu MiB\n",
		(unsigned long long)machine->array_bytes >> 20, (unsigned long long)machine->cache_bytes >> 20);
	if (node_run__unpinned(report->run))
		fprintf(out,
			"%zu of %zu instances are pinned to no CPU: the kernel refused it, or a CPU went offline\n",
			node_run__unpinned(report->run), machine->count);
	if (machine->count == 1)
		fputs("one CPU: no other shares a cache line with it, and none is compared with it\n", out);
}

/* The greatest scatter of a kernel. */
static double most_scatter(const struct node_check *check)
{
	double most = NAN;

	for (size_t i = 0; i < check->count; i++)
		most = isnan(most) || check->items[i].scatter > most ? check->items[i].scatter : most;
	return most;
}

static void print_verdict(const struct node_report *report, FILE *out)
{
	static const char *const sentences[NODE_VERDICTS] = {
	    [NODE_GOOD] = "good: nothing is slower by more than 10 %",
	    [NODE_UNDECIDED] = "undecided: see above what stands in the way",
	    [NODE_SLOWER] = "slower than the profile",
	    [NODE_SLOW] = "slow CPUs",
	    [NODE_WRONG] = "wrong results: the node is broken",
	};
	double scatter = most_scatter(report->check);

	if (!isnan(scatter))
		fprintf(out, "This machine's own scatter: up to %.1f %% in time; smaller differences are no finding.\n",
			100 * scatter);
	fprintf(out, "Verdict: %s.\n", sentences[node_report__verdict(report)]);
}

void node_report__text(const struct node_report *report, FILE *out, unsigned width)
{
	char when[32];

	print_head(report, out);
	print_findings(report, report->check, "CPUs", out, width);
	if (report->profile) {
		fprintf(out, "\nAgainst %s, of host %s at %s:\n", report->profile_name,
			node_run__machine(report->profile)->host, begin_of(report->profile, when));
		if (report->compared)
			print_findings(report, report->compared, "slower", out, width);
		else
			fprintf(out, "not compared: %s\n", report->other_class);
	}
	fputc('\n', out);
	print_verdict(report, out);
}

static bool add_number(cJSON *object, const char *key, double value)
{
	return isnan(value) ? cJSON_AddNullToObject(object, key) != NULL
			    : cJSON_AddNumberToObject(object, key, round(value * 1e4) / 1e4) != NULL;
}

static bool add_cpus(cJSON *object, const struct machine_cpus *machine, const struct node_finding *finding)
{
	cJSON *list = cJSON_AddArrayToObject(object, "cpus");

	for (size_t i = 0; list && i < finding->count; i++) {
		cJSON *number = cJSON_CreateNumber(machine->cpus[finding->instances[i]].cpu);

		if (!number || !cJSON_AddItemToArray(list, number))
			return false;
	}
	return list;
}

static bool add_findings(cJSON *object, const char *key, const struct machine_cpus *machine,
			 const struct node_check *check)
{
	cJSON *list = cJSON_AddArrayToObject(object, key);

	for (size_t i = 0; list && i < check->count; i++) {
		const struct node_finding *finding = &check->items[i];
		cJSON *item = cJSON_CreateObject();

		if (!item || !cJSON_AddItemToArray(list, item) ||
		    !cJSON_AddStringToObject(item, "kernel", node_kernel_name[finding->kernel]) ||
		    !cJSON_AddStringToObject(item, "core_type", finding->core_type) ||
		    !cJSON_AddStringToObject(item, "verdict", node_verdict_name[finding->verdict]) ||
		    !cJSON_AddStringToObject(item, "why", finding->why) ||
		    !add_number(item, "iteration_us", finding->mean_ns * 1e-3) ||
		    !add_number(item, "scatter_pct", 100 * finding->scatter) ||
		    !add_number(item, "difference_pct", 100 * finding->difference) || !add_cpus(item, machine, finding))
			return false;
	}
	return list;
}

static bool add_profile(cJSON *object, const struct node_report *report)
{
	cJSON *profile = cJSON_AddObjectToObject(object, "profile");
	char when[32];

	return profile && cJSON_AddStringToObject(profile, "file", report->profile_name) &&
	       cJSON_AddStringToObject(profile, "host", node_run__machine(report->profile)->host) &&
	       cJSON_AddStringToObject(profile, "time", begin_of(report->profile, when)) &&
	       (report->compared ? add_findings(profile, "kernels", node_run__machine(report->run), report->compared)
				 : cJSON_AddStringToObject(profile, "not_compared", report->other_class) != NULL);
}

int node_report__json(const struct node_report *report, FILE *out)
{
	const struct machine_cpus *machine = node_run__machine(report->run);
	cJSON *object = cJSON_CreateObject(), *records;
	char *text = NULL;

	if (object && cJSON_AddStringToObject(object, "schema", "vapro-node/1") &&
	    cJSON_AddStringToObject(object, "host", machine->host) &&
	    cJSON_AddStringToObject(object, "verdict", node_verdict_name[node_report__verdict(report)]) &&
	    cJSON_AddStringToObject(object, "cpu_model", machine->model) &&
	    cJSON_AddNumberToObject(object, "cpus", (double)machine->count) &&
	    cJSON_AddNumberToObject(object, "unpinned", (double)node_run__unpinned(report->run)) &&
	    add_number(object, "seconds", node_run__seconds(report->run)) &&
	    cJSON_AddNumberToObject(object, "array_bytes", (double)machine->array_bytes) &&
	    cJSON_AddNumberToObject(object, "cache_bytes", (double)machine->cache_bytes) &&
	    add_number(object, "scatter_pct", 100 * most_scatter(report->check)) &&
	    add_findings(object, "kernels", machine, report->check) &&
	    (!report->profile || add_profile(object, report))) {
		records = cJSON_Duplicate(report->check->records, true);
		if (records && cJSON_AddItemToObject(object, "variability", records))
			text = cJSON_Print(object);
	}
	cJSON_Delete(object);
	if (!text)
		return -ENOMEM;
	fprintf(out, "%s\n", text);
	free(text);
	return 0;
}
