/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/verdict.h"

#include "base/duration.h"
#include "diagnose/factors.h"
#include "diagnose/interferers.h"
#include "diagnose/root_cause.h"
#include "model/judgement.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text {
	char *buf;
	size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void say(struct text *text, const char *format, ...)
{
	va_list arguments;
	int length;

	if (text->used >= text->size)
		return;
	va_start(arguments, format);
	length = vsnprintf(text->buf + text->used, text->size - text->used, format, arguments);
	va_end(arguments);
	text->used += length > 0 ? (size_t)length : 0;
}

static void say_name(struct text *text, const char *name)
{
	int node = factors__find(name);

	say(text, "%s", node < FACTOR_NODES ? factor_infos[node].noun : name);
}

/* Returns the greatest major part of a factor; NULL where nothing stands out. */
static const struct result_factor *greatest_part(const struct result_diagnosis *diagnosis, const char *parent)
{
	const struct result_factor *best = NULL;

	for (uint32_t i = 0; i < diagnosis->factor_count; i++) {
		const struct result_factor *factor = &diagnosis->factors[i];

		if (factor->major && !factor->implied && factor->parent && !strcmp(factor->parent, parent) &&
		    (!best || factor->contribution > best->contribution))
			best = factor;
	}
	return best;
}

static bool is_wait(const char *factor)
{
	return !strcmp(factor, CAUSE_PREEMPTED) || !strcmp(factor, "wakeup_wait");
}

/* Returns the cause of a region that names a task; NULL where none does. */
static const struct result_cause *cause_of(const struct result_variance *variance, const struct result_interferer *task)
{
	for (uint32_t i = 0; i < variance->cause_count; i++) {
		const struct result_interferer *culprit = variance->causes[i].culprit;

		if (culprit && !strcmp(culprit->comm, task->comm))
			return &variance->causes[i];
	}
	return NULL;
}

/*
 * Returns which share of the waits for a CPU the task that is named first took; 1 where it is one of several that are
 * named together, or none is.
 */
static double share_of_named(const struct result_variance *variance)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	const struct result_interferer *top = interferers__named(diagnosis);
	const struct result_cause *own = top ? cause_of(variance, top) : NULL;
	double waits = 0;

	for (uint32_t i = 0; i < variance->cause_count; i++)
		waits += is_wait(variance->causes[i].cause) ? variance->causes[i].lost_seconds : 0;
	return own && waits > 0 && !diagnosis->oversubscribed.cpus ? fmin(1, own->lost_seconds / waits) : 1;
}

/* Returns whether a task took nearly all for which it is named: of its own cause or, of a region without, of all. */
static bool is_alone(const struct result_variance *variance, const struct result_interferer *task)
{
	const struct result_cause *own = cause_of(variance, task);

	if (own)
		return own->culprit_seconds >= VERDICT_MOSTLY * own->lost_seconds;
	return !variance->cause_count && task->seconds >= VERDICT_MOSTLY * variance->diagnosis.interfered;
}

static void say_task(struct text *text, const struct result_variance *variance, const struct result_interferer *task)
{
	char relation[INTERFERER_WORDS];

	interferers__says(task, relation);
	say(text, "%.15s (pid %u%s%s)", task->comm, task->pid, *relation ? ", " : "", relation);
	if (cause_of(variance, task) && !is_alone(variance, task))
		say(text, " and others");
}

/* Says who ran instead, where that is known. Returns whether it was said. */
static bool say_preempted(struct text *text, const struct result_variance *variance, const char *factor)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	const struct result_interferer *top = interferers__named(diagnosis);
	bool several;

	if (!is_wait(factor) || !top)
		return false;
	if (diagnosis->oversubscribed.cpus) {
		say(text, "because the job is oversubscribed: %.1f runnable threads share %u CPU%s",
		    diagnosis->oversubscribed.threads, diagnosis->oversubscribed.cpus,
		    diagnosis->oversubscribed.cpus == 1 ? "" : "s");
		return true;
	}
	several = !is_alone(variance, top) && !cause_of(variance, top);
	say(text, "because %s", several ? "other tasks, most of all " : "");
	say_task(text, variance, top);
	say(text, "%s ran on %s", several ? "," : "", diagnosis->rows > 1 ? "their CPUs" : "its CPU");
	return true;
}

static bool many_rows(const struct result_variance *variance)
{
	return variance->rank_count > 1 || variance->thread_count > 1;
}

static const char *they(const struct result_variance *variance)
{
	return many_rows(variance) ? "they" : "it";
}

/* Says what time on the CPU is: how much longer the work took, where that is known, and how much of the loss it is. */
static void say_on_cpu(struct text *text, const struct result_variance *variance, double share, bool first)
{
	double times = variance->ratio_slow > 1 ? variance->ratio_slow : 1 / fmax(variance->performance, 1e-3);

	if (first && !variance->work_unknown && times > 1)
		say(text, ": %s took %.2f times as long, ", they(variance), times);
	else
		say(text, "%s", first ? ": " : "; ");
	if (share >= SHARE_NEARLY_ALL)
		say(text, "all of it on the CPU");
	else
		say(text, "%.0f %% of the loss on the CPU", 100 * share);
	if (variance->team_unseen)
		say(text, ", or waiting for another of its threads, whose work is not seen");
}

/* Descends the tree as long as a part stands out. */
static void say_parts(struct text *text, const struct result_variance *variance, const struct result_factor *whole)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	const struct result_factor *part;
	const char *call;
	int length;
	bool first = true;

	for (; (part = greatest_part(diagnosis, whole->name)); whole = part, first = false) {
		const char *of = first ? "it" : "that";

		double share = part->contribution * (is_wait(part->name) ? share_of_named(variance) : 1);

		if (share >= SHARE_NEARLY_ALL)
			say(text, ", almost entirely ");
		else if (share >= VERDICT_MOSTLY)
			say(text, ", mostly ");
		else
			say(text, ", %.0f %% of %s ", 100 * share, of);
		if (say_preempted(text, variance, part->name))
			continue;
		call = !strcmp(part->name, "blocked_other") ? root_cause__called(variance, &length) : NULL;
		if (call)
			say(text, "asleep in %.*s", length, call);
		else
			say_name(text, part->name);
		if (!strcmp(part->name, "stopped"))
			say(text, " for %.1f s", part->impact_seconds);
		if (part->shared_with)
			say(text, " (or %s: they cannot be distinguished)", part->shared_with);
	}
}

/* Returns the seconds that ranks were stopped, where that is nearly all of the loss; else 0. */
static double stopped(const struct result_diagnosis *diagnosis)
{
	const struct result_factor *part = greatest_part(diagnosis, "suspension");

	for (uint32_t i = 0; part && i < diagnosis->factor_count; i++) {
		const struct result_factor *factor = &diagnosis->factors[i];

		if (!strcmp(factor->name, "suspension") && !strcmp(part->name, "stopped") &&
		    factor->contribution * part->contribution >= SHARE_NEARLY_ALL)
			return part->impact_seconds;
	}
	return 0;
}

/* Says how much of the loss the factors explain, where that is not nearly all: shares are of the explained part. */
static void say_explained(struct text *text, const struct result_variance *variance)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	double explained = 0;
	char seconds[32];

	for (uint32_t i = 0; i < diagnosis->factor_count; i++)
		explained += diagnosis->factors[i].parent ? 0 : diagnosis->factors[i].impact_seconds;
	if (explained > 0 && explained < SHARE_NEARLY_ALL * variance->lost_seconds)
		say(text, ", %s of it explained", duration__text(explained, seconds, sizeof(seconds)));
}

/* Says that the task of a cause ran instead, or that others did. */
static void say_ran(struct text *text, const struct result_variance *variance, const struct result_cause *cause)
{
	say(text, "because ");
	if (cause->culprit)
		say_task(text, variance, cause->culprit);
	else
		say(text, "other tasks");
	say(text, " ran on %s", cause->rank_count > 1 ? "their CPUs" : "its CPU");
}

/* Returns whether the sentence has named a cause: interferers and the job's own threads stand for waits for a CPU. */
static bool is_said(const struct text *text, const struct result_cause *cause, const char *noun)
{
	bool preempted = !strcmp(cause->cause, CAUSE_PREEMPTED), own = !strcmp(cause->cause, CAUSE_OVERSUBSCRIBED);
	char task[48];

	if (strstr(text->buf, noun) || ((own || preempted) && strstr(text->buf, "oversubscribed")))
		return true;
	if (preempted && cause->culprit) {
		snprintf(task, sizeof(task), "%.15s (pid %u", cause->culprit->comm, cause->culprit->pid);
		return strstr(text->buf, task);
	}
	if (preempted || own)
		return strstr(text->buf, preempted ? "other tasks" : ") ran on ");
	return (!strcmp(cause->cause, "stopped") && strstr(text->buf, "stopped (")) ||
	       (factors__find(cause->cause) == NODE_ON_CPU && strstr(text->buf, "on the CPU"));
}

/* Says the causes that the sentence has not named yet, each with its seconds. */
static void say_further(struct text *text, const struct result_variance *variance)
{
	for (uint32_t i = 0; i < variance->cause_count; i++) {
		const struct result_cause *cause = &variance->causes[i];
		int node = factors__find(cause->cause);
		bool own = !strcmp(cause->cause, CAUSE_OVERSUBSCRIBED);
		const char *noun = own			 ? "off the CPU, since the job is oversubscribed"
				   : node < FACTOR_NODES ? factor_infos[node].noun
							 : NULL;
		char seconds[32];

		if (!cause->explained || !noun || is_said(text, cause, noun))
			continue;
		say(text, "; %s of it ", duration__text(cause->lost_seconds, seconds, sizeof(seconds)));
		if (!strcmp(cause->cause, CAUSE_PREEMPTED))
			say_ran(text, variance, cause);
		else
			say(text, "%s", noun);
		if (cause->rank_count == 1 && variance->rank_count > 1 && cause->ranks[0] >= 0)
			say(text, " (rank %d)", (int)cause->ranks[0]);
	}
}

static void say_factors(struct text *text, const struct result_variance *variance)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	bool any = false;

	if (stopped(diagnosis) > 0) {
		say(text, ": %s stopped (signal or tracer) for %.1f s%s", variance->rank_count > 1 ? "were" : "was",
		    stopped(diagnosis), variance->rank_count > 1 ? " in all" : "");
		return;
	}

	/* Factors come in the order of their shares. */
	for (uint32_t i = 0; i < diagnosis->factor_count; i++) {
		const struct result_factor *factor = &diagnosis->factors[i];

		if (!factor->major || factor->parent)
			continue;
		if (!any)
			say_explained(text, variance);
		if (!root_cause__polls(variance->class, factor->name) && !strcmp(factor->name, "on_cpu")) {
			say_on_cpu(text, variance, factor->contribution, !any);
			any = true;
			continue;
		}
		say(text, "%s%.0f %% ", any ? "; " : ": ", 100 * factor->contribution);
		if (root_cause__polls(variance->class, factor->name)) {
			say(text, "busy-waiting inside MPI for other ranks");
		} else {
			say_name(text, factor->name);
			say_parts(text, variance, factor);
		}
		any = true;
	}
	if (!any)
		say(text, "%s", diagnosis->abnormal ? ": no single factor explains it" : "");
}

static void say_why(struct text *text, const struct result_variance *variance)
{
	say_factors(text, variance);
	say_further(text, variance);
}

static bool narrower(const char *fact)
{
	return !strcmp(fact, "numa") || !strcmp(fact, "cpu") || !strcmp(fact, "core_type");
}

static void say_where(struct text *text, const struct result_shared *shared, uint32_t count, uint32_t rows)
{
	const char *each = rows > 1 ? "all " : "";
	bool host = false;

	for (uint32_t i = 0; i < count; i++) {
		const char *fact = shared[i].fact, *value = shared[i].value;

		/* Each fact lies in the one before: the widest suffices. */
		if (i && narrower(fact))
			continue;
		/* a socket or CPU without its host is a place on every host */
		if (shared[i].host && !host) {
			say(text, ", %son host %s", each, shared[i].host);
			each = "";
		}
		host |= shared[i].host || !strcmp(fact, "host");
		if (!strcmp(fact, "core_type"))
			say(text, ", %son cores of type %s", each, value);
		else if (!strcmp(fact, "cpu_model"))
			say(text, ", %s%s %s", each, i ? "with CPU" : "on hosts with CPU", value);
		else if (!strcmp(fact, "cgroup"))
			say(text, ", %sin cgroup %s", each, value);
		else if (!strcmp(fact, "host"))
			say(text, ", %son host %s", each, value);
		else if (!strcmp(fact, "numa"))
			say(text, ", %son NUMA node %s", each, value);
		else
			say(text, ", %son %s %s", each, !strcmp(fact, "cpu") ? "CPU" : fact, value);
		each = "";
	}
	say(text, "%s", count ? "," : "");
}

void verdict__place(const struct result_shared *shared, uint32_t count, uint32_t rows, char *buf, size_t size)
{
	struct text text = {buf, size, 0};

	*buf = 0;
	say_where(&text, shared, count, rows);
}

/* The host matters whether other ranks run there or not. */
static void say_slow_path(struct text *text, const struct result_variance *variance)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	uint32_t rows = variance->thread_count ? variance->thread_count : variance->rank_count;
	struct result_shared host = {.fact = "host", .value = diagnosis->host};
	char lost[32];

	say(text, "transfers of %s", variance->who);
	if (diagnosis->host)
		say_where(text, &host, 1, rows);
	else
		say_where(text, diagnosis->shared, diagnosis->shared_count, rows);
	say(text, " take %.1f times as long (%s lost)%s", 1 / fmax(variance->performance, 1e-3),
	    duration__text(variance->lost_seconds, lost, sizeof(lost)),
	    variance->confirmed ? "; no rank was late" : "");
}

/* At the barrier of a team nothing is transferred: its threads wait for the last one of them. */
static void say_barrier(struct text *text, const struct result_variance *variance, const char *region, int length)
{
	say(text, ": threads of %s wait at the barrier of %.*s",
	    variance->rank_count && variance->ranks[0] >= 0 ? "a rank" : "the process", length, region);
	for (uint32_t i = 0; i < variance->culprit_count; i++) {
		const struct result_culprit *culprit = &variance->culprits[i];

		if (culprit->thread < 0)
			continue;
		say(text, " for thread %d", (int)culprit->thread);
		if (culprit->rank >= 0)
			say(text, " of rank %d", (int)culprit->rank);
		break;
	}
	if (variance->effect_of)
		say(text, ", which variance %llu is about", (unsigned long long)variance->effect_of);
}

/* Says who entered operations last, where that is all that is known of the late ranks. */
static void say_entered_last(struct text *text, const struct result_entered_last *last)
{
	char late[32];

	if (last->rank_count)
		say(text, "; %s entered last in %llu of %llu operation%s, %s after the median rank", last->who,
		    (unsigned long long)last->operations, (unsigned long long)last->of, last->of == 1 ? "" : "s",
		    duration__text(last->late_seconds, late, sizeof(late)));
}

static void say_loss(struct text *text, const struct result_variance *variance, bool waiting, bool transfer)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	int length = 0;
	const char *region = waiting ? root_cause__region(variance, &length) : NULL;
	char lost[32];

	say(text, "%s", variance->who);
	say_where(text, diagnosis->shared, diagnosis->shared_count,
		  variance->thread_count ? variance->thread_count : variance->rank_count);
	say(text, " lost %s", duration__text(variance->lost_seconds, lost, sizeof(lost)));
	if (region)
		say_barrier(text, variance, region, length);
	else if (waiting && !transfer && variance->effect_of)
		say(text, ": %s waited for what variance %llu is about", they(variance),
		    (unsigned long long)variance->effect_of);
	else if (waiting && transfer)
		say(text, ": transfers took longer%s",
		    variance->confirmed	  ? ""
		    : many_rows(variance) ? ", or they waited for each other"
					  : ", or it waited for others");
	else if (waiting) {
		say(text, ": %s waited for ranks that came late", they(variance));
		say_entered_last(text, &variance->entered_last);
	} else
		say_why(text, variance);
	if (!diagnosis->final)
		say(text, " (finer counters follow)");
}

void verdict__write_gone(const struct result_variance *variance, char *verdict, char *advice, size_t size)
{
	unsigned long long into = variance->effect_of;

	if (into) {
		snprintf(verdict, size, "%s: a part of what variance %llu is about.", variance->who, into);
		snprintf(advice, size, "See variance %llu.", into);
	} else {
		snprintf(verdict, size, "%s: withdrawn, since nothing was lost as better references show.",
			 variance->who);
		snprintf(advice, size, "Nothing is to be done.");
	}
}

void verdict__write(const struct result_variance *variance, bool waiting, bool transfer, char *buf, size_t size)
{
	struct text text = {buf, size, 0};

	*buf = 0;
	if (variance->slow_path)
		say_slow_path(&text, variance);
	else
		say_loss(&text, variance, waiting, transfer);
	if (!variance->confirmed && variance->id)
		say(&text, variance->confidence == VAPRO_PLACE ? "; by their place, not certain" : "; unconfirmed");
	say(&text, ".");
	/* A text that was cut must not end inside a character or look complete. */
	if (text.used >= size && size > 4) {
		size_t end = size - 4;

		while (end && ((unsigned char)buf[end] & 0xc0) == 0x80)
			end--;
		memcpy(buf + end, "...", 4);
	}
}
