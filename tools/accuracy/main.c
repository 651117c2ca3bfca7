/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * make accuracy: runs each case in its own process, scores the findings of the analysis, prints a
 * table and writes JSON. Deterministic but for run times.
 */
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "baseline.h"
#include "cases.h"
#include "capture/capture.h"
#include "config/config_json.h"
#include "report.h"
#include "report/lines.h"

#define SEEDS 32
#define WORKERS 64

static const struct case_table *const tables[] = {
    &fault_cases, &call_cases, &quiet_cases, &papers_cases, &shape_fault_cases, &shape_call_cases, &shape_quiet_cases};

struct options {
	const char *part, *pattern, *out, *capture;
	bool modes[JOB_MODES];
	uint64_t seeds[SEEDS];
	int seed_count, workers, limit_s;
	bool list, verbose;
	struct vapro_config config;
};

static void usage(FILE *out)
{
	fputs("Usage: accuracy [options]\n"
	      "Simulates jobs of known truth, analyses them and scores what was found.\n"
	      "\n"
	      "  --part NAME        only cases of a part: simulated, papers or shapes (all)\n"
	      "  --case GLOB[,..]   only cases whose KIND/LENGTH matches, as 'hog/20ms'\n"
	      "  --mode MODE        counts, arguments or both (both)\n"
	      "  --seed N[,N..]     what draws the parameters; the table is of even ones (2,4)\n"
	      "  --set NAME=VALUE   a tunable of the analysis\n"
	      "  --jobs N           processes at a time (2)\n"
	      "  --limit SECONDS    of CPU that one run may take before it has failed (300)\n"
	      "  --out DIR          for the JSON (build/accuracy)\n"
	      "  --list             names the runs and ends\n"
	      "  --verbose          prints each finding beside the truth\n"
	      "  --capture FILE     writes the one run selected as a capture instead of analysing it\n",
	      out);
}

static bool parse_seeds(struct options *options, const char *text)
{
	options->seed_count = 0;
	while (options->seed_count < SEEDS) {
		char *end;

		options->seeds[options->seed_count++] = strtoull(text, &end, 10);
		if (end == text)
			return false;
		if (!*end)
			return true;
		if (*end != ',')
			return false;
		text = end + 1;
	}
	return false;
}

static bool parse_tunable(struct options *options, const char *text)
{
	const char *equal = strchr(text, '=');
	char name[64], err[256] = "unknown";

	if (!equal || (size_t)(equal - text) >= sizeof(name))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)(equal - text), text);
	if (!config__set(&options->config, name, equal + 1, err, sizeof(err)))
		return true;
	fprintf(stderr, "accuracy: %s: %s\n", name, err);
	return false;
}

static bool parse_mode(struct options *options, const char *text)
{
	bool both = !strcmp(text, "both");

	options->modes[VAPRO_BY_INSTRUCTIONS] = both || !strcmp(text, "counts");
	options->modes[VAPRO_BY_ARGUMENTS] = both || !strcmp(text, "arguments");
	return options->modes[0] || options->modes[1];
}

static bool parse(struct options *options, int argc, char **argv)
{
	static const struct option longs[] = {
	    {"part", 1, NULL, 'p'}, {"case", 1, NULL, 'c'}, {"mode", 1, NULL, 'm'},    {"seed", 1, NULL, 's'},
	    {"set", 1, NULL, 'x'},  {"jobs", 1, NULL, 'j'}, {"out", 1, NULL, 'o'},     {"limit", 1, NULL, 't'},
	    {"list", 0, NULL, 'l'}, {"help", 0, NULL, 'h'}, {"verbose", 0, NULL, 'v'}, {"capture", 1, NULL, 'w'},
	    {NULL, 0, NULL, 0},
	};
	bool good = true;

	for (int at; good && (at = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
		switch (at) {
		case 'p':
			options->part = optarg;
			break;
		case 'c':
			options->pattern = optarg;
			break;
		case 'm':
			good = parse_mode(options, optarg);
			break;
		case 's':
			good = parse_seeds(options, optarg);
			break;
		case 'x':
			good = parse_tunable(options, optarg);
			break;
		case 'j':
			options->workers = atoi(optarg);
			good = options->workers > 0 && options->workers <= WORKERS;
			break;
		case 't':
			options->limit_s = atoi(optarg);
			good = options->limit_s > 0;
			break;
		case 'o':
			options->out = optarg;
			break;
		case 'l':
			options->list = true;
			break;
		case 'v':
			options->verbose = true;
			break;
		case 'w':
			options->capture = optarg;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			good = false;
		}
	}
	return good && optind == argc;
}

/* Whether one of several patterns, between commas, is a run's name or kind. */
static bool matches(const char *patterns, const char *name, const char *kind)
{
	while (*patterns) {
		size_t length = strcspn(patterns, ",");
		char pattern[64];

		snprintf(pattern, sizeof(pattern), "%.*s", (int)length, patterns);
		if (!fnmatch(pattern, name, 0) || !fnmatch(pattern, kind, 0))
			return true;
		patterns += length + (patterns[length] == ',');
	}
	return false;
}

static bool selected(const struct options *options, const struct accuracy_case *at, const char *name)
{
	return (!options->part || !strcmp(options->part, "all") || !strcmp(options->part, at->part)) &&
	       (!options->pattern || matches(options->pattern, name, at->kind));
}

/* Adds the runs of one case at one length. */
static size_t add_runs(const struct options *options, const struct accuracy_case *at, double length, struct run *runs,
		       size_t count)
{
	char name[RUN_NAME];

	if (length > 0)
		snprintf(name, sizeof(name), "%s/%gms", at->kind, length);
	else
		snprintf(name, sizeof(name), "%s", at->kind);
	if (!selected(options, at, name))
		return count;
	for (int seed = 0; seed < (at->type & CASE_LARGE ? 1 : options->seed_count); seed++) {
		for (int mode = JOB_MODES - 1; mode >= 0; mode--) {
			if (!options->modes[mode])
				continue;
			if (runs) {
				runs[count].at = at;
				runs[count].length_ms = length;
				runs[count].seed = options->seeds[seed];
				runs[count].source = (enum vapro_workload_source)mode;
				snprintf(runs[count].name, RUN_NAME, "%s", name);
			}
			count++;
		}
	}
	return count;
}

static size_t add_all(const struct options *options, struct run *runs)
{
	size_t count = 0;

	for (size_t table = 0; table < sizeof(tables) / sizeof(*tables); table++) {
		for (size_t i = 0; i < tables[table]->count; i++) {
			const struct accuracy_case *at = &tables[table]->cases[i];
			int length = 0;

			do {
				count = add_runs(options, at, at->lengths_ms[length], runs, count);
			} while (++length < CASE_LENGTHS && at->lengths_ms[length] > 0);
		}
	}
	return count;
}

static void set_cap(struct vapro_config *config, const struct job *job)
{
	/* each host has its own hello, as in a merge of captures */
	config->memory_cap *= (uint64_t)job->hosts;
}

/* Scores what a simple rule finds of the same events. */
static int score_plain(struct stream_sink *baseline, const struct job *job, struct run *run,
		       const struct truths *truths)
{
	struct findings findings = {0};
	struct score *score = malloc(sizeof(*score));
	int status = score ? baseline__find(baseline, &findings) : -ENOMEM;

	if (!status) {
		score__job(job, run->source, truths, &findings, score);
		memcpy(run->plain.by_kind, score->by_kind, sizeof(score->by_kind));
		for (uint32_t i = 0; i < score->truth_count; i++)
			run->plain.hit[i] = score->truths[i].hit;
	}
	findings__free(&findings);
	free(score);
	return status;
}

/* Runs in its own process. */
static int carry_out(const struct options *options, struct run *run)
{
	struct vapro_config config = options->config;
	struct findings findings = {0};
	struct truths truths = {0};
	struct stream_sink *sink, *baseline = NULL;
	struct job job;
	int status;

	cases__make(run->at, run->length_ms, run->seed, &job);
	run->ranks = job.ranks;
	run->seconds = job.seconds;
	run->jitter = job.jitter;
	run->cyclic = job.cyclic;
	set_cap(&config, &job);
	sink = findings__sink(&config, run->source, &findings);
	if (sink && report__is_shape(run))
		baseline = baseline__sink(sink, &job, run->source);
	if (!sink || (report__is_shape(run) && !baseline))
		return -ENOMEM;
	status = job__run(&job, run->source, config.window_s, baseline ? baseline : sink, &truths, &run->totals);
	run->window_cpu_max = findings.window_cpu_max;
	run->coverage = findings__coverage(&findings);
	if (!status)
		score__job(&job, run->source, &truths, &findings, &run->score);
	if (!status && baseline)
		status = score_plain(baseline, &job, run, &truths);
	if (!status && papers__find(run->at->kind))
		papers__judge(papers__find(run->at->kind), run->source, &truths, &findings, &run->paper);
	if (options->verbose)
		report__verbose(run, &findings, stdout);
	stream__close(baseline);
	stream__close(sink);
	findings__free(&findings);
	truths__free(&truths);
	return status;
}

static int write_capture(const struct options *options, const struct run *run)
{
	struct vapro_config config = options->config;
	struct stream_event hello = {.type = STREAM_LINE};
	struct stream_sink *sink;
	struct job_totals totals;
	struct truths truths;
	char *tunables, *line;
	struct job job;
	int status, closed;

	cases__make(run->at, run->length_ms, run->seed, &job);
	set_cap(&config, &job);
	tunables = config__to_text(&config);
	sink = tunables ? capture__create(options->capture, tunables) : NULL;
	line = lines__hello(&(struct line_hello){
	    .utc_ns = JOB_BEGIN_NS,
	    .host = "n0",
	    .version = "synthetic",
	    .kernel = "none",
	    .mode = "none",
	    .pmu_available = run->source == VAPRO_BY_INSTRUCTIONS,
	    .workload_source = run->source,
	    .config = &config,
	    .clock = {JOB_MONO_NS, JOB_BEGIN_NS},
	});
	if (!sink || !line) {
		fprintf(stderr, "accuracy: cannot write %s: %s\n", options->capture, strerror(errno));
		return 1;
	}
	hello.line = (struct stream_line){RECORD_OBJECT_hello, line};
	status = stream__put(sink, &hello);
	if (!status)
		status = job__run(&job, run->source, config.window_s, sink, &truths, &totals);
	closed = stream__close(sink);
	status = status ? status : closed;
	truths__free(&truths);
	free(tunables);
	free(line);
	if (status)
		fprintf(stderr, "accuracy: %s: %s\n", options->capture, strerror(-status));
	return status ? 1 : 0;
}

struct worker {
	pid_t pid;
	struct run *run;
};

static void reap(struct worker *running, int *alive, size_t *finished, size_t count)
{
	struct rusage usage;
	int status;
	pid_t pid = wait4(-1, &status, 0, &usage);

	for (int i = 0; i < *alive; i++) {
		struct run *run = running[i].run;

		if (running[i].pid != pid)
			continue;
		run->cpu_s = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
			     (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
		run->rss_mib = (double)usage.ru_maxrss / 1024;
		run->failed = !WIFEXITED(status) || WEXITSTATUS(status);
		(*finished)++;
		report__progress(run, *finished, count);
		running[i] = running[--*alive];
		return;
	}
}

static void run_all(const struct options *options, struct run *runs, size_t count)
{
	struct worker running[WORKERS];
	size_t next = 0, finished = 0;
	int alive = 0;

	while (next < count || alive) {
		if (next < count && alive < options->workers) {
			struct run *run = &runs[next++];
			pid_t pid;

			fflush(stdout);
			fflush(stderr);
			pid = fork();
			if (!pid) {
				struct rlimit limit = {(rlim_t)options->limit_s, (rlim_t)options->limit_s + 1};
				int status = setrlimit(RLIMIT_CPU, &limit);

				status = status ? status : carry_out(options, run);

				fflush(stdout);
				_exit(status ? 1 : 0);
			}
			run->failed = pid < 0;
			if (pid > 0)
				running[alive++] = (struct worker){pid, run};
			continue;
		}
		reap(running, &alive, &finished, count);
	}
}

int main(int argc, char **argv)
{
	struct options options = {.out = "build/accuracy",
				  .modes = {true, true},
				  .seeds = {2, 4},
				  .seed_count = 2,
				  .workers = 2,
				  .limit_s = 300};
	struct run *runs;
	size_t count, others;

	config__init(&options.config);
	if (!parse(&options, argc, argv)) {
		usage(stderr);
		return 2;
	}
	count = add_all(&options, NULL);
	if (!count) {
		fprintf(stderr, "accuracy: no case has that name; --list shows them\n");
		return 2;
	}
	runs = mmap(NULL, count * sizeof(*runs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (runs == MAP_FAILED) {
		fprintf(stderr, "accuracy: %s\n", strerror(errno));
		return 1;
	}
	add_all(&options, runs);
	if (options.list) {
		for (size_t i = 0; i < count; i++)
			printf("%s %s seed %llu %s\n", runs[i].at->part, runs[i].name, (unsigned long long)runs[i].seed,
			       report__mode_name[runs[i].source]);
		return 0;
	}
	if (options.capture) {
		if (count == 1)
			return write_capture(&options, &runs[0]);
		fprintf(stderr, "accuracy: --capture takes one case, one seed and one mode, not %zu\n", count);
		return 2;
	}
	run_all(&options, runs, count);
	others = report__others(runs, count);
	if (others)
		report__table(runs, others, stdout);
	report__papers(runs, count, stdout);
	if (others < count)
		report__shapes(runs + others, count - others, stdout);
	return report__json(runs, count, options.out);
}
