// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/daemon_private.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "capture/capture.h"
#include "daemon/cpus.h"
#include "daemon/notify.h"
#include "daemon/privileges.h"
#include "metrics/metrics.h"
#include "report/lines.h"
#include "pipeline/pipeline.h"
#include "daemon/stderr_guard.h"
#include "overhead/enforcer.h"
#include "probe/bpf/kernel_side.h"
#include "sandbox/confine.h"
#include <vapro/bpf/thread_account.h>

#define BUSY_NS 10000000L /* sleeps of the loop */
#define IDLE_NS 200000000L
#define SLACK_NS                                                                                                       \
	4000000UL /* a tick of most kernels: vaprod wakes with one, without another interrupt of the target's CPU */
#define TRIM_EVERY_NS 60000000000ULL  /* returns of unused memory to the kernel */
#define INSIDE_EVERY_NS 4000000000ULL /* drains of samples: their places have names by the end of the window */
#define RESCAN_NS 2000000000ULL
#define LATE_NS 1000000000ULL	   /* delay of a window's end beyond which what came since is divided by windows */
#define PROFILES_NS 10000000000ULL /* for profiles that are left to be written at the end */
#define NAMES_NS 1000000000ULL	   /* for names that are left to be read at the end */

static uint64_t to_utc(const struct daemon *daemon, uint64_t mono)
{
	return mono + (daemon->clock.utc_ns - daemon->clock.mono_ns);
}

static uint64_t to_mono(const struct daemon *daemon, uint64_t utc)
{
	return utc - (daemon->clock.utc_ns - daemon->clock.mono_ns);
}

/* What could be judged decides which functions are left out. */
static void take_result(void *arg, const struct job_result *result)
{
	struct daemon *daemon = arg;

	daemon__meter_result(daemon, result);
	tracker__judged(daemon->tracker, result, to_mono(daemon, result->begin_ns), to_mono(daemon, result->end_ns));
}

static void begin(struct daemon *daemon)
{
	uint64_t span = (uint64_t)(daemon->options->config.window_s * 1e9);

	pipeline__give(daemon->tee.pipeline, take_result, daemon);
	daemon->begin_ns = mono_now();
	daemon->recalibration.due_ns = daemon->begin_ns + RECALIBRATE_EVERY_NS;
	daemon->next_second = daemon->begin_ns; /* at once, to decide whether IO is traced */
	daemon->window_begin = to_utc(daemon, daemon->begin_ns) / VAPRO_BIN_NS * VAPRO_BIN_NS;
	daemon->window_end = daemon->window_begin + span / VAPRO_BIN_NS * VAPRO_BIN_NS;
	daemon->first_window = daemon->window_begin;
	daemon->cpu_at_window = cpu_of_all() * 1e-9;
}

/* Switches interrupt timing on or off for the next window. */
static void time_interrupts(struct daemon *daemon)
{
	struct vapro_stage_request request;

	pipeline__stage_request(daemon->tee.pipeline, &request);
	interrupt_timing__end_window(&daemon->interrupts, daemon->tracker,
				     request.interrupts || daemon__remote_interrupts(daemon));
}

/* Announces what the kernel knows of the clock, at first and when it changes. */
static void announce_clock(struct daemon *daemon)
{
	struct stream_event event = {.type = STREAM_HOST_CLOCK, .host_clock = host_clock__read(daemon->host)};

	if (daemon->host_clock.host && !host_clock__differs(&event.host_clock, &daemon->host_clock))
		return;
	daemon->host_clock = event.host_clock;
	stream__put(&daemon->tee.sink, &event);
}

/* Returns the part of what was counted since a window's begin that is the window's: all of it, unless it ends late. */
static double part_of_window(uint64_t begin, uint64_t end)
{
	uint64_t now = mono_now();

	return now < end + SETTLE_NS + LATE_NS ? 1 : (double)(end - begin) / (double)(now - begin);
}

static void end_window(struct daemon *daemon, uint64_t end_utc, bool last)
{
	struct stream_event event = {.type = STREAM_WINDOW};
	uint64_t begin = to_mono(daemon, daemon->window_begin), end = to_mono(daemon, end_utc);
	uint64_t stride = (uint64_t)(daemon->options->config.window_s * 1e9 * 2 / 3);
	double cpu = cpu_of_all() * 1e-9;

	daemon__drain_inside(daemon);
	tracker__end_window(daemon->tracker, begin, end, part_of_window(begin, end));
	event.window = (struct stream_window){.begin_ns = daemon->window_begin,
					      .end_ns = end_utc,
					      .last = last,
					      .daemon_cpu_pct =
						  (cpu - daemon->cpu_at_window) / ((double)(end - begin) * 1e-9) * 100};
	daemon->window_cpu_pct = event.window.daemon_cpu_pct;
	pipeline__held_elsewhere(daemon->tee.pipeline, resolver__bytes(daemon->resolver));
	announce_clock(daemon);
	io_tracing__end_window(&daemon->io, &event.window, (double)(end - begin) * 1e-9);
	tracker__bystanders_of_window(daemon->tracker, (double)(end - begin) * 1e-9, &event.window.bystander_hits,
				      &event.window.bystander_pct);
	if (stream__put(&daemon->tee.sink, &event))
		log__error("out of memory: this window is lost");
	tracker__analysed(daemon->tracker);
	if (daemon->reporter)
		reporter__window_ended(daemon->reporter, end);
	daemon->cpu_at_window = cpu;
	daemon->window_begin = end_utc;
	daemon->window_end = end_utc + stride / VAPRO_BIN_NS * VAPRO_BIN_NS;
	if (!last) {
		daemon__switch_stage(daemon);
		daemon__select_inside(daemon);
		collector__set_clock(daemon->collector, &daemon->clock);
		if (daemon->options->config.interrupts == VAPRO_AUTO)
			time_interrupts(daemon);
	}
	line_sink__flush(daemon->lines);
	daemon__meter(daemon, !last);
}

/* Reports what happens to the connection to the brokers. */
static void check_publishing(struct daemon *daemon)
{
	char text[512];
	bool trouble;

	if (!daemon->tee.publishing)
		return;
	if (daemon->tee.publishing_status && !daemon->publishing_failed) {
		daemon->publishing_failed = true;
		tracker__warn(daemon->tracker, "publishing_failed", 0, "nothing is published any more: %s",
			      strerror(-daemon->tee.publishing_status));
	}
	while (publishing__news(daemon->tee.publishing, text, sizeof(text), &trouble)) {
		if (trouble)
			tracker__warn(daemon->tracker, "publishing_failed", 0, "%s", text);
		else
			log__info("%s", text);
	}
}

/* Passes on what comes of profiles of jobs that are over: a record, or why there is no profile. */
static void check_profiles(struct daemon *daemon)
{
	bool warning;
	char *text;

	while (daemon->tee.store && run_store__step(daemon->tee.store, &text, &warning)) {
		if (warning)
			tracker__warn(daemon->tracker, "profile_failed", 0, "%s", text);
		else
			stream__put(&daemon->tee.sink,
				    &(struct stream_event){.type = STREAM_LINE, .line = stream__line(text)});
		free(text);
	}
	if (daemon->tee.store_failed && daemon->tee.store) {
		run_store__free(daemon->tee.store);
		daemon->tee.store = NULL;
		tracker__warn(daemon->tracker, "profile_failed", 0, "out of memory: no more profiles are stored");
	}
}

/* Waits until the profiles of jobs that ended with the run are written, at most PROFILES_NS. */
static void finish_profiles(struct daemon *daemon)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	uint64_t until = mono_now() + PROFILES_NS;

	while (daemon->tee.store && run_store__busy(daemon->tee.store) && mono_now() < until) {
		check_profiles(daemon);
		nanosleep(&pause, NULL);
	}
}

/* Reports each failed output or image once; the run goes on, and a failed output sets the exit code. */
static void check_outputs(struct daemon *daemon)
{
	const char *code;
	char text[512];

	if (daemon->tee.capture_status && !daemon->capture_failed) {
		daemon->capture_failed = true;
		tracker__warn(daemon->tracker, "capture_failed", 0,
			      "capture %s: %s; it ends here and can be analysed up to here", daemon->options->capture,
			      strerror(-daemon->tee.capture_status));
	}
	check_publishing(daemon);
	check_profiles(daemon);
	daemon__warn_of_reports(daemon);
	while (resolver__trouble(daemon->resolver, text, sizeof(text)))
		tracker__warn(daemon->tracker, "image_unreadable", 0, "%s; its call-sites stay without names", text);
	while (resolver__nameless(daemon->resolver, text, sizeof(text)))
		tracker__warn(daemon->tracker, "no_source", 0, "%s", text);
	if (line_sink__error(daemon->lines) && !daemon->output_warned) {
		daemon->output_failed = daemon->output_warned = true;
		log__error("%s; the run goes on", line_sink__error(daemon->lines));
	}
	while ((code = line_sink__news(daemon->lines, text, sizeof(text))))
		tracker__warn(daemon->tracker, code, 0, "%s", text);
	if (*kernel_side__shared(daemon->side)->accounts_lost && !daemon->accounts_warned) {
		daemon->accounts_warned = true;
		tracker__warn(
		    daemon->tracker, "accounts_full", 0,
		    "more than %u threads are tracked at once: the kernel's account of further threads is not recorded",
		    KERNEL_ACCOUNTS);
	}
	if (collector__records_lost(daemon->collector) && !daemon->ring_warned) {
		daemon->ring_warned = true;
		tracker__warn(daemon->tracker, "ring_full", 0,
			      "the ring was full: process events were lost and processes may be missed; raise "
			      "ring-bytes in the configuration file");
	}
}

/* Compares a probe's cost with its cost at the start; is not begun while the loop must not be delayed. */
static void recalibrate(struct daemon *daemon, uint64_t now)
{
	struct recalibration *recalibration = &daemon->recalibration;
	double before = daemon->costs.call_ns, found, ratio;

	if (!recalibration->measuring && (now < recalibration->due_ns || daemon->alert || before <= 0))
		return;
	if (!recalibrate__step(recalibration, daemon->side, &found))
		return;
	if (recalibrate__judge(recalibration, before, found, &ratio)) {
		recalibrate__scale(&daemon->costs, ratio);
		row_attacher__scale(daemon->rows, ratio);
		if (daemon->options->config.overhead_cap_pct > 0)
			sleeper__set_costs(daemon->sleeper, &daemon->costs);
		tracker__warn(daemon->tracker, "cost_changed", 0,
			      "probe cost changed from %.0f ns to %.0f ns; overhead figures are rescaled by %.2g",
			      before, daemon->costs.call_ns, ratio);
	}
	recalibration->due_ns = now + (recalibration->doubted_ns > 0 ? RECALIBRATE_SOON_NS : RECALIBRATE_EVERY_NS);
}

/* Gives unused pages of the heap back: what jobs that ended have left lies between what others still use. */
static void trim(struct daemon *daemon, uint64_t now)
{
	if (now < daemon->trim_due_ns)
		return;
	malloc_trim(0);
	daemon->trim_due_ns = now + TRIM_EVERY_NS;
}

static void progress(const struct daemon *daemon, uint64_t now)
{
	size_t alive = tracker__alive(daemon->tracker);

	if (!daemon->options->progress)
		return;
	log__progress("%4.0f s, %zu process%s, %llu calls%s", (double)(now - daemon->begin_ns) * 1e-9, alive,
		      alive == 1 ? "" : "es", (unsigned long long)tracker__hits(daemon->tracker),
		      tracker__is_governed(daemon->tracker) ? "; over budget, some probes closed" : "");
}

static void every_second(struct daemon *daemon, uint64_t now)
{
	struct watch_second second;
	const char *moved;
	char text[512];

	tracker__second(daemon->tracker, now, &second);
	io_tracing__second(&daemon->io, daemon->tracker, &second, now);
	if (daemon->options->config.interrupts == VAPRO_AUTO)
		interrupt_timing__second(&daemon->interrupts, daemon->tracker, &second);
	moved = attacher__check(daemon->attacher, second.threads);
	if (moved)
		tracker__warn(daemon->tracker, "returns_missing", 0,
			      "%s: entries and returns no longer match; its probe moved to the function's entry",
			      moved);
	if (counters__refresh(daemon->counters, kernel_side__bpf(daemon->side), text, sizeof(text)))
		tracker__warn(daemon->tracker, "cpus_changed", 0, "%s", text);
	trim(daemon, now);
	if (now >= daemon->inside_due_ns) {
		daemon__drain_inside(daemon);
		daemon->inside_due_ns = now + INSIDE_EVERY_NS;
	}
	daemon__hop(daemon);
	daemon__take_requests(daemon);
	daemon__see_jobs(daemon, now);
	line_sink__flush(daemon->lines);
	check_outputs(daemon);
	if (daemon->narrator)
		narrator__flush(daemon->narrator);
	progress(daemon, now);
}

/*
 * Returns the loop's next sleep: 10 ms under load or while processes are left to be attached, else until the next bin
 * can be read out, or earlier where a process is to be charged.
 */
static long pause_ns(const struct daemon *daemon, int drained, uint64_t govern_ns)
{
	uint64_t bin_ns = collector__until_bin(daemon->collector, mono_now());

	if (drained > 256 || tracker__is_behind(daemon->tracker))
		return BUSY_NS;
	if (!tracker__alive(daemon->tracker))
		return IDLE_NS;
	return (long)(govern_ns < bin_ns ? govern_ns : bin_ns);
}

/* Returns why the loop ends now, or NULL. */
static const char *reason_to_end(const struct daemon *daemon, uint64_t now)
{
	const struct daemon_options *options = daemon->options;

	if (*options->stop)
		return "signal";
	if (options->duration_s > 0 && (double)(now - daemon->begin_ns) >= options->duration_s * 1e9)
		return "duration";
	if (options->selection.pid_count && !options->selection.glob_count && !tracker__alive(daemon->tracker) &&
	    !tracker__expects(daemon->tracker))
		return "targets_gone";
	return NULL;
}

static void on_mapped(void *ctx, pid_t pid, const char *path)
{
	struct daemon *daemon = ctx;

	tracker__mapped(daemon->tracker, pid, path, mono_now());
}

/* Reads new mappings; where some were lost, inspects every process, at most every RESCAN_NS. */
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
	tracker__rescan(daemon->tracker, now);
}

/* Sleeps, but long enough for at most 100 iterations of the loop a second. */
static void rest(const struct daemon *daemon, long ns)
{
	uint64_t began = mono_now(), slept;

	sleeper__sleep(daemon->sleeper, ns);
	slept = mono_now() - began;
	if (slept < BUSY_NS && !*daemon->options->stop)
		nanosleep(&(struct timespec){.tv_nsec = BUSY_NS - (long)slept}, NULL);
}

/*
 * Where vaprod was stopped or had no CPU for so long that a further window has begun, what belongs to that one waits
 * until the present one has ended: one window ends in each iteration of the loop.
 */
static void hold_late(struct daemon *daemon, uint64_t now)
{
	bool late = to_utc(daemon, now) >= daemon->window_end + SETTLE_NS + LATE_NS;

	collector__hold(daemon->collector, late ? to_mono(daemon, daemon->window_end) : 0);
}

/* Says to a service manager, now and then, that the loop goes on: one that is blocked says nothing. */
static void give_sign_of_life(struct daemon *daemon, uint64_t now)
{
	if (!daemon->watchdog_ns || now < daemon->alive_ns + daemon->watchdog_ns / 2)
		return;
	daemon->alive_ns = now;
	notify__send("WATCHDOG=1");
}

static const char *loop(struct daemon *daemon)
{
	const struct daemon_options *options = daemon->options;
	const char *reason = NULL;

	while (!reason) {
		uint64_t now = mono_now();
		uint64_t govern_ns;
		int drained;

		hold_late(daemon, now);
		drained = collector__drain_ring(daemon->collector);

		collector__drain_bins(daemon->collector, now);
		resolver__resume_hops(daemon->resolver, now);
		resolver__read_names(daemon->resolver, now);
		find(daemon, now);
		tracker__poll(daemon->tracker, now);
		attacher__learn(daemon->attacher, now);
		govern_ns = tracker__govern(daemon->tracker, now);
		daemon->alert = govern_ns <= ENFORCER_SOON_NS;
		recalibrate(daemon, now);
		if (now >= daemon->next_second) {
			every_second(daemon, now);
			daemon->next_second = now + 1000000000ULL;
		}
		if (to_utc(daemon, now) >= daemon->window_end + SETTLE_NS)
			end_window(daemon, daemon->window_end, false);
		line_sink__retry(daemon->lines);
		if (daemon->tee.publishing)
			publishing__step(daemon->tee.publishing, now);
		daemon__step_reports(daemon, now);
		if (options->reopen && *options->reopen)
			daemon__reopen_output(daemon);
		if (daemon->queries)
			query_server__step(daemon->queries, now);
		if (daemon->status)
			status_server__step(daemon->status, now);
		give_sign_of_life(daemon, now);
		reason = reason_to_end(daemon, now);
		if (!reason)
			rest(daemon, pause_ns(daemon, drained, govern_ns));
	}
	return reason;
}

/* Says why nothing was watched, and what would help; refusal: of a process, or NULL. */
static void explain_nothing(const struct selection *selection, const char *refusal)
{
	if (refusal)
		log__warning("no process was watched: %s", refusal);
	else if (selection->ancestor)
		log__warning(
		    "no process of the command was watched: none mapped an MPI library or OpenMP's, and none with "
		    "threads of its own ran for two seconds. Ranks that a daemon starts for it (srun) are no children "
		    "of it: watch them with `vaprod --exe NAME`. --function exe:NAME watches a function of a program "
		    "without MPI and threads");
	else if (selection->glob_count)
		log__warning(
		    "no process was watched: none whose executable matches --exe mapped an MPI library or OpenMP's, or "
		    "ran for two seconds with threads of its own; `ps -e -o pid,exe` shows executables");
	else if (!selection->pid_count)
		log__warning("no process was watched: none mapped an MPI library. --exe NAME also watches programs "
			     "with MPI linked in that no launcher started, and programs with threads");
}

/* Removes the probes, drains all they left and emits the last window. */
static void finish(struct daemon *daemon, const char *reason)
{
	uint64_t now = mono_now(), end;
	struct line_bye bye = {.host = daemon->host, .reason = reason};
	char *line;

	if (daemon->options->service)
		notify__send("STOPPING=1");
	log__progress(NULL);
	if (!tracker__any(daemon->tracker))
		explain_nothing(&daemon->options->selection, tracker__refusal_seen(daemon->tracker));
	kernel_side__watch_syscalls(daemon->side, false); /* first: closing links one by one takes seconds */
	attacher__pause(daemon->attacher);
	row_attacher__pause(daemon->rows);
	collector__drain_ring(daemon->collector);
	while (to_utc(daemon, now) >= daemon->window_end + SETTLE_NS)
		end_window(daemon, daemon->window_end, false);
	tracker__detach_all(daemon->tracker, now, reason);
	collector__drain_bins(daemon->collector, now + 2 * VAPRO_BIN_NS);
	daemon__drain_inside(daemon);
	resolver__finish_names(daemon->resolver, NAMES_NS);
	end = (to_utc(daemon, now) + VAPRO_BIN_NS - 1) / VAPRO_BIN_NS * VAPRO_BIN_NS;
	end_window(daemon, end, true);
	check_outputs(daemon);
	finish_profiles(daemon);
	pipeline__totals(daemon->tee.pipeline, &bye.totals);
	bye.totals.untracked_hits = *kernel_side__shared(daemon->side)->untracked_hits;
	pipeline__outcome(daemon->tee.pipeline, &daemon->outcome, NULL);
	bye.utc_ns = to_utc(daemon, mono_now());
	line = lines__bye(&bye);
	if (line)
		stream__put(&daemon->tee.sink,
			    &(struct stream_event){.type = STREAM_LINE, .line = {RECORD_OBJECT_bye, line}});
	free(line);
	if (daemon->narrator)
		narrator__flush(daemon->narrator);
	stream__put(&daemon->tee.sink, &(struct stream_event){.type = STREAM_END});
}

/* Reports what makes a start pointless. Returns an exit code. */
static int check_start(const struct daemon_options *options)
{
	char missing[256];

	if (geteuid() && privileges__name_missing(privileges__held(), missing, sizeof(missing))) {
		log__error("missing privileges (%s): run it as root; `vapro check` shows what each is needed for",
			   missing);
		return EXIT_REFUSED;
	}
	for (size_t i = 0; i < options->selection.pid_count; i++) {
		if (!kill(options->selection.pids[i], 0) || errno != ESRCH)
			continue;
		log__error(
		    "--pid: there is no process %d; `pgrep -a PROGRAM` lists PIDs, --exe waits for processes by name",
		    options->selection.pids[i]);
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

/* Attaches what is selected and runs now. Returns an exit code, with a sentence in err. */
static int attach_first(struct daemon *daemon, char *err, size_t err_size)
{
	int tracked = tracker__scan(daemon->tracker, daemon->begin_ns, err, err_size);
	bool denied = tracked == -EACCES || tracked == -EPERM;
	char missing[256];

	if (tracked >= 0)
		return EXIT_OK;
	denied = denied && privileges__name_missing(privileges__held(), missing, sizeof(missing));
	log__error("%s%s%s%s", err, denied ? " (" : "", denied ? missing : "", denied ? " is missing)" : "");
	return EXIT_FAILED;
}

/* Watches until the end. Returns an exit code, with a sentence in err. */
static int watch(struct daemon *daemon, char *err, size_t err_size)
{
	const struct daemon_options *options = daemon->options;
	int status;

	collector__set_clock(daemon->collector, &daemon->clock);
	daemon__make_board(daemon);
	daemon__emit_hello(daemon);
	announce_clock(daemon);
	begin(daemon);
	daemon__serve(daemon);
	daemon__show(daemon);
	daemon__meter(daemon, true);
	status = attach_first(daemon, err, err_size);
	line_sink__flush(daemon->lines);
	if (options->config.io == VAPRO_ON)
		kernel_side__watch_syscalls(daemon->side, true);
	if (options->config.interrupts == VAPRO_ON)
		kernel_side__watch_interrupts(daemon->side, true);
	if (!status && options->ready)
		options->ready(options->ready_ctx);
	if (!status && options->service) {
		daemon->watchdog_ns = notify__watchdog_ns();
		notify__send("READY=1");
	}
	finish(daemon, status ? err : loop(daemon));
	return status;
}

/* Completes and closes all that is written. Notes what could not be. */
static void close_outputs(struct daemon *daemon)
{
	char err[512];

	if (daemon->tee.publishing &&
	    !publishing__finish(daemon->tee.publishing, PUBLISHING_FLUSH_NS, err, sizeof(err)))
		log__warning("%s", err);
	if (daemon->remote.accepted || daemon->remote.refused || daemon->remote.dropped)
		log__info("requests of workers: %llu accepted, %llu refused, %llu dropped",
			  (unsigned long long)daemon->remote.accepted, (unsigned long long)daemon->remote.refused,
			  (unsigned long long)daemon->remote.dropped);
	publishing__free(daemon->tee.publishing);
	run_store__free(daemon->tee.store);
	if (stream__close(daemon->tee.capture) && !daemon->capture_failed) {
		log__error("capture %s could not be completed", daemon->options->capture);
		daemon->capture_failed = true;
	}
	pipeline__close(daemon->tee.pipeline);
	narrator__free(daemon->narrator);
	metrics__free(daemon->metrics);
	board__free(daemon->board);
	if (line_sink__close(daemon->lines) && !daemon->output_failed) {
		log__error("the output could not be completed");
		daemon->output_failed = true;
	}
}

int daemon__run(const struct daemon_options *options)
{
	struct daemon daemon = {.options = options};
	struct sched_param batch = {0};
	char err[512] = "";
	int status, messages;

	if (gethostname(daemon.host, sizeof(daemon.host) - 1))
		snprintf(daemon.host, sizeof(daemon.host), "localhost");
	if (cpus__finalize(options->cpus, err, sizeof(err))) {
		log__error("%s", err);
		return EXIT_USAGE;
	}
	status = check_start(options);
	if (status)
		return status;
	daemon__start_reports(&daemon);
	messages = stderr_guard__begin();
	sched_setscheduler(0, SCHED_BATCH, &batch);
	confine__wait_for_none();
	prctl(PR_SET_TIMERSLACK, SLACK_NS, 0, 0, 0);
	status = daemon__look_for_counters(&daemon);
	if (!status)
		status = daemon__open_outputs(&daemon);
	if (!status) {
		if (options->progress)
			log__progress("starting: the cost of a probe is being measured");
		status = daemon__set_up(&daemon, err, sizeof(err));
		if (status)
			log__error("%s", err);
	}
	if (!status && options->dry_run) {
		status = tracker__preview(daemon.tracker, mono_now(), stdout) ? EXIT_FAILED : EXIT_OK;
	} else if (!status) {
		status = watch(&daemon, err, sizeof(err));
	}
	daemon__tear_down(&daemon);
	close_outputs(&daemon);
	daemon__finish_reports(&daemon);
	if (!status && (daemon.capture_failed || daemon.output_failed))
		status = EXIT_FAILED;
	if (!status && !options->dry_run)
		status = outcome__code(&daemon.outcome, &options->fail_on, err, sizeof(err));
	if (status >= EXIT_ALARM)
		log__error("%s", err);
	stderr_guard__end(messages);
	return status;
}
