// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "collect/capture.h"
#include "config_json.h"
#include "cpus.h"
#include "probe/counters.h"
#include "probe/user_rows.h"
#include "report/lines.h"
#include "report/pipeline.h"
#include "report/sink.h"
#include "target/finder.h"
#include "vapro.skel.h"

#define SETTLE_NS 300000000ULL /* a window ends this much after its last bin: everything of it is drained by then */
#define BUSY_NS 10000000L      /* sleeps of the loop */
#define CALM_NS 50000000L
#define IDLE_NS 200000000L
#define RESCAN_NS 2000000000ULL
#define ALERT_NS 500000000ULL
#define IO_LINGER_S 5 /* IO stays traced this long after it was worth it */

/* Events go to the analysis and, while that works, to the capture. */
struct tee {
	struct stream_sink sink; /* first */
	struct stream_sink *pipeline, *capture;
	int capture_status;
};

struct daemon {
	const struct daemon_options *options;
	char host[256];
	struct tee tee;
	struct line_sink *lines;
	struct counters *counters;
	struct kernel_side *side;
	struct attacher *attacher;
	struct row_attacher *rows;
	unsigned int user_rows[USER_ROWS_MAX];
	struct resolver *resolver;
	struct collector *collector;
	struct watch *watch;
	struct finder *finder; /* or NULL: then whoever executes something is looked at for a while */
	struct governor governor;
	struct costs costs;
	struct stream_clock clock;
	uint64_t begin_ns;		   /* of the run, CLOCK_MONOTONIC */
	uint64_t window_begin, window_end; /* UTC, bin borders */
	uint64_t governed_to, resumed_at;
	uint64_t next_second;
	double cpu_at_window;
	uint64_t hits;
	int io_linger;
	uint64_t scanned_at;
	bool capture_failed, output_failed, ring_warned, mappings_lost, thinned;
};

static uint64_t mono_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static uint64_t to_utc(const struct daemon *daemon, uint64_t mono)
{
	return mono + (daemon->clock.utc_ns - daemon->clock.mono_ns);
}

static uint64_t to_mono(const struct daemon *daemon, uint64_t utc)
{
	return utc - (daemon->clock.utc_ns - daemon->clock.mono_ns);
}

/* Our own and the confined readers'. */
static double cpu_seconds(void)
{
	static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
	double seconds = 0;

	for (size_t i = 0; i < sizeof(whose) / sizeof(whose[0]); i++) {
		struct rusage usage;

		getrusage(whose[i], &usage);
		seconds += (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
			   1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	}
	return seconds;
}

static int tee_put(struct stream_sink *sink, const struct stream_event *event)
{
	struct tee *tee = (struct tee *)sink;

	if (tee->capture && !tee->capture_status)
		tee->capture_status = stream__put(tee->capture, event);
	return stream__put(tee->pipeline, event);
}

static void on_event(void *ctx, const struct kernel_record *record)
{
	struct daemon *daemon = ctx;

	if (record->type == KERNEL_EXEC)
		watch__exec(daemon->watch, (pid_t)record->tgid, mono_now());
	else if (record->type == KERNEL_UNKNOWN)
		watch__heard_of(daemon->watch, (pid_t)record->tgid, mono_now());
	else if (record->type == KERNEL_OUTLINED)
		watch__outlined(daemon->watch, (pid_t)record->tgid, record->address);
}

static int fail(const char *format, const char *what)
{
	fprintf(stderr, "vaprod: ");
	fprintf(stderr, format, what);
	fputc('\n', stderr);
	return EXIT_FAILED;
}

static enum vapro_workload_source workload_source(const struct daemon *daemon)
{
	return counters__count(daemon->counters) ? VAPRO_BY_INSTRUCTIONS : VAPRO_BY_ARGUMENTS;
}

/* What can be counted decides what everything else rests on. */
static int look_for_counters(struct daemon *daemon)
{
	enum vapro_counters wanted = daemon->options->config.counters;

	daemon->counters = counters__new(&daemon->options->config);
	if (!daemon->counters)
		return fail("%s", "out of memory");
	if (counters__count(daemon->counters) || wanted == VAPRO_COUNTERS_AUTO || wanted == VAPRO_COUNTERS_NONE)
		return EXIT_OK;
	fail("--counters: %s", counters__reason(daemon->counters));
	return EXIT_REFUSED;
}

/* Outputs first: they must not cost a probed process anything when they cannot be had. */
static int open_outputs(struct daemon *daemon)
{
	const struct daemon_options *options = daemon->options;
	char *tunables;

	daemon->tee.sink.put = tee_put;
	daemon->lines = line_sink__open(options->output, options->to_stdout);
	if (!daemon->lines) {
		fprintf(stderr, "vaprod: cannot write %s: %s\n", options->output ? options->output : "standard output",
			strerror(errno));
		return EXIT_FAILED;
	}
	daemon->tee.pipeline =
	    pipeline__new(&options->config, workload_source(daemon), daemon->host, daemon->lines, options->summary);
	if (!daemon->tee.pipeline)
		return fail("%s", "out of memory");
	if (!options->capture)
		return EXIT_OK;
	tunables = config__to_text(&options->config);
	daemon->tee.capture = tunables ? capture__create(options->capture, tunables) : NULL;
	free(tunables);
	if (!daemon->tee.capture) {
		fprintf(stderr, "vaprod: cannot write capture %s: %s\n", options->capture, strerror(errno));
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

static enum line_fact told(enum fact fact)
{
	return fact == FACT_UNKNOWN ? LINE_UNKNOWN : fact == FACT_YES ? LINE_YES : LINE_NO;
}

static struct line_facts learnt_facts(const struct daemon *daemon)
{
	const struct facts *facts = kernel_side__facts(daemon->side);
	const struct costs *costs = &daemon->costs;
	enum fact emulation = FACT_UNKNOWN;

	/* about twice on bare metal, far more where each step leaves a virtual machine */
	if (costs->call_ns > 0 && costs->stepped_call_ns > 0)
		emulation = costs->stepped_call_ns > 1.3 * costs->call_ns ? FACT_YES : FACT_NO;
	return (struct line_facts){.return_syscall = told(facts->return_syscall),
				   .nop5_syscall = told(facts->nop5_syscall),
				   .emulation = told(emulation),
				   .thread_filter = told(facts->thread_filter)};
}

static void tell_hello(struct daemon *daemon)
{
	struct line_costs costs = {.entry_ns = daemon->costs.entry_ns,
				   .return_ns = fmax(0, daemon->costs.call_ns - daemon->costs.entry_ns),
				   .stepped_ns = daemon->costs.stepped_call_ns,
				   .nop5_ns = daemon->costs.nop5_ns > 0 ? daemon->costs.nop5_ns : NAN,
				   .syscall_ns = daemon->costs.syscall_ns,
				   .bystander_ns = daemon->costs.bystander_ns};
	struct line_rung ladder[RUNGS];
	struct line_facts facts = learnt_facts(daemon);
	size_t counter_count;
	const struct counter_line *found = counters__lines(daemon->counters, &counter_count);
	struct line_counter *counters = calloc(counter_count + 1, sizeof(*counters));
	struct line_hello hello = {.utc_ns = daemon->clock.utc_ns,
				   .host = daemon->host,
				   .version = VAPRO_VERSION,
				   .rung = ladder_rung_name[kernel_side__rung(daemon->side)],
				   .pmu_available = counters__count(daemon->counters),
				   .counters = counters,
				   .counter_count = counters ? (uint32_t)counter_count : 0,
				   .workload_source = workload_source(daemon),
				   .costs = &costs,
				   .config = &daemon->options->config,
				   .clock = daemon->clock,
				   .ladder = ladder,
				   .ladder_count = RUNGS,
				   .facts = &facts};
	struct stream_event event = {.type = STREAM_LINE};
	struct utsname kernel;
	char *line;

	uname(&kernel);
	hello.kernel = kernel.release;
	if (!hello.pmu_available)
		hello.pmu_reason = counters__reason(daemon->counters);
	for (size_t i = 0; i < hello.counter_count; i++)
		counters[i] = (struct line_counter){.name = found[i].name,
						    .provider = found[i].provider,
						    .available = found[i].available,
						    .reason = found[i].reason[0] ? found[i].reason : NULL};
	for (int i = 0; i < RUNGS; i++) {
		const struct kernel_rung *rung = &kernel_side__rungs(daemon->side)[i];

		ladder[i] = (struct line_rung){.name = ladder_rung_name[i],
					       .tried = rung->tried,
					       .works = rung->works,
					       .reason = rung->reason[0] ? rung->reason : NULL};
	}
	line = lines__hello(&hello);
	event.line = line;
	if (line)
		stream__put(&daemon->tee.sink, &event);
	free(line);
	free(counters);
}

static int set_up(struct daemon *daemon, char *err, size_t err_size)
{
	const struct daemon_options *options = daemon->options;
	char finder_err[256];
	int status = EXIT_FAILED, user_rows;

	user_rows = user_rows__add(options->config.functions, daemon->user_rows, err, err_size);
	if (user_rows < 0)
		return EXIT_FAILED;
	daemon->side = kernel_side__load(&options->config, daemon->counters, err, err_size, &status);
	if (!daemon->side)
		return status;
	/* before what a probe costs is measured: reading them is part of it */
	status = counters__arm(daemon->counters, kernel_side__bpf(daemon->side));
	if (status) {
		snprintf(err, err_size, "the kernel does not take the counters: %s", strerror(-status));
		return EXIT_FAILED;
	}
	if (calibrate__run(daemon->side, options->config.io != VAPRO_IO_OFF, &daemon->costs, err, err_size))
		fprintf(stderr, "vaprod: %s; overhead is not known\n", err);
	daemon->attacher = attacher__new(daemon->side, options->config.learn_s);
	daemon->rows = row_attacher__new(daemon->side, &daemon->costs,
					 options->config.overhead_cap_pct / 100 * options->config.function_share);
	daemon->resolver = resolver__new(daemon->side, &daemon->tee.sink, daemon->host, &options->config);
	daemon->collector = daemon->resolver
				? collector__new(daemon->side, daemon->resolver, &daemon->tee.sink, on_event, daemon)
				: NULL;
	if (!daemon->attacher || !daemon->rows || !daemon->collector) {
		snprintf(err, err_size, "out of memory");
		return EXIT_FAILED;
	}
	if (counters__count(daemon->counters))
		collector__count(daemon->collector, daemon->counters);
	daemon->finder = finder__new(finder_err, sizeof(finder_err));
	daemon->watch = watch__new(&(struct watch_parts){.side = daemon->side,
							 .attacher = daemon->attacher,
							 .resolver = daemon->resolver,
							 .collector = daemon->collector,
							 .sink = &daemon->tee.sink,
							 .host = daemon->host,
							 .costs = &daemon->costs,
							 .no_return = options->config.no_return,
							 .io = options->config.io != VAPRO_IO_OFF,
							 .finds = daemon->finder != NULL,
							 .rows = daemon->rows,
							 .threads = options->config.threads,
							 .user_rows = daemon->user_rows,
							 .user_row_count = (size_t)user_rows},
				   &options->selection);
	if (!daemon->watch) {
		snprintf(err, err_size, "out of memory");
		return EXIT_FAILED;
	}
	if (!daemon->finder)
		watch__warn(daemon->watch, "no_finder", 0,
			    "%s: an MPI library that is mapped more than 2 s after exec may be missed", finder_err);
	/* of others, what is executed matters only where MPI may be in the executable of one that is selected */
	kernel_side__bpf(daemon->side)->data->tell_execs =
	    !daemon->finder || options->selection.glob_count || options->selection.ancestor;
	if (kernel_side__watch_tasks(daemon->side, err, err_size))
		return EXIT_REFUSED;
	return EXIT_OK;
}

static void begin(struct daemon *daemon)
{
	uint64_t span = (uint64_t)(daemon->options->config.window_s * 1e9);

	governor__init(&daemon->governor, daemon->options->config.overhead_cap_pct, mono_now());
	daemon->begin_ns = mono_now();
	daemon->next_second = daemon->begin_ns + 1000000000ULL;
	daemon->window_begin = to_utc(daemon, daemon->begin_ns) / VAPRO_BIN_NS * VAPRO_BIN_NS;
	daemon->window_end = daemon->window_begin + span / VAPRO_BIN_NS * VAPRO_BIN_NS;
	daemon->cpu_at_window = cpu_seconds();
}

static void end_window(struct daemon *daemon, uint64_t end_utc, bool last)
{
	struct stream_event event = {.type = STREAM_WINDOW};
	uint64_t begin = to_mono(daemon, daemon->window_begin), end = to_mono(daemon, end_utc);
	uint64_t stride = (uint64_t)(daemon->options->config.window_s * 1e9 * 2 / 3);
	double cpu = cpu_seconds();

	if (daemon->governor.paused_until_ns && end > daemon->governed_to) {
		watch__governed(daemon->watch, daemon->governed_to, end);
		daemon->governed_to = end;
	}
	watch__end_window(daemon->watch, begin, end);
	event.window = (struct stream_window){.begin_ns = daemon->window_begin,
					      .end_ns = end_utc,
					      .last = last,
					      .daemon_cpu_pct =
						  (cpu - daemon->cpu_at_window) / ((double)(end - begin) * 1e-9) * 100};
	if (stream__put(&daemon->tee.sink, &event))
		fail("%s", "out of memory: this window is lost");
	daemon->cpu_at_window = cpu;
	daemon->window_begin = end_utc;
	daemon->window_end = end_utc + stride / VAPRO_BIN_NS * VAPRO_BIN_NS;
	if (!last)
		collector__set_clock(daemon->collector, &daemon->clock);
	line_sink__flush(daemon->lines);
}

/* Outputs and images that fail are told once and do not stop the run; the exit code remembers. */
static void check_outputs(struct daemon *daemon)
{
	char text[512];

	if (daemon->tee.capture_status && !daemon->capture_failed) {
		daemon->capture_failed = true;
		watch__warn(daemon->watch, "capture_failed", 0,
			    "capture %s: %s; it ends here and can be analysed up to here", daemon->options->capture,
			    strerror(-daemon->tee.capture_status));
	}
	while (resolver__trouble(daemon->resolver, text, sizeof(text)))
		watch__warn(daemon->watch, "image_unreadable", 0, "%s; its call-sites stay without names", text);
	if (line_sink__error(daemon->lines) && !daemon->output_failed) {
		daemon->output_failed = true;
		fprintf(stderr, "vaprod: %s; the run goes on\n", line_sink__error(daemon->lines));
	}
	if (collector__records_lost(daemon->collector) && !daemon->ring_warned) {
		daemon->ring_warned = true;
		watch__warn(
		    daemon->watch, "ring_full", 0,
		    "the ring was full: process events were lost and processes may be missed; raise --ring-bytes");
	}
}

static void resume_links(struct daemon *daemon, uint64_t now)
{
	int status, rows_status;

	kernel_side__bpf(daemon->side)->data->generation++;
	status = attacher__resume(daemon->attacher);
	rows_status = row_attacher__resume(daemon->rows);
	if (!status)
		status = rows_status;
	watch__governed(daemon->watch, daemon->governed_to, now);
	daemon->resumed_at = now;
	if (status)
		watch__warn(daemon->watch, "attach_failed", 0, "links could not be opened again: %s",
			    strerror(-status));
}

static void govern(struct daemon *daemon, uint64_t now)
{
	double debt;

	daemon->thinned = watch__thin_rows(daemon->watch, now);
	debt = watch__charge(daemon->watch, &daemon->governor, now);
	if (attacher__paused(daemon->attacher)) {
		if (governor__resume(&daemon->governor, now))
			resume_links(daemon, now);
		return;
	}
	if (debt <= 0)
		return;
	if (watch__thin_costliest(daemon->watch, debt, now)) {
		daemon->thinned = true;
		return;
	}
	attacher__pause(daemon->attacher);
	row_attacher__pause(daemon->rows);
	kernel_side__bpf(daemon->side)->data->generation++;
	governor__pause(&daemon->governor, now, debt);
	daemon->governed_to = now;
	if (daemon->governor.pauses == 1)
		watch__warn(daemon->watch, "governed", 0,
			    "probes cost more than the cap of %g %%: they are closed and opened in turns; the gaps are "
			    "uncovered, reason governed",
			    daemon->options->config.overhead_cap_pct);
}

static void progress(const struct daemon *daemon, uint64_t now)
{
	if (daemon->options->quiet || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\rvaprod: %4.0f s, %zu processes, %llu calls%s \033[K",
		(double)(now - daemon->begin_ns) * 1e-9, watch__alive(daemon->watch),
		(unsigned long long)watch__hits(daemon->watch),
		attacher__paused(daemon->attacher) ? ", over the overhead cap: paused" : "");
}

static void every_second(struct daemon *daemon, uint64_t now)
{
	struct watch_second second;
	const char *moved;
	char text[512];

	watch__second(daemon->watch, now, &second);
	if (daemon->options->config.io == VAPRO_IO_AUTO) {
		if (second.io_worth)
			daemon->io_linger = IO_LINGER_S;
		else if (!second.in_io && daemon->io_linger)
			daemon->io_linger--;
		if ((daemon->io_linger > 0) != kernel_side__watches_syscalls(daemon->side))
			kernel_side__watch_syscalls(daemon->side, daemon->io_linger > 0);
	}
	moved = attacher__check(daemon->attacher, second.threads);
	if (moved)
		watch__warn(daemon->watch, "returns_missing", 0,
			    "%s: entries and returns departed; its probe moved to the function's entry", moved);
	if (counters__refresh(daemon->counters, kernel_side__bpf(daemon->side), text, sizeof(text)))
		watch__warn(daemon->watch, "cpus_changed", 0, "%s", text);
	line_sink__flush(daemon->lines);
	check_outputs(daemon);
	progress(daemon, now);
}

/* How long the loop may sleep: 10 ms while much comes in, up to 200 ms when nobody is watched. */
static long pause_ns(struct daemon *daemon, int drained, uint64_t hits)
{
	bool busy = drained > 256 || hits - daemon->hits > 500;

	daemon->hits = hits;
	/* who was over the cap once will be again soon after links open */
	if (busy || daemon->thinned || attacher__paused(daemon->attacher) || mono_now() < daemon->resumed_at + ALERT_NS)
		return BUSY_NS;
	return watch__alive(daemon->watch) ? CALM_NS : IDLE_NS;
}

/* Why the loop should end now, or NULL. */
static const char *reason_to_end(const struct daemon *daemon, uint64_t now)
{
	const struct daemon_options *options = daemon->options;

	if (*options->stop)
		return "signal";
	if (options->duration_s > 0 && (double)(now - daemon->begin_ns) >= options->duration_s * 1e9)
		return "duration";
	if (options->selection.pid_count && !options->selection.glob_count && !watch__alive(daemon->watch) &&
	    !watch__expects(daemon->watch))
		return "targets_gone";
	return NULL;
}

static void on_mapped(void *ctx, pid_t pid, const char *path)
{
	struct daemon *daemon = ctx;

	watch__mapped(daemon->watch, pid, path, mono_now());
}

/* New mappings; where some could not be told, everybody is looked at, but not all the time. */
static void find(struct daemon *daemon, uint64_t now)
{
	uint64_t lost;

	if (daemon->finder) {
		finder__drain(daemon->finder, on_mapped, daemon, &lost);
		daemon->mappings_lost |= lost > 0;
	}
	if (!daemon->mappings_lost || now < daemon->scanned_at + RESCAN_NS)
		return;
	daemon->mappings_lost = false;
	daemon->scanned_at = now;
	watch__rescan(daemon->watch, now);
}

/* Sleeps, less where many mappings wait to be read, but never so little that the loop turns over 100 times a second. */
static void rest(const struct daemon *daemon, long ns)
{
	struct timespec left = {.tv_nsec = ns};
	uint64_t slept = mono_now();

	if (daemon->finder) {
		finder__wait(daemon->finder, ns);
		slept = mono_now() - slept;
		left.tv_nsec = slept < BUSY_NS ? BUSY_NS - (long)slept : 0;
	}
	if (left.tv_nsec && !*daemon->options->stop)
		nanosleep(&left, NULL);
}

static const char *loop(struct daemon *daemon)
{
	const char *reason = NULL;

	while (!reason) {
		uint64_t now = mono_now();
		int drained = collector__drain_ring(daemon->collector);

		collector__drain_bins(daemon->collector, now);
		find(daemon, now);
		watch__poll(daemon->watch, now);
		attacher__learn(daemon->attacher, now);
		govern(daemon, now);
		if (now >= daemon->next_second) {
			every_second(daemon, now);
			daemon->next_second = now + 1000000000ULL;
		}
		if (to_utc(daemon, now) >= daemon->window_end + SETTLE_NS)
			end_window(daemon, daemon->window_end, false);
		reason = reason_to_end(daemon, now);
		if (!reason)
			rest(daemon, pause_ns(daemon, drained, watch__hits(daemon->watch)));
	}
	return reason;
}

/* Probes go first, then everything they left is drained, and the last window is told. */
static void finish(struct daemon *daemon, const char *reason)
{
	uint64_t now = mono_now(), end;
	struct line_bye bye = {.host = daemon->host, .exit_reason = reason};
	char *line;

	if (!daemon->options->quiet && isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	attacher__pause(daemon->attacher);
	row_attacher__pause(daemon->rows);
	kernel_side__watch_syscalls(daemon->side, false);
	collector__drain_ring(daemon->collector);
	while (to_utc(daemon, now) >= daemon->window_end + SETTLE_NS)
		end_window(daemon, daemon->window_end, false);
	watch__detach_all(daemon->watch, now, reason);
	collector__drain_bins(daemon->collector, now + 2 * VAPRO_BIN_NS);
	end = (to_utc(daemon, now) + VAPRO_BIN_NS - 1) / VAPRO_BIN_NS * VAPRO_BIN_NS;
	end_window(daemon, end, true);
	check_outputs(daemon);
	pipeline__totals(daemon->tee.pipeline, &bye.totals);
	bye.utc_ns = to_utc(daemon, mono_now());
	line = lines__bye(&bye);
	if (line)
		stream__put(&daemon->tee.sink, &(struct stream_event){.type = STREAM_LINE, .line = line});
	free(line);
	stream__put(&daemon->tee.sink, &(struct stream_event){.type = STREAM_END});
}

static void tear_down(struct daemon *daemon)
{
	watch__free(daemon->watch);
	finder__free(daemon->finder);
	attacher__free(daemon->attacher);
	row_attacher__free(daemon->rows);
	functions__clear();
	collector__free(daemon->collector);
	resolver__free(daemon->resolver);
	kernel_side__free(daemon->side);
	counters__free(daemon->counters);
}

int daemon__run(const struct daemon_options *options)
{
	struct daemon daemon = {.options = options};
	struct sched_param batch = {0};
	char err[512] = "";
	int status, watched;

	if (gethostname(daemon.host, sizeof(daemon.host) - 1))
		snprintf(daemon.host, sizeof(daemon.host), "localhost");
	if (cpus__settle(options->cpus, err, sizeof(err))) {
		fprintf(stderr, "vaprod: %s\n", err);
		return EXIT_USAGE;
	}
	sched_setscheduler(0, SCHED_BATCH, &batch);
	status = look_for_counters(&daemon);
	if (!status)
		status = open_outputs(&daemon);
	if (!status) {
		status = set_up(&daemon, err, sizeof(err));
		if (status)
			fprintf(stderr, "vaprod: %s\n", err);
	}
	if (!status) {
		collector__set_clock(daemon.collector, &daemon.clock);
		tell_hello(&daemon);
		begin(&daemon);
		watched = watch__scan(daemon.watch, daemon.begin_ns, err, sizeof(err));
		if (watched < 0) {
			fprintf(stderr, "vaprod: %s\n", err);
			status = EXIT_FAILED;
		}
		line_sink__flush(daemon.lines);
		if (options->config.io == VAPRO_IO_ON)
			kernel_side__watch_syscalls(daemon.side, true);
		if (!status && options->ready)
			options->ready(options->ready_ctx);
		finish(&daemon, status ? err : loop(&daemon));
	}
	tear_down(&daemon);
	if (stream__close(daemon.tee.capture) && !daemon.capture_failed) {
		fprintf(stderr, "vaprod: capture %s could not be completed\n", options->capture);
		daemon.capture_failed = true;
	}
	stream__close(daemon.tee.pipeline);
	if (line_sink__close(daemon.lines) && !daemon.output_failed) {
		fprintf(stderr, "vaprod: the output could not be completed\n");
		daemon.output_failed = true;
	}
	return status ? status : daemon.capture_failed || daemon.output_failed ? EXIT_FAILED : EXIT_OK;
}
