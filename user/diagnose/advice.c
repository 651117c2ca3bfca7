/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/advice.h"

#include "base/duration.h"
#include "diagnose/factors.h"
#include "diagnose/interferers.h"
#include "diagnose/kernel_threads.h"
#include "diagnose/root_cause.h"
#include "diagnose/verdict.h"
#include "model/judgement.h"

#include <stdio.h>
#include <string.h>

/* "rank 3", "threads 0-3,7" of an ascending list; cut with an ellipsis where it is too long. Returns its length. */
static size_t format_list(const char *word, const int32_t *list, uint32_t count, char *buf, size_t size)
{
	size_t used = (size_t)snprintf(buf, size, "%s%s ", word, count > 1 ? "s" : "");

	for (uint32_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count && list[next] == list[i] + (int32_t)(next - i); next++)
			;
		if (used + 32 > size)
			return used + (size_t)snprintf(buf + used, size - used, "...");
		used += (size_t)snprintf(buf + used, size - used, "%s%d", i ? "," : "", list[i]);
		if (next - i > 1)
			used += (size_t)snprintf(buf + used, size - used, "-%d", list[next - 1]);
	}
	return used;
}

void advice__who(const struct result_variance *variance, bool threads, char *buf, size_t size)
{
	int32_t list[64];
	size_t used = 0;

	/* Threads of several ranks would be a table; the record has it. */
	if (threads && variance->rank_count == 1 && variance->thread_count <= sizeof(list) / sizeof(*list)) {
		for (uint32_t i = 0; i < variance->thread_count; i++)
			list[i] = variance->threads[i].thread;
		used = format_list("thread", list, variance->thread_count, buf, size / 2);
		used += (size_t)snprintf(buf + used, size - used, " of ");
	}
	if (!variance->rank_count || variance->ranks[0] < 0)
		snprintf(buf + used, size - used, "%s", variance->rank_count > 1 ? "these processes" : "this process");
	else
		format_list("rank", variance->ranks, variance->rank_count, buf + used, size - used);
}

static const struct result_factor *find_factor(const struct result_diagnosis *diagnosis, const char *name)
{
	for (uint32_t i = 0; i < diagnosis->factor_count; i++) {
		if (!strcmp(diagnosis->factors[i].name, name))
			return &diagnosis->factors[i];
	}
	return NULL;
}

static const struct result_shared *find_shared(const struct result_diagnosis *diagnosis, const char *fact)
{
	for (uint32_t i = 0; i < diagnosis->shared_count; i++) {
		if (!strcmp(diagnosis->shared[i].fact, fact))
			return &diagnosis->shared[i];
	}
	return NULL;
}

/* Whether the place of a core can be the reason of a factor: what the CPU, its memory or its interrupts do. */
static bool is_of_core(int node)
{
	unsigned root = (unsigned)node;

	while (node < FACTOR_NODES && factor_infos[root].parent != FACTOR_ROOT)
		root = factor_infos[root].parent;
	return node < FACTOR_NODES && ((root != NODE_SUSPENSION && root != NODE_KERNEL && root != NODE_RETIRING) ||
				       node == NODE_STEAL || node == NODE_MIGRATIONS);
}

static bool is_wide(const struct result_shared *shared)
{
	return !strcmp(shared->fact, "host") || !strcmp(shared->fact, "cpu_model") || !strcmp(shared->fact, "cgroup");
}

/* Whether the place of a rank says nothing of a factor: a signal or a quota hits one rank alone wherever it runs. */
static bool is_of_rank(const struct result_variance *variance, int node)
{
	return variance->rank_count <= 1 && (node == NODE_STOPPED || node == NODE_THROTTLED);
}

/* Writes where to look first, when slow rows share a fact that can be the reason of a factor; "" otherwise. */
static void say_where(const struct result_variance *variance, int node, char *buf, size_t size)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	const struct result_shared *first = diagnosis->shared;
	bool within;

	*buf = 0;
	if (!diagnosis->shared_count || (!is_wide(first) && !is_of_core(node)) || is_of_rank(variance, node))
		return;
	within = first->host && *first->host;
	snprintf(buf, size, "; begin with %s %s%s%s, where %s rank was slow",
		 !strcmp(first->fact, "numa")	     ? "NUMA node"
		 : !strcmp(first->fact, "core_type") ? "cores of type"
		 : !strcmp(first->fact, "cpu")	     ? "CPU"
		 : !strcmp(first->fact, "cpu_model") ? "hosts with CPU"
						     : first->fact,
		 first->value, within ? " of host " : "", within ? first->host : "",
		 first->others ? "nearly every" : "every");
}

/* Writes the papers' cures as a second sentence; "" where none fits. */
static void say_cure(const struct result_variance *variance, unsigned cures, char *buf, size_t size)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	const struct result_shared *host = find_shared(diagnosis, "host");
	bool one_place = host || find_shared(diagnosis, "socket");
	bool cache = (cures & CURE_CACHE) && one_place && variance->from_start;
	bool memory = (cures & CURE_MEMORY) && host;
	const struct result_factor *backend = find_factor(diagnosis, "backend");
	int used = 0;

	*buf = 0;
	if (backend && backend->contribution < SHARE_MOST)
		return;
	if (cache)
		used = snprintf(
		    buf, size,
		    " Slow from the start: compare with huge pages (1 GiB); some CPUs have known L2 eviction faults.");
	if (memory)
		snprintf(buf + used, size - (size_t)used,
			 " If nothing else uses the memory there, take host %s out of service or have its memory "
			 "checked.",
			 host->value);
}

static void advise_waiting(const struct result_variance *variance, bool transfer, char *buf, size_t size)
{
	const char *ranks = variance->who, *region;
	int length;

	region = root_cause__region(variance, &length);
	if (region && !variance->effect_of)
		snprintf(buf, size,
			 "%s waited at the barrier of %.*s: compare the work of the region's threads, and what runs "
			 "between regions.",
			 ranks, length, region);
	else if (!transfer && variance->effect_of)
		snprintf(buf, size, "%s waited for others: see variance %llu for the cause.", ranks,
			 (unsigned long long)variance->effect_of);
	else if (!transfer && variance->entered_last.rank_count)
		snprintf(buf, size,
			 "%s waited for ranks that came late: compare the work of %s with that of the others, and what "
			 "runs there.",
			 ranks, variance->entered_last.who);
	else if (!transfer)
		snprintf(buf, size, "%s waited for ranks that came late: compare the work of the ranks.", ranks);
	else if (!variance->confirmed)
		snprintf(
		    buf, size,
		    "%s waited at the same time; whether for the network or for each other cannot be determined here.",
		    ranks);
	else
		snprintf(buf, size,
			 "Transfers of %s took longer than before: look at the network and who else uses it.", ranks);
}

static void advise_slow_path(const struct result_variance *variance, char *buf, size_t size)
{
	const char *host = variance->diagnosis.host;
	const char *late = variance->confirmed ? " while no rank was late" : "";

	if (host)
		snprintf(buf, size,
			 "Transfers of %s are slow%s: look at the network adapter, cable and switch port of host %s.",
			 variance->who, late, host);
	else
		snprintf(buf, size,
			 "Transfers of %s are slow%s: look at what their hosts share on the way: "
			 "network adapters, cables and switch ports.",
			 variance->who, late);
}

/* A time in an advice: tenths of a second, and what is shorter in its own unit. */
static const char *rounded(double seconds, char *buf, size_t size)
{
	if (10 * seconds < 1)
		return duration__text(seconds, buf, size);
	snprintf(buf, size, "%.1f s", seconds);
	return buf;
}

/* Returns whether a task starts ranks: what it runs later is the forwarding of their output. */
static bool is_launcher(const struct result_interferer *task)
{
	static const char *const names[] = {"mpirun",	      "mpiexec",	 "mpiexec.hydra", "orterun",
					    "orted",	      "prterun",	 "prted",	  "prte",
					    "hydra_pmi_prox", "hydra_pmi_proxy", "srun",	  "slurmstepd"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(task->comm, names[i], sizeof(task->comm) - 1))
			return true;
	return false;
}

static void advise_preempted(const struct result_variance *variance, char *buf, size_t size)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	const struct result_interferer *top = interferers__named(diagnosis);
	const char *work = top ? kernel_threads__work(top) : NULL;
	char ran[40], all[40], words[INTERFERER_WORDS];

	if (top)
		rounded(top->seconds, ran, sizeof(ran));
	if (diagnosis->oversubscribed.cpus)
		snprintf(buf, size,
			 "The job is oversubscribed: %.1f of its threads are runnable on %u CPU%s. Start fewer ranks "
			 "or threads, or allow them more CPUs.",
			 diagnosis->oversubscribed.threads, diagnosis->oversubscribed.cpus,
			 diagnosis->oversubscribed.cpus == 1 ? "" : "s");
	else if (!top)
		snprintf(buf, size, "Other tasks ran on the CPU of %s: bind ranks and daemons apart.", variance->who);
	else if (top->relation == VAPRO_MONITOR)
		snprintf(buf, size,
			 "This monitor (%.15s, pid %u) ran %s on the CPU of %s: give it a CPU of its own (--cpus).",
			 top->comm, top->pid, ran, variance->who);
	else if (top->relation == VAPRO_OTHER_JOB)
		snprintf(
		    buf, size,
		    "%.15s (pid %u, %s) ran %s on the CPU of %s: both jobs are allowed that CPU; give each CPUs of "
		    "its own.",
		    top->comm, top->pid, interferers__says(top, words), ran, variance->who);
	else if (top->relation != VAPRO_FOREIGN && diagnosis->cpus_unknown)
		snprintf(
		    buf, size,
		    "Threads of the job ran on each other's CPUs, and which CPUs they may use is not known: compare "
		    "how many ranks and threads run beside %s with the CPUs that they are allowed.",
		    variance->who);
	else if (top->relation != VAPRO_FOREIGN)
		snprintf(buf, size,
			 "Threads of the job ran on each other's CPUs, although there are enough: bind each rank and "
			 "thread of %s to CPUs of its own.",
			 variance->who);
	else if (is_launcher(top))
		snprintf(buf, size,
			 "%.15s (pid %u) ran %s on the CPU of %s: it forwards what the ranks print; have them print "
			 "less or write to files, or give it a CPU of its own.",
			 top->comm, top->pid, ran, variance->who);
	else if (top->seconds < VERDICT_MOSTLY * diagnosis->interfered)
		snprintf(buf, size,
			 "%.15s (pid %u, %s) and others ran %s on the CPUs of %s: %sbind ranks and daemons apart.",
			 top->comm, top->pid, ran, rounded(diagnosis->interfered, all, sizeof(all)), variance->who,
			 work ? "" : "move or stop them, or ");
	else if (work)
		snprintf(buf, size, "%.15s (pid %u) ran %s on the CPU of %s: it is a thread of the kernel%s%s.",
			 top->comm, top->pid, ran, variance->who, *work ? ", which " : "", work);
	else
		snprintf(buf, size,
			 "%.15s (pid %u) ran %s on the CPU of %s: move or stop it, or bind ranks and daemons apart.",
			 top->comm, top->pid, ran, variance->who);
}

/* Time on the CPU inside a call is MPI's polling or the kernel's copying, not the program's work. */
static void advise_on_cpu(const struct result_variance *variance, const char *where, char *buf, size_t size)
{
	const struct result_factor *off = find_factor(&variance->diagnosis, "suspension");
	const char *all = off && off->major ? "" : " all the time";

	if (variance->class == VAPRO_IO)
		snprintf(buf, size,
			 "%s: on the CPU inside the calls; look at the sizes of these calls and at memory bandwidth%s.",
			 variance->who, where);
	else if (variance->team_unseen)
		snprintf(buf, size,
			 "%s: on the CPU%s but got less done there, or waited for another of its threads, which "
			 "polls on the CPU: compare what these do first (their work is not seen), then look at memory "
			 "bandwidth and neighbours on the same core or socket%s.",
			 variance->who, all, where);
	else
		snprintf(buf, size,
			 "%s: on the CPU%s but got less done there; look at %smemory bandwidth and neighbours on "
			 "the same core or socket%s.",
			 /* where frequency was reported, it is a factor of its own */
			 variance->who, all, find_factor(&variance->diagnosis, "frequency") ? "" : "frequency, ",
			 where);
}

/* Returns what is behind the descriptor of an IO call, by the labels of the worst state. */
static const char *behind(const struct result_variance *variance)
{
	static const struct {
		const char *label, *what;
	} kinds[] = {
	    {"fd_kind=fifo", "the process at the other end of the pipe"},
	    {"fd_kind=socket", "the process at the other end of the connection, and the network"},
	    {"fd_kind=char", "the device or terminal, and its driver"},
	    {"function=ioctl", "the device and its driver"},
	    {"fd_kind=file", "the file system of that file, and who else used it then"},
	    {"fd_kind=directory", "the file system of that directory, and who else used it then"},
	    {"fd_kind=block", "the disk, and who else used it then"},
	};
	const char *labels = variance->site_count ? variance->sites[0].state->labels : "";

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strstr(labels, kinds[i].label))
			return kinds[i].what;
	return "what is behind that call";
}

/* Sleep inside an IO call names the call. Returns whether it is known. */
static bool advise_asleep(const struct result_variance *variance, const char *where, char *buf, size_t size)
{
	int length;
	const char *call = root_cause__called(variance, &length);

	if (call)
		snprintf(buf, size, "%s: asleep in %.*s; look at %s%s.", variance->who, length, call, behind(variance),
			 where);
	return call;
}

/* A quota is named with its cgroup, and with its value where that was seen. Returns whether either is known. */
static bool advise_quota(const struct result_variance *variance, const char *where, char *buf, size_t size)
{
	const struct result_diagnosis *diagnosis = &variance->diagnosis;
	const struct result_shared *cgroup = find_shared(diagnosis, "cgroup");

	if (diagnosis->limit)
		snprintf(buf, size,
			 "%s: cgroup %s used up its CPU quota (%s); raise it or lower the number of threads that run "
			 "under it%s.",
			 variance->who, diagnosis->limit_cgroup, diagnosis->limit, where);
	else if (cgroup)
		snprintf(buf, size,
			 "%s: cgroup %s or one above it used up its CPU quota; raise it or lower the number of threads "
			 "that run under it%s.",
			 variance->who, cgroup->value, where);
	return diagnosis->limit || cgroup;
}

static void advise_factor(const struct result_variance *variance, const char *factor, char *buf, size_t size)
{
	char where[256], cure[512];
	int node = factors__find(factor);

	say_where(variance, node, where, sizeof(where));
	if (!strcmp(factor, "preempted") || !strcmp(factor, "wakeup_wait")) {
		advise_preempted(variance, buf, size);
		return;
	}
	if (root_cause__polls(variance->class, factor)) {
		snprintf(buf, size,
			 "%s waited inside MPI, which polls on the CPU while it waits: look at the ranks that they "
			 "wait for, not at their own CPUs.",
			 variance->who);
		return;
	}
	if (!strcmp(factor, "on_cpu")) {
		advise_on_cpu(variance, where, buf, size);
		return;
	}
	if (!strcmp(factor, "throttled") && advise_quota(variance, where, buf, size))
		return;
	if (node == FACTOR_NODES || !factor_infos[node].advice)
		return;
	if ((node == NODE_BLOCKED_IO || node == NODE_BLOCKED_OTHER) && advise_asleep(variance, where, buf, size))
		return;
	say_cure(variance, factor_infos[node].cures, cure, sizeof(cure));
	snprintf(buf, size, "%s: %s%s.%s", variance->who,
		 variance->class == VAPRO_COMPUTATION && factor_infos[node].in_work ? factor_infos[node].in_work
										    : factor_infos[node].advice,
		 where, cure);
}

/* Returns the factor that a cause of a region is about. */
static const char *factor_of(const struct result_variance *variance, const struct result_cause *cause)
{
	const struct result_factor *factor = root_cause__factor(&variance->diagnosis);

	if (!strcmp(cause->cause, CAUSE_OVERSUBSCRIBED))
		return CAUSE_PREEMPTED;
	if (!strcmp(cause->cause, CAUSE_POLLING))
		return "on_cpu";
	return strcmp(cause->cause, CAUSE_UNKNOWN) || !factor ? cause->cause : factor->name;
}

/* Writes a sentence for each cause that is listed, the greatest first. Returns whether there is any. */
static bool advise_causes(const struct result_variance *variance, char *buf, size_t size)
{
	size_t used = 0;

	for (uint32_t i = 0; i < variance->cause_count && used + 1 < size; i++) {
		const struct result_cause *cause = &variance->causes[i];
		struct result_variance own = *variance;
		char text[768] = "", who[256];

		if (!cause->explained)
			continue;
		/* threads of a rank are named by the variance */
		if (cause->rank_count && cause->rank_count < variance->rank_count && cause->ranks[0] >= 0) {
			format_list("rank", cause->ranks, cause->rank_count, who, sizeof(who));
			own.who = who;
		}
		/* where preemption is divided by the tasks that ran instead, each sentence is about its own task */
		if (cause->culprit) {
			own.diagnosis.interferers = cause->culprit;
			own.diagnosis.interferer_count = 1;
			own.diagnosis.interfered = cause->culprit->seconds;
			if (cause->culprit_seconds > 0)
				own.diagnosis.interfered *= cause->lost_seconds / cause->culprit_seconds;
		}
		advise_factor(&own, factor_of(variance, cause), text, sizeof(text));
		if (*text)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? " " : "", text);
	}
	return used > 0;
}

void advice__write(const struct result_variance *variance, bool waiting, bool transfer, char *buf, size_t size)
{
	const struct result_factor *factor = root_cause__factor(&variance->diagnosis);

	snprintf(buf, size, "No single factor explains it; look at the call-sites and exemplars of %s.", variance->who);
	if (variance->slow_path)
		advise_slow_path(variance, buf, size);
	else if (waiting)
		advise_waiting(variance, transfer, buf, size);
	else if (!advise_causes(variance, buf, size) && factor)
		advise_factor(variance, factor->name, buf, size);
}
