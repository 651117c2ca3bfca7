// SPDX-License-Identifier: GPL-2.0-or-later
/* Opens, loads and makes what the daemon needs before its loop, and emits the hello line. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/log.h"
#include "capture/capture.h"
#include "capture/output_file.h"
#include "config/config_json.h"
#include "daemon/daemon_private.h"
#include "config/rules.h"
#include "daemon/privileges.h"
#include "probe/pmu/os_factors.h"
#include "report/lines.h"
#include "pipeline/pipeline.h"
#include "probe/bpf/sampler.h"
#include "probe/bpf/kernel_side.h"

static int tee_put(struct stream_sink *sink, const struct stream_event *event)
{
	struct tee *tee = (struct tee *)sink;
	struct stream_event published;

	if (tee->publishing && !tee->publishing_status) {
		published = *event;
		tee->publishing_status = publishing__put(tee->publishing, &published);
		event = &published; /* facts state what was discarded */
	}
	if (tee->capture && !tee->capture_status)
		tee->capture_status = stream__put(tee->capture, event);
	if (tee->store && !tee->store_failed)
		tee->store_failed = run_store__put(tee->store, event) != 0;
	/* without events of a job no job is analysed, and windows are empty */
	if (tee->no_analysis && event->type != STREAM_LINE && event->type != STREAM_CLOCK &&
	    event->type != STREAM_WINDOW && event->type != STREAM_END)
		return 0;
	return stream__put(pipeline__sink(tee->pipeline), event);
}

static void on_event(void *ctx, const struct kernel_record *record)
{
	struct daemon *daemon = ctx;

	if (record->type == KERNEL_EXEC)
		tracker__exec(daemon->tracker, (pid_t)record->tgid, record->time_ns, mono_now());
	else if (record->type == KERNEL_UNKNOWN)
		tracker__is_candidate(daemon->tracker, (pid_t)record->tgid, mono_now());
	else if (record->type == KERNEL_OUTLINED)
		tracker__outlined(daemon->tracker, (pid_t)record->tgid, record->address);
	else if (record->type == KERNEL_EXIT)
		tracker__thread_ended(daemon->tracker, (pid_t)record->tgid, (pid_t)record->tid, record->time_ns);
	else if (record->type == KERNEL_STOPPED)
		tracker__stopped(daemon->tracker, (pid_t)record->tgid);
}

static enum vapro_workload_source workload_source(const struct daemon *daemon)
{
	return counters__count(daemon->counters) ? VAPRO_BY_INSTRUCTIONS : VAPRO_BY_ARGUMENTS;
}

/* Returns whether requested counters are missing. */
static bool counters_missed(const struct daemon *daemon)
{
	enum vapro_counters wanted = daemon->options->config.counters;

	return !counters__count(daemon->counters) && wanted != VAPRO_COUNTERS_AUTO && wanted != VAPRO_COUNTERS_NONE;
}

int daemon__look_for_counters(struct daemon *daemon)
{
	daemon->counters = counters__new(&daemon->options->config);
	if (!daemon->counters) {
		log__error("out of memory");
		return EXIT_FAILED;
	}
	if (!counters_missed(daemon))
		return EXIT_OK;
	log__error("--counters: %s", counters__reason(daemon->counters));
	return EXIT_REFUSED;
}

/* Returns the bytes held for a reader that has stopped: a small part of the memory cap. */
static size_t backlog(const struct vapro_config *config)
{
	uint64_t part = config->memory_cap / 16;

	return part && part < LINE_SINK_BACKLOG ? part : LINE_SINK_BACKLOG;
}

/* Opens what receives the events themselves. Returns an exit code. */
static int open_streams(struct daemon *daemon, const char *tunables)
{
	const struct daemon_options *options = daemon->options;
	char err[512];

	if (options->capture) {
		daemon->tee.capture = capture__append(options->capture, tunables);
		if (!daemon->tee.capture) {
			log__error("cannot write capture %s: %s", options->capture, output_file__reason(errno));
			return EXIT_FAILED;
		}
	}
	if (options->profiles) {
		daemon->tee.store = run_store__new(options->profiles, daemon->host,
						   workload_source(daemon) == VAPRO_BY_INSTRUCTIONS, err, sizeof(err));
		if (!daemon->tee.store) {
			log__error("--profiles: %s", err);
			return EXIT_FAILED;
		}
	}
	if (options->publish.broker.servers) {
		daemon->tee.publishing = publishing__new(&options->publish, daemon->host, tunables, err, sizeof(err));
		if (!daemon->tee.publishing) {
			log__error("--broker: %s", err);
			return EXIT_FAILED;
		}
		daemon->tee.no_analysis = options->publish.only;
	}
	return EXIT_OK;
}

int daemon__open_outputs(struct daemon *daemon)
{
	const struct daemon_options *options = daemon->options;
	char *tunables;
	int status;

	daemon->tee.sink.put = tee_put;
	daemon->lines = line_sink__append(options->output, options->to_stdout, backlog(&options->config));
	if (!daemon->lines) {
		log__error("cannot write %s: %s", options->output ? options->output : "standard output",
			   output_file__reason(errno));
		return EXIT_FAILED;
	}
	status = line_sink__bound(daemon->lines, record_filter__choice(options->records), options->output_most)
		     ? EXIT_FAILED
		     : daemon__open_metrics(daemon);
	if (status || (!options->capture && !options->publish.broker.servers && !options->profiles))
		return status;
	tunables = config__to_text(&options->config);
	if (!tunables) {
		log__error("out of memory");
		return EXIT_FAILED;
	}
	status = open_streams(daemon, tunables);
	free(tunables);
	return status;
}

/* Takes over the settings that may change. */
static void reload_settings(struct daemon *daemon)
{
	const struct daemon_options *options = daemon->options;
	struct daemon_settings settings;
	char others[512] = "";

	if (!options->reload)
		return;
	if (options->reload(options->reload_ctx, &settings, others, sizeof(others))) {
		tracker__warn(daemon->tracker, "reload_failed", 0, "the settings have an error: those of before hold");
		return;
	}
	if (line_sink__bound(daemon->lines, (enum record_choice)settings.records, settings.output_most))
		log__error("out of memory: all records are written");
	if (*others)
		tracker__warn(daemon->tracker, "restart_needed", 0,
			      "settings that changed hold from the next start of vaprod on: %s", others);
}

/* The capture is one run in one file and stays open. */
void daemon__reopen_output(struct daemon *daemon)
{
	char text[512];

	*daemon->options->reopen = 0;
	if (line_sink__reopen(daemon->lines, text, sizeof(text)))
		tracker__warn(daemon->tracker, "reopen_failed", 0, "%s", text);
	else
		daemon->output_warned = false;
	reload_settings(daemon);
}

static void learnt_factors(const struct daemon *daemon, struct line_factor *lines)
{
	struct os_factor factors[OS_FACTORS];
	struct os_facts facts;

	os_factors__learn(&facts, daemon->options->config.interrupts != VAPRO_OFF);
	os_factors__of(&facts, factors);
	for (int i = 0; i < OS_FACTORS; i++)
		lines[i] = (struct line_factor){factors[i].name, factors[i].source, factors[i].available,
						factors[i].approx, factors[i].reason};
}

void daemon__emit_hello(struct daemon *daemon)
{
	struct line_factor factors[OS_FACTORS];
	struct line_pause pauses[KERNEL_PAUSES];
	struct line_costs costs = {.entry_ns = daemon->costs.entry_ns,
				   .return_ns = fmax(0, daemon->costs.call_ns - daemon->costs.entry_ns),
				   .nop5_ns = daemon->costs.nop5_ns > 0 ? daemon->costs.nop5_ns : NAN,
				   .syscall_ns = daemon->costs.syscall_ns,
				   .bystander_ns = daemon->costs.bystander_ns,
				   .beside_ns = daemon->costs.beside_ns,
				   .sample_ns = daemon->sampler ? daemon->costs.sample_ns : NAN,
				   .pauses = pauses,
				   .pause_count = KERNEL_PAUSES};
	struct line_mode modes[ATTACH_MODES];
	size_t counter_count;
	const struct counter_line *found = counters__lines(daemon->counters, &counter_count);
	struct line_counter *counters = calloc(counter_count + 1, sizeof(*counters));
	struct line_hello hello = {.utc_ns = daemon->clock.utc_ns,
				   .host = daemon->host,
				   .version = VAPRO_VERSION,
				   .mode = attach_mode_name[kernel_side__mode(daemon->side)],
				   .pmu_available = counters__count(daemon->counters),
				   .counters = counters,
				   .counter_count = counters ? (uint32_t)counter_count : 0,
				   .factors = factors,
				   .factor_count = OS_FACTORS,
				   .workload_source = workload_source(daemon),
				   .costs = &costs,
				   .config = &daemon->options->config,
				   .clock = daemon->clock,
				   .modes = modes,
				   .mode_count = ATTACH_MODES};
	struct stream_event event = {.type = STREAM_LINE};
	struct utsname kernel;
	char *line;

	for (uint32_t i = 0; i < KERNEL_PAUSES; i++)
		pauses[i] = (struct line_pause){.from_ns = (double)((uint64_t)KERNEL_PAUSE_NS << i),
						.entry_ns = daemon->costs.pause_ns[0][i],
						.return_ns = daemon->costs.pause_ns[1][i]};
	learnt_factors(daemon, factors);
	uname(&kernel);
	hello.kernel = kernel.release;
	if (!hello.pmu_available)
		hello.pmu_reason = counters__reason(daemon->counters);
	for (size_t i = 0; i < hello.counter_count; i++)
		counters[i] = (struct line_counter){.name = found[i].name,
						    .provider = found[i].provider,
						    .available = found[i].available,
						    .reason = found[i].reason[0] ? found[i].reason : NULL};
	for (int i = 0; i < ATTACH_MODES; i++) {
		const struct attach_mode_of *mode = &kernel_side__modes(daemon->side)[i];

		modes[i] = (struct line_mode){
		    .name = attach_mode_name[i], .works = mode->works, .reason = mode->reason[0] ? mode->reason : NULL};
	}
	line = lines__hello(&hello);
	event.line = (struct stream_line){RECORD_OBJECT_hello, line};
	if (line)
		stream__put(&daemon->tee.sink, &event);
	free(line);
	free(counters);
}

/* Makes the analysis once the counted events are known. Returns 0 or -ENOMEM. */
static int make_pipeline(struct daemon *daemon)
{
	const struct daemon_options *options = daemon->options;
	const char *const named[RULES_NAMED] = {counters__named(daemon->counters, 0),
						counters__named(daemon->counters, 1)};

	daemon->tee.pipeline =
	    pipeline__new(&options->config, workload_source(daemon), daemon->host, daemon->lines, options->summary);
	if (daemon->tee.pipeline && options->sentences >= 0) {
		daemon->narrator = narrator__new(options->sentences, options->width);
		pipeline__narrate(daemon->tee.pipeline, daemon->narrator);
	}
	return daemon->tee.pipeline ? pipeline__name_events(daemon->tee.pipeline, named) : -ENOMEM;
}

/* Warns of missing capabilities, since much fails in silence without them: an unseen process looks absent. */
static void warn_of_capabilities(struct daemon *daemon)
{
	uint64_t held = privileges__held();

	for (size_t i = 0; i < privilege_count; i++) {
		if (privileges__missing(&privileges[i], held, NULL))
			tracker__warn(daemon->tracker, "missing_capability", 0, "%s is missing: %s", privileges[i].name,
				      privileges[i].consequence);
	}
}

/* Makes what attaches, collects and names, by calibrated costs. Returns -ENOMEM where a part is missing. */
static int make_parts(struct daemon *daemon, struct governor *governor)
{
	const struct vapro_config *config = &daemon->options->config;

	daemon->attacher = attacher__new(daemon->side, config->learn_s);
	governor__init(governor, config->overhead_budget_pct, config->overhead_cap_pct,
		       governor__seed(daemon->host, mono_now()));
	daemon->rows =
	    row_attacher__new(daemon->side, &daemon->costs, governor->budget * config->function_share, governor->seed);
	daemon->resolver = resolver__new(daemon->side, &daemon->tee.sink, daemon->host, config);
	daemon->collector = daemon->resolver
				? collector__new(daemon->side, daemon->resolver, &daemon->tee.sink, on_event, daemon)
				: NULL;
	if (!daemon->attacher || !daemon->rows || !daemon->collector)
		return -ENOMEM;
	if (counters__count(daemon->counters))
		collector__count(daemon->collector, daemon->counters);
	return 0;
}

/* Makes the tracker and what wakes its loop. Returns -ENOMEM where one is missing. */
static int make_tracker(struct daemon *daemon, const struct governor *governor, size_t user_row_count, char *finder_err,
			size_t finder_err_size)
{
	const struct daemon_options *options = daemon->options;

	daemon->finder = finder__new(finder_err, finder_err_size);
	daemon->sleeper = sleeper__new(daemon->side, daemon->finder);
	daemon->tracker = tracker__new(&(struct tracker_parts){.side = daemon->side,
							       .attacher = daemon->attacher,
							       .resolver = daemon->resolver,
							       .collector = daemon->collector,
							       .sink = &daemon->tee.sink,
							       .host = daemon->host,
							       .costs = &daemon->costs,
							       .governor = *governor,
							       .no_return = options->config.no_return,
							       .io = options->config.io != VAPRO_OFF,
							       .finds = daemon->finder != NULL,
							       .rows = daemon->rows,
							       .threads = options->config.threads,
							       .user_rows = daemon->user_rows,
							       .user_row_count = user_row_count},
				       &options->selection);
	return daemon->tracker && daemon->sleeper ? 0 : -ENOMEM;
}

int daemon__set_up(struct daemon *daemon, char *err, size_t err_size)
{
	const struct daemon_options *options = daemon->options;
	char finder_err[256];
	struct governor governor;
	int status = EXIT_FAILED, user_rows;
	bool counts = counters__count(daemon->counters);

	user_rows = user_rows__add(options->config.functions, daemon->user_rows, err, err_size);
	if (user_rows < 0)
		return EXIT_FAILED;
	daemon->side = kernel_side__load(&options->config, daemon->counters, err, err_size, &status);
	if (!daemon->side)
		return status;
	if (counters_missed(daemon)) {
		snprintf(err, err_size, "--counters: %s", counters__reason(daemon->counters));
		return EXIT_REFUSED;
	}
	if (counts && !counters__count(daemon->counters))
		log__warning("%s: workload is assumed from call arguments", counters__reason(daemon->counters));
	if (make_pipeline(daemon)) {
		snprintf(err, err_size, "out of memory");
		return EXIT_FAILED;
	}
	/* counters are armed before calibration, since reading them is part of a probe's cost */
	status = counters__arm(daemon->counters, kernel_side__bpf(daemon->side));
	if (status) {
		snprintf(err, err_size, "the kernel does not take the counters: %s", strerror(-status));
		return EXIT_FAILED;
	}
	if (calibrate__run(daemon->side, options->config.io != VAPRO_OFF, &daemon->costs, err, err_size))
		log__warning("%s; overhead is not known", err);
	daemon__open_inside(daemon);
	if (make_parts(daemon, &governor) ||
	    make_tracker(daemon, &governor, (size_t)user_rows, finder_err, sizeof(finder_err))) {
		snprintf(err, err_size, "out of memory");
		return EXIT_FAILED;
	}
	if (options->config.overhead_cap_pct > 0)
		sleeper__set_costs(daemon->sleeper, &daemon->costs);
	io_tracing__init(&daemon->io, daemon->side, &daemon->costs, options->config.io, governor.budget, mono_now());
	interrupt_timing__init(&daemon->interrupts, daemon->side);
	warn_of_capabilities(daemon);
	if (!daemon->finder)
		tracker__warn(daemon->tracker, "no_finder", 0,
			      "%s: an MPI library that is mapped more than 1.5 s after exec may be missed", finder_err);
	/* execs of untracked processes matter only where a selected one may have MPI in its executable */
	*kernel_side__shared(daemon->side)->report_execs =
	    !daemon->finder || options->selection.glob_count || options->selection.ancestor;
	if (kernel_side__watch_tasks(daemon->side, err, err_size))
		return EXIT_REFUSED;
	return EXIT_OK;
}

void daemon__tear_down(struct daemon *daemon)
{
	status_server__close(daemon->status);
	query_server__close(daemon->queries);
	recalibrate__stop(&daemon->recalibration);
	tracker__free(daemon->tracker);
	sleeper__free(daemon->sleeper);
	finder__free(daemon->finder);
	attacher__free(daemon->attacher);
	row_attacher__free(daemon->rows);
	functions__clear();
	collector__free(daemon->collector);
	resolver__free(daemon->resolver);
	sampler__free(daemon->sampler);
	interrupt_timing__clear(&daemon->interrupts);
	kernel_side__free(daemon->side);
	counters__free(daemon->counters);
}
