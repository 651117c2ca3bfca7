/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of tunables, with help and output; config_set.c reads their values. A new tunable is a
 * member of struct vapro_config and one row here; everything else follows.
 */
#include <string.h>

#include <vapro/config.h>

#include "base/units.h"
#include "config/config_words.h"

#define ROW(group, name, type, member, initial, min, max, help)                                                        \
	{                                                                                                              \
		name, VAPRO_OPT_##type, offsetof(struct vapro_config, member), initial, min, max, help,                \
		    VAPRO_GROUP_##group                                                                                \
	}

const struct vapro_group_info vapro_groups[VAPRO_GROUPS] = {
    [VAPRO_GROUP_SELECTION] = {"selection", "Selection", false},
    [VAPRO_GROUP_OUTPUT] = {"output", "Output", false},
    [VAPRO_GROUP_PUBLISHING] = {"publishing", "Publishing", false},
    [VAPRO_GROUP_OVERHEAD] = {"overhead", "Overhead", false},
    [VAPRO_GROUP_ANALYSIS] = {"analysis", "Analysis", false},
    [VAPRO_GROUP_ANALYSIS_EXPERT] = {"analysis", "Analysis (expert)", true},
    [VAPRO_GROUP_KERNEL_EXPERT] = {"kernel", "Kernel (expert)", true},
};

/* in the order of the groups */
const struct vapro_option vapro_options[] = {
    ROW(SELECTION, "io", TRISTATE, io, "auto", 0, 0,
	"watch system calls for IO; auto = while a process does at least one a second"),
    ROW(SELECTION, "threads", TRISTATE, threads, "auto", 0, 0,
	"watch where threads wait for each other; auto = in OpenMP programs, and in threaded ones without MPI"),
    ROW(SELECTION, "function", FUNCTIONS, functions, "", 0, 0,
	"one more function to watch: IMAGE:FUNCTION [class=user|thread|communication|io] [count=N ...]; IMAGE is a "
	"glob, "
	"or exe"),
    ROW(SELECTION, "transparent", TEXT, transparent, "", 0, 0,
	"wrapper libraries to look through, as Fortran's bindings are: libboost_mpi*.so*,libmine.so"),
    ROW(SELECTION, "no-return", BOOL, no_return, "no", 0, 0,
	"place no return probes: for programs that unwind through MPI calls"),
    ROW(OUTPUT, "socket", PATH, socket, VAPRO_SOCKET, 0, 0,
	"where `vapro diagnose` finds this vaprod; a name with / at its end is a directory; empty = nowhere"),
    ROW(OUTPUT, "keep", SECONDS, keep_s, "1m", 0, 3600, "how long fragments are retained for `vapro diagnose`"),
    ROW(OUTPUT, "keep-bytes", SIZE, keep_bytes, "32M", 0, 17179869184,
	"most memory for the fragments retained for `vapro diagnose`"),
    ROW(OVERHEAD, "overhead-budget", PERCENT, overhead_budget_pct, "1%", 0, 100,
	"share of a process's time that vapro may cost on average; 0, or more than the cap = the cap"),
    ROW(OVERHEAD, "overhead-cap", PERCENT, overhead_cap_pct, "2%", 0, 100,
	"share of a process's time that vapro may cost in any 5 s; 0 = no bound, and no budget"),
    ROW(OVERHEAD, "function-share", SHARE, function_share, "50%", 0.01, 1,
	"share of the overhead budget that all functions of --function and of threads may cost a process; the others "
	"are left out"),
    ROW(OVERHEAD, "memory-cap", SIZE, memory_cap, "256M", 0, 1099511627776,
	"memory that the analysis may hold; beyond, it sheds detail and says so; 0 = no cap"),
    ROW(ANALYSIS, "window", SECONDS, window_s, "15s", 1, 3600,
	"length of an analysis window; one ends every two thirds of it"),
    ROW(ANALYSIS, "threshold", SHARE, threshold, "85%", 0.01, 1, "performance below which time counts as slow"),
    ROW(ANALYSIS, "min-lost", SECONDS, min_lost_s, "100ms", 0, 3600, "least time a slow region must have lost"),
    ROW(ANALYSIS, "min-share", SHARE, min_share, "0.1%", 0, 1,
	"share of the job's time that makes a smaller loss, with the waiting it causes, worth a report too"),
    ROW(ANALYSIS, "warning-share", SHARE, warning_share, "0.1%", 0, 1,
	"share of the job's time that makes an alarm a warning"),
    ROW(ANALYSIS, "critical-share", SHARE, critical_share, "5%", 0, 1,
	"share of the job's time that makes an alarm critical"),
    ROW(ANALYSIS_EXPERT, "min-cells", UINT, min_cells, "2", 1, 1000000,
	"least size of a slow region, in cells of one rank and 200 ms"),
    ROW(ANALYSIS_EXPERT, "valid-bin", SHARE, valid_bin, "10%", 0, 1,
	"least covered share of a cell's 200 ms; a cell below it is not judged"),
    ROW(ANALYSIS_EXPERT, "reference", REFERENCE, reference, "typical", 0, 0,
	"what equal work is measured against; fastest = the fastest fragment (VAPRO's rule: jitter counts as loss)"),
    ROW(ANALYSIS_EXPERT, "support-batches", UINT, support_batches, "25", 1, 1000000,
	"batches of fragments, of at least two ranks, that make a reference certain"),
    ROW(ANALYSIS_EXPERT, "evidence-share", SHARE, evidence_share, "50%", 0, 1,
	"share of a loss that the kernel must explain to confirm it"),
    ROW(ANALYSIS_EXPERT, "abnormal-ratio", DOUBLE, abnormal_ratio, "1.2", 1, 100,
	"fragments this much slower than the fastest are abnormal"),
    ROW(ANALYSIS_EXPERT, "major-share", SHARE, major_share, "25%", 0, 1,
	"share of a loss that makes a factor a major one"),
    ROW(ANALYSIS_EXPERT, "p-value", DOUBLE, p_value, "0.05", 0, 1, "significance a regression must reach"),
    ROW(ANALYSIS_EXPERT, "workload", EVENTS, workload, "instructions", 0, 0,
	"events that identify equal work: instructions and up to two more; 1/EVENT = of which more is better"),
    ROW(ANALYSIS_EXPERT, "bands", EVENTS, bands, "", 0, 0,
	"dynamic rules: work is equal only where a ratio lies between the same borders: "
	"cache-misses/instructions:0.01,0.1"),
    ROW(ANALYSIS_EXPERT, "cluster-tolerance", SHARE, cluster_tolerance, "5%", 0, 1,
	"workloads this close are the same workload"),
    ROW(ANALYSIS_EXPERT, "cluster-floor", UINT, cluster_floor, "64", 0, 1000000000,
	"smaller differences of counts are ignored"),
    ROW(ANALYSIS_EXPERT, "cluster-cells", UINT, cluster_cells, "4096", 16, 1048576,
	"with instructions: most cells of a state's workloads; beyond, they become coarser"),
    ROW(ANALYSIS_EXPERT, "rare-members", UINT, rare_members, "5", 1, 1000000,
	"workloads seen less often than this are rare"),
    ROW(ANALYSIS_EXPERT, "certify-fragments", UINT, certify_fragments, "50", 1, 1000000,
	"without a PMU: fragments needed before a state is trusted"),
    ROW(ANALYSIS_EXPERT, "certify-share", SHARE, certify_share, "70%", 0, 1,
	"without a PMU: share of a state's time that must lie near one of its most common durations"),
    ROW(ANALYSIS_EXPERT, "certify-width", SHARE, certify_width, "10%", 0, 1,
	"without a PMU: what near means, relative to that duration"),
    ROW(ANALYSIS_EXPERT, "populous-share", SHARE, populous_share, "20%", 0, 1,
	"without a PMU: share of fragments that makes a duration one of the most common"),
    ROW(ANALYSIS_EXPERT, "rank-agreement", SHARE, rank_agreement, "5%", 0, 1,
	"without a PMU: ranks this close are compared with each other"),
    ROW(KERNEL_EXPERT, "attach", ATTACH, attach, "auto", 0, 0,
	"mechanism of the probes; auto = the first of these that the kernel supports"),
    ROW(KERNEL_EXPERT, "counters", COUNTERS, counters, "auto", 0, 0,
	"what counts work; auto = hardware where it can at a fair cost, else none; test = clocks, to test with"),
    ROW(KERNEL_EXPERT, "interrupts", TRISTATE, interrupts, "auto", 0, 0,
	"time the node's interrupts; auto = while a slow process is slow on the CPU"),
    ROW(KERNEL_EXPERT, "inside", TRISTATE, inside, "auto", 0, 0,
	"sample where slow computation runs, 49 times a second, while it is slow; auto = where the kernel can"),
    ROW(KERNEL_EXPERT, "states", STATES, states, "call-site", 0, 0,
	"what distinguishes states; call-path = also the callers above, by frame pointers"),
    ROW(KERNEL_EXPERT, "hop-frames", UINT, hop_frames, "4", 0, 4,
	"call-sites in wrappers whose times spread are distinguished by so many callers at most; 0: never"),
    ROW(KERNEL_EXPERT, "learn", SECONDS, learn_s, "2s", 0, 60,
	"how long polling calls (MPI_Test) are looked for when a process is attached"),
    ROW(KERNEL_EXPERT, "long-fragment", SECONDS, long_fragment_s, "10ms", 0, 3600,
	"fragments this long are recorded one by one"),
    ROW(KERNEL_EXPERT, "map-entries", UINT, map_entries, "16384", 64, 1048576,
	"most merged bundles in the kernel per 200 ms"),
    ROW(KERNEL_EXPERT, "ring-bytes", SIZE, ring_bytes, "4M", 65536, 1073741824,
	"size of the ring buffer; a power of two"),
};

const size_t vapro_option_count = sizeof(vapro_options) / sizeof(vapro_options[0]);

static const char *const io_words[] = {[VAPRO_OFF] = "off", [VAPRO_ON] = "on", [VAPRO_AUTO] = "auto", NULL};
static const char *const attach_words[] = {[VAPRO_ATTACH_AUTO] = "auto",
					   [VAPRO_ATTACH_SESSION] = "session",
					   [VAPRO_ATTACH_MULTI] = "multi",
					   [VAPRO_ATTACH_PERF] = "perf",
					   NULL};
static const char *const states_words[] = {
    [VAPRO_BY_CALL_SITE] = "call-site", [VAPRO_BY_CALL_PATH] = "call-path", NULL};
static const char *const counters_words[] = {[VAPRO_COUNTERS_AUTO] = "auto",
					     [VAPRO_COUNTERS_HARDWARE] = "hardware",
					     [VAPRO_COUNTERS_NONE] = "none",
					     [VAPRO_COUNTERS_TEST] = "test",
					     NULL};
static const char *const reference_words[] = {
    [VAPRO_REFERENCE_TYPICAL] = "typical", [VAPRO_REFERENCE_FASTEST] = "fastest", NULL};

const char *const *config__words(enum vapro_option_type type)
{
	switch (type) {
	case VAPRO_OPT_TRISTATE:
		return io_words;
	case VAPRO_OPT_ATTACH:
		return attach_words;
	case VAPRO_OPT_STATES:
		return states_words;
	case VAPRO_OPT_COUNTERS:
		return counters_words;
	case VAPRO_OPT_REFERENCE:
		return reference_words;
	default:
		return NULL;
	}
}

void config__join(const char *const *words, const char *between, const char *last, char *text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; words[i]; i++) {
		const char *before = !i ? "" : words[i + 1] ? between : last;

		used += (size_t)snprintf(text + used, size - used, "%s%s", before, words[i]);
	}
}

void config__init(struct vapro_config *config)
{
	memset(config, 0, sizeof(*config));
	for (size_t i = 0; i < vapro_option_count; i++)
		config__set(config, vapro_options[i].name, vapro_options[i].initial, NULL, 0);
}

void config__format(const struct vapro_config *config, const struct vapro_option *option, char *buf, size_t size)
{
	const char *member = (const char *)config + option->offset;
	const char *const *words = config__words(option->type);
	unsigned word;

	if (words) {
		memcpy(&word, member, sizeof(word));
		snprintf(buf, size, "%s", words[word]);
		return;
	}
	switch (option->type) {
	case VAPRO_OPT_DOUBLE:
		snprintf(buf, size, "%.15g", *(const double *)member);
		break;
	case VAPRO_OPT_SHARE:
		units__format_share(*(const double *)member, buf, size);
		break;
	case VAPRO_OPT_PERCENT:
		units__format_percent(*(const double *)member, buf, size);
		break;
	case VAPRO_OPT_SECONDS:
		units__format_seconds(*(const double *)member, buf, size);
		break;
	case VAPRO_OPT_SIZE:
		units__format_bytes(*(const uint64_t *)member, buf, size);
		break;
	case VAPRO_OPT_UINT:
		snprintf(buf, size, "%llu", (unsigned long long)*(const uint64_t *)member);
		break;
	case VAPRO_OPT_BOOL:
		snprintf(buf, size, "%s", *(const bool *)member ? "yes" : "no");
		break;
	default: /* texts */
		snprintf(buf, size, "%s", member);
		break;
	}
}

void config__value_name(const struct vapro_option *option, char *text, size_t size)
{
	static const char *const names[] = {
	    [VAPRO_OPT_DOUBLE] = "NUMBER", [VAPRO_OPT_SHARE] = "SHARE",	  [VAPRO_OPT_PERCENT] = "PERCENT",
	    [VAPRO_OPT_SIZE] = "SIZE",	   [VAPRO_OPT_SECONDS] = "TIME",  [VAPRO_OPT_UINT] = "COUNT",
	    [VAPRO_OPT_BOOL] = "yes|no",   [VAPRO_OPT_FUNCTIONS] = "ROW", [VAPRO_OPT_TEXT] = "LIST",
	    [VAPRO_OPT_PATH] = "PATH",	   [VAPRO_OPT_EVENTS] = "LIST",
	};
	const char *const *words = config__words(option->type);

	if (words)
		config__join(words, "|", "|", text, size);
	else
		snprintf(text, size, "%s", names[option->type]);
}
