/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of tunables and the few functions that read, write and explain it. A new tunable is a
 * member of struct vapro_config and one row here; everything else follows.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <vapro/config.h>

#include "model/rules.h"
#include "probe/user_rows.h"

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
	 "with instructions: cells kept of a state's workloads; beyond, they get coarser"),
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
    UINT("map-entries", map_entries, "16384", 64, 1048576, "merged bundles kept in the kernel per 200 ms"),
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
	   "share of the overhead budget that one of these functions may cost before it is thinned"),
    {"no-return", VAPRO_OPT_BOOL, offsetof(struct vapro_config, no_return), "false", 0, 0,
     "place no return probes: for programs that unwind through MPI calls"},
    SECONDS("learn", learn_s, "2s", 0, 60,
	    "how long polling calls (MPI_Test) are looked for when a process is attached"),
    {"attach", VAPRO_OPT_ATTACH, offsetof(struct vapro_config, attach), "auto", 0, 0,
     "how probes are attached; auto = the first of these that the kernel takes"},
    {"states", VAPRO_OPT_STATES, offsetof(struct vapro_config, states), "call-site", 0, 0,
     "what tells states apart; call-path = also the callers above, by frame pointers"},
    {"transparent", VAPRO_OPT_TEXT, offsetof(struct vapro_config, transparent), "", 0, 0,
     "wrapper libraries to look through, as Fortran's bindings are: libboost_mpi*.so*,libmine.so"},
    {"counters", VAPRO_OPT_COUNTERS, offsetof(struct vapro_config, counters), "auto", 0, 0,
     "what counts work; auto = hardware where it can at a fair cost, else none; test = clocks, to test with"},
    {"workload", VAPRO_OPT_EVENTS, offsetof(struct vapro_config, workload), "instructions", 0, 0,
     "events that tell equal work: instructions and up to two more; 1/EVENT = of which more is better"},
    {"bands", VAPRO_OPT_EVENTS, offsetof(struct vapro_config, bands), "", 0, 0,
     "dynamic rules: work is equal only where a ratio lies between the same borders: "
     "cache-misses/instructions:0.01,0.1"},
    {"socket", VAPRO_OPT_PATH, offsetof(struct vapro_config, socket), VAPRO_SOCKET, 0, 0,
     "where `vapro diagnose` finds this vaprod; a name with / at its end is a directory; empty = nowhere"},
    SECONDS("keep", keep_s, "1m", 0, 3600, "how long fragments are kept for `vapro diagnose`"),
    UINT("keep-bytes", keep_bytes, "33554432", 0, 17179869184, "most memory for what is kept for `vapro diagnose`"),
};

const size_t vapro_option_count = sizeof(vapro_options) / sizeof(vapro_options[0]);

static const char *const io_name[] = {[VAPRO_IO_OFF] = "off", [VAPRO_IO_ON] = "on", [VAPRO_IO_AUTO] = "auto"};
static const char *const attach_name[] = {[VAPRO_ATTACH_AUTO] = "auto",
					  [VAPRO_ATTACH_SESSION] = "session",
					  [VAPRO_ATTACH_MULTI] = "multi",
					  [VAPRO_ATTACH_PERF] = "perf"};

static const char *const states_name[] = {[VAPRO_BY_CALL_SITE] = "call-site", [VAPRO_BY_CALL_PATH] = "call-path"};
static const char *const reference_name[] = {
    [VAPRO_REFERENCE_TYPICAL] = "typical", [VAPRO_REFERENCE_FASTEST] = "fastest"};
static const char *const counters_name[] = {[VAPRO_COUNTERS_AUTO] = "auto",
					    [VAPRO_COUNTERS_HARDWARE] = "hardware",
					    [VAPRO_COUNTERS_NONE] = "none",
					    [VAPRO_COUNTERS_TEST] = "test"};

void config__init(struct vapro_config *config)
{
	memset(config, 0, sizeof(*config));
	for (size_t i = 0; i < vapro_option_count; i++)
		config__set(config, vapro_options[i].name, vapro_options[i].initial, NULL, 0);
}

/* The hello record and captures spell names with _, the command line with -. */
static bool name_equal(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		if ((*a == '_' ? '-' : *a) != (*b == '_' ? '-' : *b))
			return false;
	}
	return *a == *b;
}

static const struct vapro_option *find(const char *name)
{
	for (size_t i = 0; i < vapro_option_count; i++) {
		if (name_equal(vapro_options[i].name, name))
			return &vapro_options[i];
	}
	return NULL;
}

/* Reads a plain number; the rest of the text goes to unit. No hex, no nan, no infinity. */
static bool parse_number(const char *text, double *number, const char **unit)
{
	const char *digits = text + (*text == '+' || *text == '-');
	char *end;

	if (!isdigit((unsigned char)*digits) && !(*digits == '.' && isdigit((unsigned char)digits[1])))
		return false;
	if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
		return false;
	errno = 0;
	*number = strtod(text, &end);
	if (errno == ERANGE || !isfinite(*number))
		return false;
	*unit = end;
	return true;
}

static bool parse_seconds(const char *text, double *seconds)
{
	const char *unit;

	if (!parse_number(text, seconds, &unit))
		return false;
	while (*unit == ' ')
		unit++;
	if (!*unit || !strcmp(unit, "s"))
		return true;
	/* divided, so that 10ms is the very double that 0.01 is */
	if (!strcmp(unit, "ms"))
		*seconds /= 1000;
	else if (!strcmp(unit, "m"))
		*seconds *= 60;
	else
		return false;
	return true;
}

static bool parse_bool(const char *text, bool *value)
{
	static const char *const yes[] = {"true", "yes", "on", "1"}, *const no[] = {"false", "no", "off", "0"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (!strcmp(text, yes[i]) || !strcmp(text, no[i])) {
			*value = !strcmp(text, yes[i]);
			return true;
		}
	}
	return false;
}

static int refuse_number(const struct vapro_option *option, const char *what, const char *prefix, const char *value,
			 char *err, size_t err_size)
{
	const char *unit = option->type == VAPRO_OPT_SECONDS ? " seconds (units ms, s, m)" : "";

	snprintf(err, err_size, "%s%s: '%s' is %s; expected %.15g to %.15g%s", prefix, option->name, value, what,
		 option->min, option->max, unit);
	return -EINVAL;
}

static int set_number(struct vapro_config *config, const struct vapro_option *option, const char *prefix,
		      const char *value, char *err, size_t err_size)
{
	char *member = (char *)config + option->offset;
	const char *unit = "";
	double number;
	bool parsed;

	if (option->type == VAPRO_OPT_SECONDS)
		parsed = parse_seconds(value, &number);
	else
		parsed = parse_number(value, &number, &unit) && !*unit;
	if (!parsed)
		return refuse_number(option, option->type == VAPRO_OPT_SECONDS ? "no time" : "no number", prefix, value,
				     err, err_size);
	if (number < option->min || number > option->max)
		return refuse_number(option, "out of range", prefix, value, err, err_size);
	if (option->type != VAPRO_OPT_UINT) {
		memcpy(member, &number, sizeof(number));
		return 0;
	}
	if (number != floor(number))
		return refuse_number(option, "no whole number", prefix, value, err, err_size);

	uint64_t whole = (uint64_t)number;

	if (option->offset == offsetof(struct vapro_config, ring_bytes) && (whole & (whole - 1)))
		return refuse_number(option, "no power of two", prefix, value, err, err_size);
	memcpy(member, &whole, sizeof(whole));
	return 0;
}

static int find_word(const char *const *words, size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(words[i], text))
			return (int)i;
	return -1;
}

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	for (end = text + strlen(text); end > text && isspace((unsigned char)end[-1]); end--)
		;
	*end = 0;
	return text;
}

/* Every row is read at once, so that the place that is wrong can be named. */
static int add_functions(char *member, const struct vapro_option *option, const char *prefix, const char *value,
			 char *err, size_t err_size)
{
	char read[VAPRO_FUNCTIONS_TEXT], texts[VAPRO_FUNCTIONS_TEXT], scratch[1024], why[256], *rest = NULL;
	struct function_row row;

	if ((size_t)snprintf(texts, sizeof(texts), "%s", value) >= sizeof(texts))
		goto too_long;
	snprintf(read, sizeof(read), "%s", *value ? member : "");
	for (char *text = strtok_r(texts, ";", &rest); text; text = strtok_r(NULL, ";", &rest)) {
		size_t used = strlen(read);

		text = trim(text);
		if (user_rows__parse(text, &row, scratch, sizeof(scratch), why, sizeof(why))) {
			snprintf(err, err_size, "%s%s: %s", prefix, option->name, why);
			return -EINVAL;
		}
		if ((size_t)snprintf(read + used, sizeof(read) - used, "%s%s", used ? "; " : "", text) >=
		    sizeof(read) - used)
			goto too_long;
	}
	memset(member, 0, VAPRO_FUNCTIONS_TEXT);
	memcpy(member, read, strlen(read));
	return 0;
too_long:
	snprintf(err, err_size, "%s%s: too many functions", prefix, option->name);
	return -EINVAL;
}

/* Read at once, so that the place that is wrong can be named. */
static int set_events(char *member, const struct vapro_option *option, const char *prefix, const char *value, char *err,
		      size_t err_size)
{
	bool bands = option->offset == offsetof(struct vapro_config, bands);
	struct rules rules;
	char why[256];

	if (rules__parse(&rules, bands ? "" : value, bands ? value : "", why, sizeof(why))) {
		snprintf(err, err_size, "%s%s: %s", prefix, option->name, why);
		return -EINVAL;
	}
	memset(member, 0, VAPRO_TEXT_MAX);
	strcpy(member, value);
	return 0;
}

#define EVENT_PREFIX "event "

/* A site's own encoding of an event; the last one of a name counts. */
static int set_event(struct vapro_config *config, const char *name, const char *value, const char *prefix, char *err,
		     size_t err_size)
{
	struct vapro_event_spec *event = config->events;

	while (isspace((unsigned char)*name))
		name++;
	if (!*name || strlen(name) >= sizeof(event->name) || !value || strlen(value) >= sizeof(event->spec)) {
		snprintf(err, err_size, "%sevent: expected such as `event NAME=cpu/event=0xc0,umask=0/`", prefix);
		return -EINVAL;
	}
	while (event < config->events + config->event_count && strcmp(event->name, name))
		event++;
	if (event == config->events + VAPRO_EVENT_SPECS) {
		snprintf(err, err_size, "%sevent %s: only %d events can be given", prefix, name, VAPRO_EVENT_SPECS);
		return -EINVAL;
	}
	snprintf(event->name, sizeof(event->name), "%s", name);
	snprintf(event->spec, sizeof(event->spec), "%s", value);
	if (event == config->events + config->event_count)
		config->event_count++;
	return 0;
}

static int set(struct vapro_config *config, const char *name, const char *value, const char *prefix, char *err,
	       size_t err_size)
{
	const struct vapro_option *option = find(name);
	const char *expected;
	int word;

	if (!strncmp(name, EVENT_PREFIX, strlen(EVENT_PREFIX)))
		return set_event(config, name + strlen(EVENT_PREFIX), value, prefix, err, err_size);
	if (!option) {
		snprintf(err, err_size, "%s%s: no tunable has that name", prefix, name);
		return -ENOENT;
	}
	if (option->type == VAPRO_OPT_BOOL) {
		bool *member = (bool *)((char *)config + option->offset);

		/* a bare --no-return means yes */
		if (parse_bool(value ? value : "true", member))
			return 0;
		snprintf(err, err_size, "%s%s: '%s' is neither yes nor no; expected true or false", prefix,
			 option->name, value);
		return -EINVAL;
	}
	if (option->type == VAPRO_OPT_FUNCTIONS)
		return add_functions((char *)config + option->offset, option, prefix, value ? value : "", err,
				     err_size);
	if (option->type == VAPRO_OPT_EVENTS && value)
		return set_events((char *)config + option->offset, option, prefix, value, err, err_size);
	if ((option->type == VAPRO_OPT_TEXT || option->type == VAPRO_OPT_PATH) && value) {
		if (strlen(value) < VAPRO_TEXT_MAX) {
			strcpy((char *)config + option->offset, value);
			return 0;
		}
		snprintf(err, err_size, "%s%s: the value is longer than %d bytes", prefix, option->name,
			 VAPRO_TEXT_MAX - 1);
		return -EINVAL;
	}
	if (!value || !*value) {
		snprintf(err, err_size, "%s%s: a value is missing", prefix, option->name);
		return -EINVAL;
	}
	if (option->type == VAPRO_OPT_IO) {
		word = find_word(io_name, sizeof(io_name) / sizeof(io_name[0]), value);
		if (word >= 0)
			*(enum vapro_io_mode *)((char *)config + option->offset) = (enum vapro_io_mode)word;
		expected = "off, on or auto";
	} else if (option->type == VAPRO_OPT_ATTACH) {
		word = find_word(attach_name, sizeof(attach_name) / sizeof(attach_name[0]), value);
		if (word >= 0)
			*(enum vapro_attach *)((char *)config + option->offset) = (enum vapro_attach)word;
		expected = "auto, session, multi or perf";
	} else if (option->type == VAPRO_OPT_STATES) {
		word = find_word(states_name, sizeof(states_name) / sizeof(states_name[0]), value);
		if (word >= 0)
			*(enum vapro_states *)((char *)config + option->offset) = (enum vapro_states)word;
		expected = "call-site or call-path";
	} else if (option->type == VAPRO_OPT_COUNTERS) {
		word = find_word(counters_name, sizeof(counters_name) / sizeof(counters_name[0]), value);
		if (word >= 0)
			*(enum vapro_counters *)((char *)config + option->offset) = (enum vapro_counters)word;
		expected = "auto, hardware, none or test";
	} else if (option->type == VAPRO_OPT_REFERENCE) {
		word = find_word(reference_name, sizeof(reference_name) / sizeof(reference_name[0]), value);
		if (word >= 0)
			*(enum vapro_reference *)((char *)config + option->offset) = (enum vapro_reference)word;
		expected = "typical or fastest";
	} else {
		return set_number(config, option, prefix, value, err, err_size);
	}
	if (word >= 0)
		return 0;
	snprintf(err, err_size, "%s%s: '%s' is unknown; expected %s", prefix, option->name, value, expected);
	return -EINVAL;
}

int config__set(struct vapro_config *config, const char *name, const char *value, char *err, size_t err_size)
{
	return set(config, name, value, "--", err, err_size);
}

int config__read(struct vapro_config *config, const char *path, char *err, size_t err_size)
{
	struct vapro_config read = *config; /* a bad file changes nothing */
	char *line = NULL, prefix[512];
	size_t capacity = 0;
	unsigned number = 0;
	int ret = 0;
	FILE *file = fopen(path, "re");

	if (!file) {
		ret = -errno;
		snprintf(err, err_size, "%s: %s", path, strerror(-ret));
		return ret;
	}
	errno = 0;
	while (getline(&line, &capacity, file) >= 0) {
		char *name, *value;

		number++;
		line[strcspn(line, "#")] = 0;
		name = trim(line);
		if (!*name)
			continue;
		snprintf(prefix, sizeof(prefix), "%s:%u: ", path, number);
		value = strchr(name, '=');
		if (!value) {
			snprintf(err, err_size, "%sexpected 'name = value', found '%s'", prefix, name);
			ret = -EINVAL;
			goto cleanup;
		}
		*value++ = 0;
		ret = set(&read, trim(name), trim(value), prefix, err, err_size);
		if (ret)
			goto cleanup;
	}
	if (ferror(file)) {
		ret = errno ? -errno : -EIO;
		snprintf(err, err_size, "%s: %s", path, strerror(-ret));
		goto cleanup;
	}
	*config = read;
cleanup:
	free(line);
	fclose(file);
	return ret;
}

void config__format(const struct vapro_config *config, const struct vapro_option *option, char *buf, size_t size)
{
	const char *member = (const char *)config + option->offset;
	double number;

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
	case VAPRO_OPT_FUNCTIONS:
		snprintf(buf, size, "%s", member);
		break;
	case VAPRO_OPT_IO:
		snprintf(buf, size, "%s", io_name[*(const enum vapro_io_mode *)member]);
		break;
	case VAPRO_OPT_ATTACH:
		snprintf(buf, size, "%s", attach_name[*(const enum vapro_attach *)member]);
		break;
	case VAPRO_OPT_STATES:
		snprintf(buf, size, "%s", states_name[*(const enum vapro_states *)member]);
		break;
	case VAPRO_OPT_COUNTERS:
		snprintf(buf, size, "%s", counters_name[*(const enum vapro_counters *)member]);
		break;
	case VAPRO_OPT_REFERENCE:
		snprintf(buf, size, "%s", reference_name[*(const enum vapro_reference *)member]);
		break;
	case VAPRO_OPT_TEXT:
	case VAPRO_OPT_PATH:
	case VAPRO_OPT_EVENTS:
		snprintf(buf, size, "%s", member);
		break;
	}
}

void config__help(FILE *out)
{
	for (size_t i = 0; i < vapro_option_count; i++) {
		const struct vapro_option *option = &vapro_options[i];
		static const char *const kind[] = {
		    [VAPRO_OPT_DOUBLE] = "NUMBER",
		    [VAPRO_OPT_SECONDS] = "TIME",
		    [VAPRO_OPT_UINT] = "COUNT",
		    [VAPRO_OPT_BOOL] = "[=yes|no]",
		    [VAPRO_OPT_IO] = "off|on|auto",
		    [VAPRO_OPT_ATTACH] = "auto|session|multi|perf",
		    [VAPRO_OPT_FUNCTIONS] = "ROW",
		    [VAPRO_OPT_STATES] = "call-site|call-path",
		    [VAPRO_OPT_TEXT] = "LIST",
		    [VAPRO_OPT_COUNTERS] = "auto|hardware|none|test",
		    [VAPRO_OPT_PATH] = "PATH",
		    [VAPRO_OPT_EVENTS] = "LIST",
		    [VAPRO_OPT_REFERENCE] = "typical|fastest",
		};
		char flag[64];

		snprintf(flag, sizeof(flag), "--%s%s%s", option->name, option->type == VAPRO_OPT_BOOL ? "" : " ",
			 kind[option->type]);
		fprintf(out, "  %-26s %s (%s)\n", flag, option->help, option->initial[0] ? option->initial : "none");
	}
}
