// SPDX-License-Identifier: GPL-2.0-or-later
#include "fake_probes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_OF_THINNED 64 /* as bpf/thinning.h: the others are not counted by function */
#define WAKE_HITS (2 * 4e6 / (FAKE_ENTRY_NS + FAKE_RETURN_NS)) /* as sleeper.c */

static const struct fake *clock_of; /* the fake that gives the time */
static const int image_mark;	    /* its address stands for the image */

static const struct attached_image *the_image(void)
{
	return (const struct attached_image *)(const void *)&image_mark;
}

static uint64_t own_cpu(void)
{
	return clock_of->ran_ns;
}

static uint64_t now(void)
{
	return clock_of->now;
}

static void warn(void *ctx, const char *code, pid_t pid, const char *text)
{
	struct fake *fake = ctx;
	struct fake_warning *warning = &fake->warnings[fake->warning_count++ % FAKE_WARNINGS];

	warning->pid = pid;
	snprintf(warning->code, sizeof(warning->code), "%s", code);
	snprintf(warning->text, sizeof(warning->text), "%s", text);
}

static void begin_change(struct fake *fake, const char *what, unsigned looks)
{
	if (fake->on_change)
		fake->on_change(fake, what);
	while (looks--)
		fake__look(fake);
}

/* Leaves the cheapest functions open, as long as they have no more than their share of the cost. */
static void close_image(void *ctx, const struct attached_image *image, double keep, struct enforcer_closed *closed)
{
	static const char *const names[] = {"Send", "Barrier", "Isend"};
	struct fake *fake = ctx;
	double all = 0, left = 0, most = -1;
	bool stays[FAKE_FUNCTIONS] = {false};

	(void)image;
	for (int i = 0; i < FAKE_FUNCTIONS; i++) {
		all += fake->counted[i];
		if (fake->counted[i] > most) {
			most = fake->counted[i];
			closed->name = names[i];
		}
	}
	for (int next = 0; next >= 0;) {
		next = -1;
		for (int i = 0; i < FAKE_FUNCTIONS; i++)
			if (!stays[i] && (next < 0 || fake->counted[i] < fake->counted[next]))
				next = i;
		if (next < 0 || left + fake->counted[next] > keep * all)
			break;
		stays[next] = true;
		left += fake->counted[next];
	}
	begin_change(fake, "close", fake->change);
	closed->parted = !fake->closings++;
	closed->of = FAKE_FUNCTIONS;
	for (int i = 0; i < FAKE_FUNCTIONS; i++) {
		fake->open[i] &= stays[i];
		fake->costly[i] = !stays[i];
		closed->functions += !stays[i];
	}
}

static int open_remaining(void *ctx, const struct attached_image *image)
{
	(void)ctx;
	(void)image;
	return 0;
}

static int open_image(void *ctx, const struct attached_image *image)
{
	struct fake *fake = ctx;
	int status = fake->refused;
	uint64_t passed;

	(void)image;
	begin_change(fake, "open", 1);
	for (int i = 0; i < FAKE_FUNCTIONS; i++)
		fake->open[i] = true;
	memset(fake->counted, 0, sizeof(fake->counted));
	passed = fake->now - fake->last_opening;
	if (fake->openings++ && passed < fake->least_between_openings)
		fake->least_between_openings = passed;
	fake->last_opening = fake->now;
	fake->refused = 0;
	return status;
}

static bool end_learning(void *ctx, const struct attached_image *image)
{
	struct fake *fake = ctx;
	bool polls = fake->polls;

	(void)image;
	fake->polls = false;
	return polls;
}

static bool detaching(void *ctx)
{
	const struct fake *fake = ctx;

	return fake->detaching;
}

static bool still_hit(void *ctx)
{
	const struct fake *fake = ctx;

	return fake->still_hit;
}

static void costly(void *ctx, const struct attached_image *image, struct functions_spared *spared)
{
	const struct fake *fake = ctx;

	(void)image;
	for (int i = 0; i < FAKE_FUNCTIONS; i++)
		spared->costly[0] |= (uint64_t)fake->costly[i] << i;
}

static int leave_out(void *ctx, const struct attached_image *image, uint32_t units, bool *parted)
{
	struct fake *fake = ctx;

	(void)image;
	*parted = units >> FAKE_SHORT_UNIT & 1 && !fake->parted;
	fake->parted |= *parted;
	for (int i = 0; i < FAKE_FUNCTIONS && *parted; i++)
		fake->open[i] &= i == FAKE_POST;
	begin_change(fake, "leave out", fake->change);
	fake->changes++;
	fake->without = units;
	memset(fake->counted, 0, sizeof(fake->counted));
	return 0;
}

static void unit_shares(void *ctx, const struct attached_image *image, double shares[FUNCTIONS_UNITS])
{
	const struct fake *fake = ctx;
	double all = 0;

	(void)image;
	memset(shares, 0, FUNCTIONS_UNITS * sizeof(*shares));
	for (int i = 0; i < FAKE_FUNCTIONS; i++)
		all += fake->counted[i];
	if (all <= 0)
		return;
	shares[0] = fake->counted[FAKE_POST] / all;
	if (fake->brief)
		shares[FAKE_SHORT_UNIT] = fake->counted[FAKE_SHORT] / all;
}

static void begin_count(void *ctx, const struct attached_image *image)
{
	struct fake *fake = ctx;

	(void)image;
	memset(fake->counted, 0, sizeof(fake->counted));
}

static bool may_be_short(void *ctx, const struct attached_image *image)
{
	const struct fake *fake = ctx;

	(void)image;
	return fake->brief && fake->counted[FAKE_SHORT] > 0;
}

static uint32_t others(void *ctx, const struct attached_image *image)
{
	const struct fake *fake = ctx;

	(void)image;
	return fake->others;
}

static bool share(void *ctx, const struct attached_image *image)
{
	struct fake *fake = ctx;
	bool shared = fake->others && !fake->strangers;

	(void)image;
	if (shared)
		fake->others = 0;
	return shared;
}

static bool govern_rows(void *ctx, uint64_t hits, uint64_t now_ns)
{
	(void)ctx;
	(void)hits;
	(void)now_ns;
	return false;
}

static bool close_costliest_rows(void *ctx, pid_t pid, double speed, double calls, double debt_ns, uint64_t now_ns)
{
	struct fake *fake = ctx;

	(void)speed;
	(void)calls;
	(void)debt_ns;
	(void)now_ns;
	if (!fake->rows_close)
		return false;
	fake->row_closings++;
	enforcer__reset_rates(fake->processes[pid - 1].governed);
	return true;
}

static void limit_rows(void *ctx, pid_t pid, double share, uint64_t now_ns)
{
	struct fake *fake = ctx;

	(void)now_ns;
	fake->processes[pid - 1].left_for_rows = share;
}

static void rest_rows(void *ctx, const pid_t *pids, size_t count, uint64_t until_ns)
{
	struct fake *fake = ctx;

	(void)pids;
	fake->resting = count;
	fake->rest_until_ns = until_ns;
}

void fake__begin(struct fake *fake, double budget_pct, double cap_pct, uint64_t seed, size_t seconds)
{
	static const struct enforcer_ops ops = {.now = now,
						.own_cpu = own_cpu,
						.warn = warn,
						.close_image = close_image,
						.open_remaining = open_remaining,
						.open_image = open_image,
						.end_learning = end_learning,
						.detaching = detaching,
						.still_hit = still_hit,
						.costly = costly,
						.leave_out = leave_out,
						.unit_shares = unit_shares,
						.begin_count = begin_count,
						.may_be_short = may_be_short,
						.others = others,
						.share = share,
						.govern_rows = govern_rows,
						.close_costliest_rows = close_costliest_rows,
						.limit_rows = limit_rows,
						.rest_rows = rest_rows};

	*fake = (struct fake){.now = FAKE_SECOND,
			      .next_pass = FAKE_SECOND,
			      .room = (seconds + 10) * 100,
			      .least_between_openings = UINT64_MAX,
			      .open = {true, true, true},
			      .change = FAKE_CHANGE,
			      .costs = {.entry_ns = FAKE_ENTRY_NS,
					.call_ns = FAKE_ENTRY_NS + FAKE_RETURN_NS,
					.syscall_ns = FAKE_SYSCALL_NS,
					.bystander_ns = FAKE_BYSTANDER_NS,
					.beside_ns = FAKE_BESIDE_NS}};
	clock_of = fake;
	governor__init(&fake->governor, budget_pct, cap_pct, seed);
	fake->enforcer = enforcer__new(&fake->governor, &fake->costs, &ops, fake);
}

void fake__end(struct fake *fake)
{
	enforcer__free(fake->enforcer);
	for (size_t i = 0; i < fake->count; i++)
		free(fake->processes[i].spent);
}

struct fake_process *fake__start(struct fake *fake, const struct fake_program *program)
{
	struct fake_process *process = &fake->processes[fake->count++];

	*process = (struct fake_process){.program = program, .least_between_steps_ns = UINT64_MAX};
	process->spent = calloc(fake->room, sizeof(*process->spent));
	process->governed = enforcer__add(fake->enforcer,
					  &(struct enforcer_process){.pid = (pid_t)fake->count,
								     .exe = program->exe ? program->exe : "program",
								     .spares_returns = program->spares_returns,
								     .owner = program->owner,
								     .counters = &process->counters,
								     .records = &process->records,
								     .orders = &process->orders},
					  fake->now);
	enforcer__join(fake->enforcer, process->governed, the_image(), "libmpi.so", fake->again, fake->now);
	return process;
}

static bool is_left_out(const struct fake *fake, int function)
{
	return (function == FAKE_POST && fake->without & 1) ||
	       (function == FAKE_SHORT && fake->without >> FAKE_SHORT_UNIT & 1);
}

static bool is_probed(const struct fake *fake, int function)
{
	return fake->open[function] && !is_left_out(fake, function);
}

static bool is_suppressed(const struct fake_process *process, int function)
{
	return process->program->spares_returns &&
	       governor__thin_ns(process->program->octaves[function] + 1) <= process->orders.thin_ns;
}

/* Returns the whole number of events in a look, and keeps the rest. */
static uint64_t events(double *part, double number)
{
	uint64_t whole;

	*part += number;
	whole = (uint64_t)*part;
	*part -= (double)whole;
	return whole;
}

static void live(struct fake *fake, struct fake_process *process)
{
	const struct fake_program *program = process->program;
	struct kernel_counters *counters = &process->counters;
	struct kernel_governed *orders = &process->orders;
	const struct costs *costs = &fake->costs;
	double each[FAKE_FUNCTIONS], cost = program->syscalls / 100, slow;
	uint64_t before = counters->enter + counters->exit + counters->left, n;
	bool unseen = orders->probe_epoch & 1 || orders->no_io;
	double calls[FAKE_FUNCTIONS], all = 0, covered = 0;

	memcpy(calls, program->calls, sizeof(calls));
	if (is_left_out(fake, FAKE_SHORT))
		calls[FAKE_LONG] += fake->instead * calls[FAKE_SHORT];
	counters->enter += fake->polls ? FAKE_POLLS / 100 : 0;
	cost *= orders->no_io ? costs->bystander_ns : costs->syscall_ns;
	cost += program->rows / 100 * 2 * costs->entry_ns;
	for (int i = 0; i < FAKE_FUNCTIONS; i++) {
		each[i] = !is_probed(fake, i) ? 0
			  : is_suppressed(process, i) && !fake->others
			      ? costs->entry_ns
			      : costs->call_ns + fake->others * costs->beside_ns;
		cost += calls[i] / 100 * each[i];
	}
	slow = 1 + cost / FAKE_LOOK;
	process->spent[fake->looks] = cost / slow + program->held * FAKE_LOOK;
	process->unseen_ns += unseen ? FAKE_LOOK : 0;
	for (int i = 0; i < FAKE_FUNCTIONS; i++) {
		double length = (double)(1U << program->octaves[i]);

		process->time += calls[i] / 100 * length;
		all += calls[i] * length;
		covered += is_suppressed(process, i) && !is_left_out(fake, i) ? 0 : calls[i] * length;
		if (each[i] <= 0)
			continue;
		n = events(&process->part[i], calls[i] / 100 / slow);
		counters->enter += n;
		orders->calls[program->octaves[i]] += n;
		orders->time_ns[program->octaves[i]] += (uint64_t)((double)n * 1536 * length);
		fake->counted[i] += (double)n * each[i] / (is_suppressed(process, i) ? SHOWN_OF_THINNED : 1);
		if (is_suppressed(process, i)) {
			orders->thinned += n;
			continue;
		}
		counters->exit += n;
		process->reported += (double)n * length;
	}
	process->covered_ns += unseen || all <= 0 ? 0 : covered / all * FAKE_LOOK;
	n = events(&process->part[FAKE_FUNCTIONS], program->syscalls / 100 / slow);
	*(orders->no_io ? &orders->thinned_io : &counters->syscalls) += n;
	process->records += (uint64_t)(program->records / 100);
	counters->held_ns += (uint64_t)(program->held * FAKE_LOOK) * (program->waiting ? program->waiting : 1);
	n = events(&process->part[FAKE_FUNCTIONS + 1], program->rows / 100 / slow);
	counters->enter += n;
	counters->rows += n;
	counters->left += n;
	counters->busiest += counters->enter + counters->exit + counters->left - before;
}

void fake__look(struct fake *fake)
{
	if (fake->looks >= fake->room)
		abort(); /* the test runs for longer than it said */
	double held = 0;

	for (size_t i = 0; i < fake->count; i++) {
		live(fake, &fake->processes[i]);
		held = fmax(held, fake->processes[i].program->held);
	}
	fake->ran_ns += (uint64_t)(held * FAKE_LOOK);
	fake->now += FAKE_LOOK;
	fake->looks++;
	fake->open_looks += fake->open[FAKE_SHORT];
}

/* Notes a change of the returns that are suppressed. */
static void note_steps(struct fake *fake)
{
	for (size_t i = 0; i < fake->count; i++) {
		struct fake_process *process = &fake->processes[i];
		unsigned thin = 0;

		while (governor__thin_ns(thin) < process->orders.thin_ns)
			thin++;
		if (thin == process->thin)
			continue;
		process->steps_up += thin > process->thin;
		process->steps_back += thin < process->thin;
		if (process->last_step_ns && fake->now - process->last_step_ns < process->least_between_steps_ns)
			process->least_between_steps_ns = fake->now - process->last_step_ns;
		process->last_step_ns = fake->now;
		process->thin = thin;
	}
}

/* Whether a thread has spent so much since the last pass that the kernel side wakes vaprod. */
static bool is_woken(const struct fake *fake)
{
	for (size_t i = 0; i < fake->count; i++)
		if ((double)fake->processes[i].counters.busiest >= WAKE_HITS)
			return true;
	return false;
}

void fake__run(struct fake *fake, double seconds)
{
	uint64_t end = fake->now + (uint64_t)(seconds * FAKE_SECOND);

	while (fake->now < end) {
		uint64_t next_ns;

		fake__look(fake);
		if (fake->now < fake->next_pass && !is_woken(fake))
			continue;
		next_ns = enforcer__pass(fake->enforcer, fake->now);
		note_steps(fake);
		fake->next_pass = fake->now + next_ns / FAKE_LOOK * FAKE_LOOK;
	}
}

unsigned fake__warned(const struct fake *fake, const char *code)
{
	unsigned count = 0;

	for (size_t i = 0; i < fake->warning_count && i < FAKE_WARNINGS; i++)
		count += !strcmp(fake->warnings[i].code, code);
	return count;
}

double fake__peak(const struct fake *fake, const struct fake_process *process)
{
	size_t width = GOVERNOR_PEAK_NS / FAKE_LOOK;
	double sum = 0, most = 0;

	for (size_t i = 0; i < fake->looks; i++) {
		sum += process->spent[i];
		if (i >= width)
			sum -= process->spent[i - width];
		most = fmax(most, sum);
	}
	return most / (double)GOVERNOR_PEAK_NS;
}

double fake__mean(const struct fake *fake, const struct fake_process *process, size_t from_second)
{
	double sum = 0;

	for (size_t i = from_second * 100; i < fake->looks; i++)
		sum += process->spent[i];
	return sum / ((double)(fake->looks - from_second * 100) * FAKE_LOOK);
}

double fake__greatest_mean(const struct fake *fake, const struct fake_process *process, size_t after_second)
{
	double sum = 0, most = 0;

	for (size_t i = 0; i < fake->looks; i++) {
		sum += process->spent[i];
		if (i + 1 >= after_second * 100)
			most = fmax(most, sum / ((double)(i + 1) * FAKE_LOOK));
	}
	return most;
}
