// SPDX-License-Identifier: GPL-2.0-or-later
/* Offsets between clocks from made-up calls, merged into bundles by each host's own bins. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "detect/clocks.h"

#define BIN_NS 200000000ULL
#define BEGIN_NS 1800000000000000000ULL
#define CALLS_MAX 40000

/* No kernel says that its clock is synchronised. */
static const struct clock_host_about unsynchronised[] = {
    {"n0", INFINITY}, {"n1", INFINITY}, {"n2", INFINITY}, {"n3", INFINITY}};

/* The moments at which all ranks leave the calls of a job, ns since its begin. */
static double ends[CALLS_MAX];
static double period_ns;
static uint32_t call_count;

static double chance(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*seed >> 11) * 0x1p-53;
}

/* Calls that take period_ms +- jitter, over some seconds; two of them come stall_s late, after 0.3 and 0.7 of them. */
static void make_calls(double period_ms, double jitter, double seconds, double stall_s)
{
	uint64_t seed = 11;
	double at = 0, late_at = 0.3 * seconds;

	period_ns = period_ms * 1e6;
	call_count = 0;
	while (at < seconds * 1e9 && call_count < CALLS_MAX) {
		at += period_ms * 1e6 * (1 + jitter * (2 * chance(&seed) - 1));
		if (stall_s > 0 && at > late_at * 1e9) {
			at += stall_s * 1e9;
			late_at += 0.4 * seconds;
		}
		ends[call_count++] = at;
	}
}

/* Regular calls over some seconds; some come late, about once in ten seconds. */
static void make_calls_of_seed(uint64_t seed, double seconds)
{
	double at = 0;

	period_ns = 10e6;
	chance(&seed);
	for (call_count = 0; at < seconds * 1e9 && call_count < CALLS_MAX; call_count++) {
		at += period_ns;
		if (chance(&seed) < 1e-3)
			at += (50 + 450 * chance(&seed)) * 1e6;
		ends[call_count] = at;
	}
}

struct host {
	uint32_t number;
	double offset_ms, drift; /* clock: true time * (1 + drift) + offset */
	double watched_s;	 /* from this moment on, by true time */
	double lost;		 /* share of bundles that are lost */
};

/* Adds the calls of [from_s, to_s), merged by the bins of the host's clock. */
static void add_calls(struct clocks *clocks, const struct host *host, uint32_t site, double from_s, double to_s)
{
	uint64_t start_ns = 0, end_ns = 0, seed = 5;
	uint32_t n = 0;
	bool late;

	for (uint32_t i = 0; i < call_count; i++) {
		double at = ends[i], clock = at * (1 + host->drift) + host->offset_ms * 1e6;
		uint64_t now_ns = BEGIN_NS + (uint64_t)(int64_t)clock;

		if (at < fmax(from_s, host->watched_s) * 1e9 || at >= to_s * 1e9)
			continue;
		late = i && at - ends[i - 1] > 2 * period_ns;
		if (n && (late || now_ns / BIN_NS != end_ns / BIN_NS)) {
			if (chance(&seed) >= host->lost)
				assert_int_equal(clocks__add(clocks, host->number, 0, site, start_ns, end_ns, n), 0);
			n = 0;
		}
		if (late) { /* slow calls are emitted by themselves */
			assert_int_equal(clocks__add(clocks, host->number, 0, site, now_ns - 10000, now_ns, 1), 0);
			continue;
		}
		if (!n++)
			start_ns = now_ns - 10000;
		end_ns = now_ns;
	}
	if (n)
		assert_int_equal(clocks__add(clocks, host->number, 0, site, start_ns, end_ns, n), 0);
}

/* Estimates the offsets of hosts that were watched for the whole time, in two windows: the second confirms the first.
 */
static struct clocks *estimate(const struct host *hosts, uint32_t count, double seconds)
{
	struct clocks *clocks = clocks__new();

	assert_non_null(clocks);
	for (unsigned window = 0; window < 2; window++) {
		for (uint32_t i = 0; i < count; i++) {
			assert_false(clocks__of(clocks, i).known);
			add_calls(clocks, &hosts[i], 3, window * seconds / 2, (window + 1) * seconds / 2);
		}
		assert_int_equal(clocks__estimate(clocks, unsynchronised, count), 0);
	}
	return clocks;
}

static void assert_offset(const struct clocks *clocks, uint32_t host, double offset_ms, double corrected_ms)
{
	struct clock_offset offset = clocks__of(clocks, host);

	if (!offset.known || fabs(offset.offset_ns / 1e6 - offset_ms) > 3 ||
	    fabs(offset.corrected_ns / 1e6 - corrected_ms) > 3)
		fail_msg("host %u: known %d, %.3f ms +- %.3f, corrected %.3f; expected %.3f", host, offset.known,
			 offset.offset_ns / 1e6, offset.spread_ns / 1e6, offset.corrected_ns / 1e6, offset_ms);
}

static void assert_unknown(const struct clocks *clocks, uint32_t host)
{
	assert_false(clocks__of(clocks, host).known);
	assert_true(clocks__of(clocks, host).corrected_ns == 0);
}

static void irregular_calls_show_the_offset(void **state)
{
	static const double offsets_ms[] = {5, 130, -130, 500, 2000, -2000, 9000};
	static const double periods_ms[] = {1, 4, 30};

	(void)state;
	for (size_t p = 0; p < 3; p++) {
		for (size_t i = 0; i < sizeof(offsets_ms) / sizeof(*offsets_ms); i++) {
			struct host hosts[] = {{0}, {.number = 1}, {.number = 2, .offset_ms = offsets_ms[i]}};
			struct clocks *clocks;

			make_calls(periods_ms[p], 0.3, 25, 0.7);
			clocks = estimate(hosts, 3, 25);
			assert_offset(clocks, 0, 0, 0);
			assert_offset(clocks, 1, 0, 0);
			assert_offset(clocks, 2, offsets_ms[i], fabs(offsets_ms[i]) < 20 ? 0 : offsets_ms[i]);
			clocks__free(clocks);
		}
	}
}

/* A host whose ranks were attached to later counts from a later call. */
static void later_ordinals_are_aligned(void **state)
{
	struct host hosts[] = {{.watched_s = 2.3}, {.number = 1, .offset_ms = -500}, {.number = 2, .watched_s = 1.7}};
	struct clocks *clocks;

	(void)state;
	make_calls(4, 0.3, 25, 0.7);
	clocks = estimate(hosts, 3, 25);
	assert_offset(clocks, 1, -500, -500);
	assert_offset(clocks, 2, 0, 0);
	clocks__free(clocks);
}

/* Of equal iterations any is as good as the next; where ranks count from different calls, nothing is known. */
static void equal_iterations_show_nothing(void **state)
{
	struct host hosts[] = {{0}, {.number = 1, .offset_ms = 137, .watched_s = 3}};
	struct clocks *clocks;

	(void)state;
	make_calls(4, 0, 25, 0);
	clocks = estimate(hosts, 2, 25);
	assert_unknown(clocks, 0);
	assert_unknown(clocks, 1);
	clocks__free(clocks);
}

/* Calls of two hosts that have nothing to do with each other. */
static void other_calls_show_nothing(void **state)
{
	struct host hosts[] = {{0}, {.number = 1}};
	struct clocks *clocks = clocks__new();

	(void)state;
	for (unsigned window = 0; window < 3; window++) {
		make_calls(5, 0.9, 36, 0);
		add_calls(clocks, &hosts[0], 3, 12 * window, 12 * window + 12);
		make_calls(40, 0.9, 36, 2);
		add_calls(clocks, &hosts[1], 3, 12 * window, 12 * window + 12);
		assert_int_equal(clocks__estimate(clocks, unsynchronised, 2), 0);
		assert_unknown(clocks, 1);
	}
	/* nor do those of different call-sites */
	clocks__free(clocks);
	clocks = clocks__new();
	make_calls(5, 0.9, 36, 1);
	for (unsigned window = 0; window < 3; window++) {
		add_calls(clocks, &hosts[0], 3, 12 * window, 12 * window + 12);
		add_calls(clocks, &hosts[1], 4, 12 * window, 12 * window + 12);
		assert_int_equal(clocks__estimate(clocks, unsynchronised, 2), 0);
		assert_unknown(clocks, 1);
	}
	clocks__free(clocks);
}

/* Each host's ranks have a communicator of their own: a stretch of regular calls agrees with any other. */
static void hosts_that_do_not_synchronise_show_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct clocks *clocks = clocks__new();

		for (unsigned window = 0; window < 12; window++) {
			for (uint32_t i = 0; i < 3; i++) {
				struct host host = {.number = i};

				make_calls_of_seed(3 * seed + i, 120);
				add_calls(clocks, &host, 3, 10 * window, 10 * window + 10);
			}
			assert_int_equal(clocks__estimate(clocks, unsynchronised, 3), 0);
			for (uint32_t i = 0; i < 3; i++)
				assert_unknown(clocks, i);
		}
		clocks__free(clocks);
	}
}

/* Adds calls one by one, by the host's clock; 2 ms of each are waiting. */
static void add_single(struct clocks *clocks, const struct host *host, double at_ns)
{
	uint64_t now_ns = BEGIN_NS + (uint64_t)(int64_t)(at_ns * (1 + host->drift) + host->offset_ms * 1e6);

	if (at_ns >= host->watched_s * 1e9)
		assert_int_equal(clocks__add(clocks, host->number, 0, 3, now_ns - 2000000, now_ns, 1), 0);
}

/*
 * Estimates the offsets of two hosts in iterations of 80 ms: rows of a process grid, each of which adds by itself, and
 * waits for the other one's former sum. A rank of the later host is late, for some time; the first host's sums are late
 * one iteration after it. Where the hosts share one communicator, both leave together, but for 0.1 ms.
 */
static struct clocks *estimate_rows(uint64_t seed, const struct host *hosts, bool shared)
{
	struct clocks *clocks = clocks__new();
	double at_ns = 0;

	for (unsigned window = 0; window < 8; window++) {
		for (; at_ns < (window + 1) * 10e9; at_ns += 80e6) {
			bool hog = at_ns >= 25e9 && at_ns < 45e9;
			double late_ns = hog ? (30 + 20 * chance(&seed)) * 1e6 : 0, apart_ns = shared ? 1e5 : 4e6;

			add_single(clocks, &hosts[0], at_ns + (shared ? late_ns : 0) + apart_ns * chance(&seed));
			add_single(clocks, &hosts[1], at_ns + late_ns + apart_ns * chance(&seed));
			at_ns += late_ns + (shared ? 4e6 * chance(&seed) : 0);
		}
		assert_int_equal(clocks__estimate(clocks, unsynchronised, 2), 0);
		for (uint32_t i = 0; i < 2 && !shared; i++)
			assert_unknown(clocks, i);
	}
	return clocks;
}

static void a_late_rank_of_another_communicator_is_no_offset(void **state)
{
	static const double offsets_ms[] = {0, 80, -300, 1000};

	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		for (size_t i = 0; i < sizeof(offsets_ms) / sizeof(*offsets_ms); i++) {
			struct host hosts[] = {
			    {0}, {.number = 1, .watched_s = 15, .offset_ms = offsets_ms[i], .drift = 2e-5}};
			struct clocks *clocks;

			clocks__free(estimate_rows(seed, hosts, false));
			clocks = estimate_rows(seed, hosts, true);
			assert_offset(clocks, 0, offsets_ms[i] < 0 ? -offsets_ms[i] : 0,
				      offsets_ms[i] < 0 ? -offsets_ms[i] : 0);
			assert_offset(clocks, 1, offsets_ms[i] > 0 ? offsets_ms[i] : 0,
				      offsets_ms[i] > 0 ? offsets_ms[i] : 0);
			clocks__free(clocks);
		}
	}
}

/* What was corrected goes back when the calls no longer agree. */
static void a_refuted_offset_is_forgotten(void **state)
{
	struct host hosts[] = {{0}, {.number = 1, .offset_ms = 500}};
	struct clocks *clocks = clocks__new();

	(void)state;
	for (unsigned window = 0; window < 12; window++) {
		for (uint32_t i = 0; i < 2; i++) {
			make_calls_of_seed(window < 6 ? 1 : 2 + i, 120);
			add_calls(clocks, &hosts[i], 3, 10 * window, 10 * window + 10);
		}
		assert_int_equal(clocks__estimate(clocks, unsynchronised, 2), 0);
		if (window == 5)
			assert_offset(clocks, 1, 500, 500);
	}
	assert_unknown(clocks, 1);
	clocks__free(clocks);
}

/* The wrong clock does not move the others, whichever comes first; of two clocks the one ahead is wrong. */
static void the_median_clock_is_right(void **state)
{
	struct host hosts[] = {{.offset_ms = 700}, {.number = 1}, {.number = 2}, {.number = 3}};
	struct clocks *clocks;

	(void)state;
	make_calls(4, 0.3, 25, 0.7);
	clocks = estimate(hosts, 4, 25);
	assert_offset(clocks, 0, 700, 700);
	for (uint32_t i = 1; i < 4; i++)
		assert_offset(clocks, i, 0, 0);
	clocks__free(clocks);
	clocks = estimate(hosts, 2, 25);
	assert_offset(clocks, 0, 700, 700);
	assert_offset(clocks, 1, 0, 0);
	clocks__free(clocks);
	clocks = estimate(hosts, 1, 25); /* alone it is not known to be wrong */
	assert_unknown(clocks, 0);
	clocks__free(clocks);
}

/* Window by window: a drift is followed in steps, also after a window without any calls. */
static void drift_is_followed(void **state)
{
	struct host hosts[] = {{0}, {.number = 1, .offset_ms = 100, .drift = 100e-6}};
	struct clocks *clocks = clocks__new();
	double corrected = 0;
	unsigned steps = 0;

	(void)state;
	make_calls(16, 0.3, 500, 0.5); /* late at 150 s, which shows the offset, and at 350 s, which confirms it */
	for (unsigned window = 0; window < 50; window++) {
		for (uint32_t i = 0; i < 2 && window != 40; i++)
			add_calls(clocks, &hosts[i], 3, 10 * window, 10 * window + 10);
		assert_int_equal(clocks__estimate(clocks, unsynchronised, 2), 0);
		assert_int_equal(clocks__of(clocks, 1).known, window >= 35);
		steps += clocks__of(clocks, 1).corrected_ns != corrected;
		corrected = clocks__of(clocks, 1).corrected_ns;
	}
	/* by its calls of the last 40 s */
	assert_true(fabs(clocks__of(clocks, 1).offset_ns - 148e6) < 3e6);
	assert_true(fabs(corrected - clocks__of(clocks, 1).offset_ns) <= 10e6);
	assert_int_equal(steps, 2); /* at 135 and 145 ms */
	clocks__free(clocks);
}

/* Bounds of the kernels of three hosts, the last of which may be wrong. */
static const struct clock_host_about synchronised[] = {{"n0", 4e6}, {"n1", 6e6}, {"n2", 5e6}, {"n3", 1e6}};

/* Jitter that is the same for all hosts shows the offset of clocks that are said to be right, and are. */
static void synchronised_clocks_are_found(void **state)
{
	static const double offsets_ms[] = {0, 7, -9, 25};

	(void)state;
	for (size_t i = 0; i < sizeof(offsets_ms) / sizeof(*offsets_ms); i++) {
		struct host hosts[] = {{0}, {.number = 1, .offset_ms = offsets_ms[i]}, {.number = 2}};
		struct clocks *clocks = clocks__new();

		make_calls(150, 0.2, 60, 0); /* some calls a bin: ends of the same calls are known of both hosts */
		for (unsigned window = 0; window < 4; window++) {
			for (uint32_t k = 0; k < 3; k++)
				add_calls(clocks, &hosts[k], 3, 15 * window, 15 * window + 15);
			assert_int_equal(clocks__estimate(clocks, synchronised, 3), 0);
		}
		assert_offset(clocks, 1, offsets_ms[i], fabs(offsets_ms[i]) < 20 ? 0 : offsets_ms[i]);
		clocks__free(clocks);
	}
}

/* A clock that is said to be synchronised and is not is found as soon as one of which nothing is said. */
static void a_bound_may_be_wrong(void **state)
{
	static const double offsets_ms[] = {50, -80, 130, 300, -300, 500, 1000, -2000, 9000};
	static const double periods_ms[] = {1, 4, 30, 100};

	(void)state;
	for (size_t p = 0; p < sizeof(periods_ms) / sizeof(*periods_ms); p++) {
		for (size_t i = 0; i < sizeof(offsets_ms) / sizeof(*offsets_ms); i++) {
			struct host hosts[] = {{0}, {.number = 1}, {.number = 2, .offset_ms = offsets_ms[i]}};

			for (unsigned about = 0; about < 2; about++) {
				struct clocks *clocks = clocks__new();

				make_calls(periods_ms[p], 0.3, 25, 0.7);
				for (unsigned window = 0; window < 2; window++) {
					for (uint32_t k = 0; k < 3; k++)
						add_calls(clocks, &hosts[k], 3, 12.5 * window, 12.5 * window + 12.5);
					assert_int_equal(
					    clocks__estimate(clocks, about ? synchronised : unsynchronised, 3), 0);
				}
				assert_offset(clocks, 2, offsets_ms[i], offsets_ms[i]);
				clocks__free(clocks);
			}
		}
	}
}

/* Iterations of ten calls: a clock that is off by whole iterations agrees well with equal clocks, too. */
static void make_iterations(double seconds)
{
	static const double parts_ms[] = {210, 290, 400, 225, 320, 250, 205, 380, 240, 480};
	uint64_t seed = 4;
	double at = 0;

	period_ns = 300e6;
	for (call_count = 0; at < seconds * 1e9 && call_count < CALLS_MAX; call_count++) {
		at += parts_ms[call_count % 10] * 1e6 * (1 + 0.02 * (2 * chance(&seed) - 1));
		ends[call_count] = at;
	}
}

static void a_shift_by_whole_iterations_is_found(void **state)
{
	struct host hosts[] = {{0}, {.number = 1}, {.number = 2, .offset_ms = 3000}};
	struct clocks *clocks = clocks__new();

	(void)state;
	make_iterations(90);
	for (unsigned window = 0; window < 6; window++) {
		for (uint32_t k = 0; k < 3; k++)
			add_calls(clocks, &hosts[k], 3, 15 * window, 15 * window + 15);
		assert_int_equal(clocks__estimate(clocks, synchronised, 3), 0);
	}
	assert_offset(clocks, 1, 0, 0);
	assert_offset(clocks, 2, 3000, 3000);
	clocks__free(clocks);
}

#define MANY 120

/* Estimates many hosts, each third of which is 0.5 s ahead, over windows of 12 s; numbers of hosts in an order. */
static struct clocks *estimate_many(bool reverse, double error_ns, unsigned windows, size_t *known_first)
{
	static struct clock_host_about about[MANY];
	static char host_names[MANY][8];
	struct clocks *clocks = clocks__new();

	make_calls_of_seed(7, 12.0 * windows);
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(host_names[i], sizeof(host_names[i]), "n%03u", i);
		about[reverse ? MANY - 1 - i : i] = (struct clock_host_about){host_names[i], error_ns};
	}
	for (unsigned window = 0; window < windows; window++) {
		for (uint32_t i = 0; i < MANY; i++) {
			struct host host = {.number = reverse ? MANY - 1 - i : i, .offset_ms = i % 3 ? 0 : 500};

			add_calls(clocks, &host, 3, 12.0 * window, 12.0 * window + 12);
		}
		assert_int_equal(clocks__estimate(clocks, about, MANY), 0);
		if (window != 1)
			continue;
		*known_first = 0;
		for (uint32_t i = 0; i < MANY; i++)
			*known_first += clocks__of(clocks, i).known;
	}
	return clocks;
}

/* Comparisons of a window are bounded: not all hosts are searched at once. Who comes first does not matter. */
static void many_hosts_are_searched_one_after_the_other(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		double error_ns = round ? 2e6 : INFINITY;
		size_t first, first_reverse, known = 0;
		struct clocks *clocks = estimate_many(false, error_ns, 20, &first);
		struct clocks *reverse = estimate_many(true, error_ns, 20, &first_reverse);

		assert_int_equal(first, first_reverse);
		assert_in_range(first, 2, MANY / 2);
		for (uint32_t i = 0; i < MANY; i++) {
			struct clock_offset a = clocks__of(clocks, i), b = clocks__of(reverse, MANY - 1 - i);

			known += a.known;
			if (a.known)
				assert_offset(clocks, i, i % 3 ? 0 : 500, i % 3 ? 0 : 500);
			assert_memory_equal(&a, &b, sizeof(a));
		}
		assert_in_range(known, MANY * 9 / 10, MANY);
		clocks__free(clocks);
		clocks__free(reverse);
	}
}

/* Replaces clocks by ones that are read from their archive. */
static struct clocks *load(struct clocks *clocks)
{
	struct archive *out = archive__new(), *in;
	struct clocks *loaded = clocks__new();
	const uint8_t *data;
	size_t size;

	clocks__archive(out, clocks);
	data = archive__data(out, &size);
	in = archive__open(data, size, 64 << 20);
	clocks__archive(in, loaded);
	assert_int_equal(archive__error(in), 0);
	archive__free(in);
	archive__free(out);
	clocks__free(clocks);
	return loaded;
}

/* Searches that wait, candidates and known offsets go on from a checkpoint as they would have without. */
static void checkpoints_change_nothing(void **state)
{
	struct host hosts[] = {{0}, {.number = 1, .offset_ms = 100, .drift = 100e-6}, {.number = 2, .offset_ms = -3}};
	struct clocks *clocks = clocks__new(), *loaded = clocks__new();

	(void)state;
	make_calls(16, 0.3, 500, 0.5);
	for (unsigned window = 0; window < 50; window++) {
		for (uint32_t i = 0; i < 3; i++) {
			add_calls(clocks, &hosts[i], 3, 10 * window, 10 * window + 10);
			add_calls(loaded, &hosts[i], 3, 10 * window, 10 * window + 10);
			add_calls(clocks, &hosts[i], 4, 10 * window, 10 * window + 10);
			loaded = load(loaded);
			add_calls(loaded, &hosts[i], 4, 10 * window, 10 * window + 10);
		}
		assert_int_equal(clocks__estimate(clocks, synchronised, 3), 0);
		assert_int_equal(clocks__estimate(loaded, synchronised, 3), 0);
		for (uint32_t i = 0; i < 3; i++) {
			struct clock_offset a = clocks__of(clocks, i), b = clocks__of(loaded, i);

			assert_memory_equal(&a, &b, sizeof(a));
		}
	}
	assert_true(clocks__of(clocks, 1).known);
	clocks__free(clocks);
	clocks__free(loaded);
}

static void memory_is_bounded(void **state)
{
	struct clocks *clocks = clocks__new();
	size_t bytes;

	(void)state;
	for (uint32_t site = 0; site < 100; site++) {
		for (uint64_t i = 0; i < 2000; i++)
			assert_int_equal(clocks__add(clocks, 0, 0, site, BEGIN_NS + i * BIN_NS,
						     BEGIN_NS + i * BIN_NS + 1000, 1 + (uint32_t)i % 3),
					 0);
	}
	bytes = clocks__bytes(clocks);
	assert_true(bytes < 150000);
	/* a rank of a lower number takes the place of another */
	assert_int_equal(clocks__add(clocks, 0, -1, 0, BEGIN_NS, BEGIN_NS + 1, 1), 0);
	assert_int_equal(clocks__bytes(clocks), bytes);
	assert_false(clocks__of(clocks, 9).known);
	assert_false(clocks__of(NULL, 0).known);
	clocks__free(clocks);
	clocks__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(irregular_calls_show_the_offset),
	    cmocka_unit_test(later_ordinals_are_aligned),
	    cmocka_unit_test(equal_iterations_show_nothing),
	    cmocka_unit_test(other_calls_show_nothing),
	    cmocka_unit_test(hosts_that_do_not_synchronise_show_nothing),
	    cmocka_unit_test(a_late_rank_of_another_communicator_is_no_offset),
	    cmocka_unit_test(a_refuted_offset_is_forgotten),
	    cmocka_unit_test(the_median_clock_is_right),
	    cmocka_unit_test(drift_is_followed),
	    cmocka_unit_test(synchronised_clocks_are_found),
	    cmocka_unit_test(a_bound_may_be_wrong),
	    cmocka_unit_test(a_shift_by_whole_iterations_is_found),
	    cmocka_unit_test(many_hosts_are_searched_one_after_the_other),
	    cmocka_unit_test(checkpoints_change_nothing),
	    cmocka_unit_test(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
