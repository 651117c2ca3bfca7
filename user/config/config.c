/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of tunables, with help and output; config_set.c reads their values. A new tunable is a
 * member of struct vapro_config and one row here; everything else follows.
 */
#include <string.h>

#include <vapro/config.h>

#include "config/config_words.h"

#define DOUBLE(name, member, initial, min, max, help)                                                                  \
	{                                                                                                              \
		name, VAPRO_OPT_DOUBLE, offsetof(struct vapro_config, member), initial, min, max, help                 \
	}
#define SECONDS(name, member, initial, min, max, help)                                                                 \
	{                                                                                                              \
		name, VAPRO_OPT_SECONDS, offsetof(struct vapro_config, member), initial, min, max, help                \
	}
#define UINT(name, member, initial, min, max, help)                                                                    \
	{                                                                                                              \
		name, VAPRO_OPT_UINT, offsetof(struct vapro_config, member), initial, min, max, help                   \
	}

const struct vapro_option vapro_options[] = {
    SECONDS("window", window_s, "15s", 1, 3600, "length of an analysis window; one ends every two thirds of it"),
    DOUBLE("threshold", threshold, "0.85", 0.01, 1, "performance below which time counts as slow"),
    UINT("min-cells", min_cells, "2", 1, 1000000, "least cells (one rank, 200 ms) of a slow region"),
    SECONDS("min-lost", min_lost_s, "100ms", 0, 3600, "least time a slow region must have lost"),
    DOUBLE("min-share", min_share, "0.001", 0, 1,
	   "share of the job's time that makes a smaller loss, with the waiting it causes, worth a report too"),
    DOUBLE("warning-share", warning_share, "0.001", 0, 1, "share of the job's time that makes an alarm a warning"),
    DOUBLE("critical-share", critical_share, "0.05", 0, 1, "share of the job's time that makes an alarm critical"),
    DOUBLE("valid-bin", valid_bin, "0.1", 0, 1, "share of 200 ms that must be covered to be judged"),
    DOUBLE("cluster-tolerance", cluster_tolerance, "0.05", 0, 1, "workloads this close are the same workload"),
    UINT("cluster-floor", cluster_floor, "64", 0, 1000000000, "counts; smaller differences are none"),
    UINT("cluster-cells", cluster_cells, "4096", 16, 1048576,
	 "with instructions: most cells of a state's workloads; beyond, they become coarser"),
    UINT("rare-members", rare_members, "5", 1, 1000000, "workloads seen less often than this are rare"),
    UINT("certify-fragments", certify_fragments, "50", 1, 1000000,
	 "without a PMU: fragments needed before a state is trusted"),
    DOUBLE("certify-share", certify_share, "0.7", 0, 1,
	   "without a PMU: share of a state's time that must lie near a populous duration"),
    DOUBLE("certify-width", certify_width, "0.1", 0, 1, "without a PMU: what near means, relative to that duration"),
    DOUBLE("populous-share", populous_share, "0.2", 0, 1,
	   "without a PMU: share of fragments that makes a populous duration"),
    DOUBLE("rank-agreement", rank_agreement, "0.05", 0, 1,
	   "without a PMU: ranks this close are compared with each other"),
    DOUBLE("evidence-share", evidence_share, "0.5", 0, 1, "share of a loss that the kernel must explain to confirm it"),
    {"reference", VAPRO_OPT_REFERENCE, offsetof(struct vapro_config, reference), "typical", 0, 0,
     "what equal work is measured against; fastest = the fastest fragment (VAPRO's rule: jitter counts as loss)"},
    UINT("support-batches", support_batches, "25", 1, 1000000,
	 "batches of fragments, of at least two ranks, that make a reference certain"),
    DOUBLE("abnormal-ratio", abnormal_ratio, "1.2", 1, 100, "fragments this much slower than the fastest are abnormal"),
    DOUBLE("major-share", major_share, "0.25", 0, 1, "share of a loss that makes a factor a major one"),
    DOUBLE("p-value", p_value, "0.05", 0, 1, "significance a regression must reach"),
    DOUBLE("overhead-cap", overhead_cap_pct, "2", 0, 100,
	   "percent of a process's time vapro may cost in any 5 s; 0 = no bound, and no budget"),
    DOUBLE("overhead-budget", overhead_budget_pct, "1", 0, 100,
	   "percent of a process's time vapro may cost on average; 0, or more than the cap = the cap"),
    UINT("memory-cap", memory_cap, "268435456", 0, 1099511627776,
	 "bytes that the analysis may hold; beyond, it sheds detail and says so; 0 = no cap"),
    SECONDS("long-fragment", long_fragment_s, "10ms", 0, 3600, "fragments this long are recorded one by one"),
    UINT("map-entries", map_entries, "16384", 64, 1048576, "most merged bundles in the kernel per 200 ms"),
    UINT("ring-bytes", ring_bytes, "4194304", 65536, 1073741824, "size of the ring buffer; a power of two"),
    {"io", VAPRO_OPT_IO, offsetof(struct vapro_config, io), "auto", 0, 0,
     "watch system calls for IO; auto = while a process does at least one a second"},
    {"threads", VAPRO_OPT_IO, offsetof(struct vapro_config, threads), "auto", 0, 0,
     "watch where threads wait for each other; auto = in OpenMP programs, and in threaded ones without MPI"},
    {"interrupts", VAPRO_OPT_IO, offsetof(struct vapro_config, interrupts), "auto", 0, 0,
     "time the node's interrupts; auto = while a slow process is slow on the CPU"},
    {"function", VAPRO_OPT_FUNCTIONS, offsetof(struct vapro_config, functions), "", 0, 0,
     "one more function to watch: IMAGE:FUNCTION [class=user|thread|communication|io] [count=N ...]; IMAGE is a glob, "
     "or exe"},
    DOUBLE("function-share", function_share, "0.5", 0.01, 1,
	   "share of the overhead budget that all these functions of a process may cost; the others are left out"),
    {"no-return", VAPRO_OPT_BOOL, offsetof(struct vapro_config, no_return), "false", 0, 0,
     "place no return probes: for programs that unwind through MPI calls"},
    SECONDS("learn", learn_s, "2s", 0, 60,
	    "how long polling calls (MPI_Test) are looked for when a process is attached"),
    {"attach", VAPRO_OPT_ATTACH, offsetof(struct vapro_config, attach), "auto", 0, 0,
     "how probes are attached; auto = the first of these that the kernel takes"},
    {"states", VAPRO_OPT_STATES, offsetof(struct vapro_config, states), "call-site", 0, 0,
     "what distinguishes states; call-path = also the callers above, by frame pointers"},
    UINT("hop-frames", hop_frames, "4", 0, 4,
	 "call-sites in wrappers whose times spread are distinguished by so many callers at most; 0: never"),
    {"transparent", VAPRO_OPT_TEXT, offsetof(struct vapro_config, transparent), "", 0, 0,
     "wrapper libraries to look through, as Fortran's bindings are: libboost_mpi*.so*,libmine.so"},
    {"counters", VAPRO_OPT_COUNTERS, offsetof(struct vapro_config, counters), "auto", 0, 0,
     "what counts work; auto = hardware where it can at a fair cost, else none; test = clocks, to test with"},
    {"workload", VAPRO_OPT_EVENTS, offsetof(struct vapro_config, workload), "instructions", 0, 0,
     "events that identify equal work: instructions and up to two more; 1/EVENT = of which more is better"},
    {"bands", VAPRO_OPT_EVENTS, offsetof(struct vapro_config, bands), "", 0, 0,
     "dynamic rules: work is equal only where a ratio lies between the same borders: "
     "cache-misses/instructions:0.01,0.1"},
    {"socket", VAPRO_OPT_PATH, offsetof(struct vapro_config, socket), VAPRO_SOCKET, 0, 0,
     "where `vapro diagnose` finds this vaprod; a name with / at its end is a directory; empty = nowhere"},
    SECONDS("keep", keep_s, "1m", 0, 3600, "how long fragments are retained for `vapro diagnose`"),
    UINT("keep-bytes", keep_bytes, "33554432", 0, 17179869184,
	 "most memory for the fragments retained for `vapro diagnose`"),
};

const size_t vapro_option_count = sizeof(vapro_options) / sizeof(vapro_options[0]);

static const char *const io_words[] = {[VAPRO_IO_OFF] = "off", [VAPRO_IO_ON] = "on", [VAPRO_IO_AUTO] = "auto", NULL};
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
	case VAPRO_OPT_IO:
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
	double number;
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
	case VAPRO_OPT_SECONDS:
		number = *(const double *)member;
		if (number > 0 && number < 1)
			snprintf(buf, size, "%.15gms", number * 1000);
		else
			snprintf(buf, size, "%.15gs", number);
		break;
	case VAPRO_OPT_UINT:
		snprintf(buf, size, "%llu", (unsigned long long)*(const uint64_t *)member);
		break;
	case VAPRO_OPT_BOOL:
		snprintf(buf, size, "%s", *(const bool *)member ? "true" : "false");
		break;
	default: /* texts */
		snprintf(buf, size, "%s", member);
		break;
	}
}

void config__help(FILE *out)
{
	static const char *const kind[] = {
	    [VAPRO_OPT_DOUBLE] = " NUMBER", [VAPRO_OPT_SECONDS] = " TIME",  [VAPRO_OPT_UINT] = " COUNT",
	    [VAPRO_OPT_BOOL] = "[=yes|no]", [VAPRO_OPT_FUNCTIONS] = " ROW", [VAPRO_OPT_TEXT] = " LIST",
	    [VAPRO_OPT_PATH] = " PATH",	    [VAPRO_OPT_EVENTS] = " LIST",
	};

	for (size_t i = 0; i < vapro_option_count; i++) {
		const struct vapro_option *option = &vapro_options[i];
		const char *const *words = config__words(option->type);
		char choice[64] = " ", flag[96];

		if (words)
			config__join(words, "|", "|", choice + 1, sizeof(choice) - 1);
		snprintf(flag, sizeof(flag), "--%s%s", option->name, words ? choice : kind[option->type]);
		fprintf(out, "  %-26s %s (%s)\n", flag, option->help, option->initial[0] ? option->initial : "none");
	}
}
