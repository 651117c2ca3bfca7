// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/typical.h"

#include "base/grow.h"
#include "model/judgement.h"

#include <math.h>

#define SPREAD_S 10	  /* least time between first and last batch of a group that is spread over time */
#define CALL_BATCHES 4	  /* times the support: the most batches that a group of calls needs */
#define OWN_COMPUTED 2	  /* least batches of a rank's computation, which waits for no other rank */
#define FEW_ROWS 2	  /* rows, of which one alone may be the faster */
#define CHRONIC_WIDTH 1.5 /* times the lowest populous duration of calls that nearly all of them take */
#define RARE_SHARE 0.25	  /* share of the ranks whose equal mean times are a reference */

/* A group of the batches of one series. */
struct candidate {
	uint32_t processor, series;
	struct batch_group group;
};

struct candidates {
	struct candidate *items;
	size_t count, capacity;
};

static bool spread(const struct batch_group *group)
{
	return group->last - group->first >= SPREAD_S && group->late >= LEAST_BATCHES;
}

/* Gathers all batches of a series, live ones too, in the book's scratch. */
static int gather(struct series_book *book, const struct series *series)
{
	batches__empty(&book->scratch);
	if (batches__pool(&book->scratch, &series->batches, series->row) ||
	    batches__pool(&book->scratch, &series->batches_live, series->row))
		return -ENOMEM;
	batches__sort(&book->scratch);
	return 0;
}

/*
 * The batches that a group in the scratch, of so many rows, needs. A single rank needs few where other ranks agree.
 * Calls scatter into many groups, as different ranks wait: they need a share of all batches, up to a bound.
 */
static double needed(const struct series_book *book, enum vapro_class class, size_t rows)
{
	double support = (double)book->config->support_batches, least = rows > 1 ? support : LEAST_BATCHES;

	if (class == VAPRO_COMPUTATION)
		return rows > 1 ? support : OWN_COMPUTED;
	return fmin(fmax(least, book->config->populous_share * (double)batches__total(&book->scratch)),
		    CALL_BATCHES * support * (double)rows);
}

/* Below 0: not known. */
static double usual_frequency(const struct series *series)
{
	return series->frequency_n > 0 ? series->frequency_ns / series->frequency_n : -1;
}

static double mean_frequency(const struct series *series)
{
	return series->frequency_n > 0 ? series->frequency_ns / series->frequency_n : 0;
}

static uint32_t processor_of(const struct series_book *book, const struct series *series)
{
	return stg__thread(book->stg, series->thread)->processor;
}

/* ---- fixed work: all ranks on CPUs of one kind */

/*
 * Whether enough batches up to a group's upper end are not of the row that has most, counted in row_batches. A few
 * batches of other rows are by chance as fast as those of a single fast row. Of few rows the batches of a faster group
 * (NULL: none) do not count: one of two rows that is slow from its start would be the reference, since the other row
 * is faster.
 */
static bool shared(struct series_book *book, const struct workload *workload, uint32_t processor,
		   const struct batch_group *group, const struct batch_group *faster)
{
	uint32_t all = 0, most = 0;

	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next)
		book->row_batches[book->series[i].row] = 0;
	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		const struct series *series = &book->series[i];
		const struct batches *both[] = {&series->batches, &series->batches_live};

		if (processor_of(book, series) != processor)
			continue;
		for (int k = 0; k < 2; k++) {
			for (uint32_t b = 0; b < both[k]->count; b++) {
				const struct batch_bucket *bucket = &both[k]->items[b];

				if (bucket->sum_ns > RATIO_ALIKE * group->centre_ns * bucket->n)
					break;
				if (faster && bucket->sum_ns <= RATIO_ALIKE * faster->centre_ns * bucket->n)
					continue;
				all += bucket->n;
				book->row_batches[series->row] += bucket->n;
			}
		}
		most = book->row_batches[series->row] > most ? book->row_batches[series->row] : most;
	}
	return all - most >= LEAST_BATCHES;
}

static bool is_of_ranks(const struct batch_group *group, size_t rows)
{
	return group->n >= LEAST_RANKS && (double)group->n >= RARE_SHARE * (double)rows;
}

static double mean_ns(const struct histogram *histogram)
{
	return histogram->sum_ns / histogram->n;
}

/*
 * Where ranks repeat a work too rarely for batches, the mean of each rank is a batch: the lowest group of at least five
 * ranks, and of a quarter of them, since half of the ranks may be slow alike. The fastest rank would be two standard
 * deviations too fast among 36. Fills *typical, and returns whether there is such a group, or -ENOMEM.
 */
static int of_ranks(struct series_book *book, const struct workload *workload, uint32_t processor, size_t rows,
		    struct batch_group *typical)
{
	struct batch_group groups[BATCH_GROUPS];
	double members = 0;
	unsigned count;

	if (rows < LEAST_RANKS)
		return 0;
	batches__empty(&book->scratch);
	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		const struct series *series = &book->series[i];

		if (processor_of(book, series) != processor || !(series->cpu.n > 0))
			continue;
		members += series->cpu.n;
		batches__add(&book->scratch, 0, BATCH_MEMBERS, BATCH_MEMBERS * mean_ns(&series->cpu));
		if (batches__close(&book->scratch))
			return -ENOMEM;
	}
	if (members < (double)book->config->support_batches)
		return 0;
	count = batches__groups(&book->scratch, groups);
	for (unsigned i = 0; i < count; i++) {
		if (is_of_ranks(&groups[i], rows)) {
			*typical = groups[i];
			return 1;
		}
	}
	return 0;
}

/* Counts the rows of a workload on CPUs of a kind. */
static size_t count_rows(struct series_book *book, const struct workload *workload, uint32_t processor)
{
	size_t rows = 0;

	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next)
		book->row_batches[book->series[i].row] = 0;
	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		if (processor_of(book, &book->series[i]) == processor)
			rows += !book->row_batches[book->series[i].row]++;
	}
	return rows;
}

/* The lowest of the groups of all batches, which are in the scratch, with support; NULL: none. */
static const struct batch_group *lowest_supported(struct series_book *book, const struct workload *workload,
						  uint32_t processor, size_t rows, const struct batch_group *groups,
						  unsigned count)
{
	double need = needed(book, workload->class, rows + !rows);

	for (unsigned i = 0; i < count; i++) {
		const struct batch_group *faster = i && rows <= FEW_ROWS ? &groups[i - 1] : NULL;

		if (groups[i].n >= need &&
		    (shared(book, workload, processor, &groups[i], faster) || (rows <= FEW_ROWS && spread(&groups[i]))))
			return &groups[i];
	}
	return NULL;
}

static int refresh_kind(struct series_book *book, const struct workload *workload, uint32_t processor)
{
	struct batch_group groups[BATCH_GROUPS];
	const struct batch_group *typical;
	struct batch_group ranks;
	double reference, frequency = INFINITY;
	size_t rows;
	unsigned count;
	int found;

	if (grow(&book->row_batches, &book->row_capacity, stg__job(book->stg, workload->job)->row_count,
		 sizeof(*book->row_batches)))
		return -ENOMEM;
	rows = count_rows(book, workload, processor);
	batches__empty(&book->scratch);
	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		const struct series *series = &book->series[i];

		if (processor_of(book, series) != processor)
			continue;
		if (batches__pool(&book->scratch, &series->batches, series->row) ||
		    batches__pool(&book->scratch, &series->batches_live, series->row))
			return -ENOMEM;
		if (series->frequency_n > 0)
			frequency = fmin(frequency, mean_frequency(series));
	}
	batches__sort(&book->scratch);
	count = batches__groups(&book->scratch, groups);
	typical = lowest_supported(book, workload, processor, rows, groups, count);
	reference = typical ? typical->centre_ns : batches__median(&book->scratch);
	if (!typical) {
		found = of_ranks(book, workload, processor, rows, &ranks);
		if (found < 0)
			return found;
		if (found) {
			typical = &ranks;
			reference = ranks.centre_ns;
		}
	}
	/* A loss against a provisional reference is shown, and not confirmed. */
	for (unsigned i = 0; i < count && !typical; i++) {
		if (groups[i].n >= LEAST_BATCHES) {
			reference = groups[i].centre_ns;
			break;
		}
	}
	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		struct series *series = &book->series[i];

		if (processor_of(book, series) != processor)
			continue;
		series->supported = typical;
		series->compared = rows > 1 && reference > 0;
		series->reference_ns = reference > 0 ? reference : series->own_ns;
		series->usual_frequency = isfinite(frequency) ? (float)frequency : -1;
	}
	return 0;
}

/* Calls `call` for each kind of CPU of a workload's ranks; there are few, mostly one. Returns 0 or -ENOMEM. */
static int each_processor(struct series_book *book, struct workload *workload,
			  int (*call)(struct series_book *book, const struct workload *workload, uint32_t processor))
{
	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		uint32_t processor = processor_of(book, &book->series[i]), j = workload->series;

		while (j != i && processor_of(book, &book->series[j]) != processor)
			j = book->series[j].next;
		if (j == i && call(book, workload, processor))
			return -ENOMEM;
	}
	return 0;
}

static int refresh_fixed(struct series_book *book, struct workload *workload)
{
	struct batch_group groups[BATCH_GROUPS];

	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		if (gather(book, &book->series[i]))
			return -ENOMEM;
		if (batches__groups(&book->scratch, groups))
			book->series[i].own_ns = batches__median(&book->scratch);
	}
	return each_processor(book, workload, refresh_kind);
}

/* ---- other work: each rank by itself, and with those that agree */

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	if (left->processor != right->processor)
		return left->processor < right->processor ? -1 : 1;
	if (left->group.centre_ns != right->group.centre_ns)
		return left->group.centre_ns < right->group.centre_ns ? -1 : 1;
	return (left->series > right->series) - (left->series < right->series);
}

/* Whether another row, on a CPU of the same kind, has a group close to a candidate's, and all together are enough. */
static bool agreed(const struct series_book *book, const struct candidates *all, size_t at)
{
	const struct series *own = &book->series[all->items[at].series];
	double centre = all->items[at].group.centre_ns, agreement = 1 + book->config->rank_agreement;
	uint64_t batches = all->items[at].group.n;
	bool other = false;

	for (int step = -1; step <= 1; step += 2) {
		for (size_t i = at + (size_t)step; i < all->count; i += (size_t)step) {
			double there = all->items[i].group.centre_ns;

			if (fmax(there, centre) > agreement * fmin(there, centre) ||
			    all->items[i].processor != all->items[at].processor)
				break;
			batches += all->items[i].group.n;
			other |= book->series[all->items[i].series].row != own->row;
			if (other && batches >= book->config->support_batches)
				return true;
		}
	}
	return false;
}

/* The share of a histogram's fragments in buckets whose mean is at most ns. */
static double share_until(const struct histogram *histogram, double ns)
{
	double n = 0;

	for (size_t b = 0; b < histogram->count; b++)
		n += histogram->buckets[b].sum_ns <= ns * histogram->buckets[b].n ? histogram->buckets[b].n : 0;
	return histogram->n > 0 ? n / histogram->n : 0;
}

/* Whether nearly all of a rank's calls have one duration, and the rest is hit by something at random. */
static bool is_chronic(const struct series *series)
{
	return series->class == VAPRO_COMMUNICATION && series->duration_ns > 0 &&
	       share_until(&series->cpu, CHRONIC_WIDTH * series->duration_ns) >= SHARE_NEARLY_ALL;
}

/*
 * What is usual of what a rank's calls take. A batch is a mean, which what hits few calls at random raises for good:
 * there no more than a tenth beyond the duration of nearly all calls is usual.
 */
static double usual_of(const struct series *series, double ns)
{
	double most = RATIO_ALIKE * series->duration_ns;

	return ns > most && is_chronic(series) ? most : ns;
}

static int collect(struct series_book *book, const struct workload *workload, struct candidates *all)
{
	struct batch_group groups[BATCH_GROUPS];

	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		double need, below = 0;
		unsigned count;

		if (gather(book, &book->series[i]))
			return -ENOMEM;
		if (is_chronic(&book->series[i]))
			book->series[i].own_ns = fmax(book->series[i].own_ns, batches__median(&book->scratch));
		need = needed(book, workload->class, 1);
		count = batches__groups(&book->scratch, groups);
		for (unsigned k = 0; k < count; below += groups[k++].n) {
			/*
			 * Calls that wait for one late rank have similar durations, while shorter calls scatter.
			 * The shorter ones are typical where there are more of them.
			 */
			if (groups[k].n < need || (workload->class == VAPRO_COMMUNICATION && below > groups[k].n))
				continue;
			if (grow(&all->items, &all->capacity, all->count + 1, sizeof(*all->items)))
				return -ENOMEM;
			all->items[all->count++] =
			    (struct candidate){processor_of(book, &book->series[i]), i, groups[k]};
		}
	}
	if (all->count)
		qsort(all->items, all->count, sizeof(*all->items), compare_candidates);
	return 0;
}

/*
 * Ranks that agree, ascending from the lowest, have one reference: the mean of their own. A rank that is slower by
 * the extra cost of its frequency agrees with them.
 */
static void pool(struct series_book *book, const struct candidates *own)
{
	double agreement = 1 + book->config->rank_agreement;

	for (size_t i = 0, end; i < own->count; i = end) {
		double lowest = own->items[i].group.centre_ns, sum = 0, frequency = INFINITY;

		end = i;
		do { /* the lowest rank is in its own group, even if a hostile checkpoint made its mean negative or no
			number */
			const struct series *series = &book->series[own->items[end].series];

			sum += own->items[end].group.centre_ns;
			if (series->frequency_n > 0)
				frequency = fmin(frequency, mean_frequency(series));
			end++;
		} while (end < own->count && own->items[end].group.centre_ns <= lowest * agreement &&
			 own->items[end].processor == own->items[i].processor);
		for (size_t k = i; k < end; k++) {
			struct series *series = &book->series[own->items[k].series];

			series->reference_ns = sum / (double)(end - i);
			series->usual_frequency = isfinite(frequency) ? (float)frequency : -1;
			series->compared = true;
		}
	}
	for (size_t i = 0; i < own->count; i++) {
		struct series *series = &book->series[own->items[i].series];

		for (size_t k = 0; k < own->count; k++) {
			const struct series *other = &book->series[own->items[k].series];
			double more = mean_frequency(series) - mean_frequency(other);

			if (own->items[k].processor != own->items[i].processor)
				continue;
			if (other->reference_ns >= series->own_ns / agreement ||
			    series->own_ns - other->own_ns > agreement * more)
				break;
			if (series->own_ns - more > other->reference_ns * agreement)
				continue;
			series->reference_ns = other->reference_ns;
			series->usual_frequency = other->usual_frequency;
			break;
		}
	}
}

/* Ranks without support that were seen often enough are compared by their usual time so far. */
static int add_provisional(struct series_book *book, const struct workload *workload, struct candidates *own)
{
	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		const struct series *series = &book->series[i];

		if (series->supported || series->cpu.n < (double)book->config->certify_fragments ||
		    series->own_ns <= 0 || (series->class == VAPRO_COMPUTATION && !series->certified))
			continue;
		if (grow(&own->items, &own->capacity, own->count + 1, sizeof(*own->items)))
			return -ENOMEM;
		own->items[own->count++] =
		    (struct candidate){processor_of(book, series), i, {.centre_ns = usual_of(series, series->own_ns)}};
	}
	if (own->count)
		qsort(own->items, own->count, sizeof(*own->items), compare_candidates);
	return 0;
}

static int refresh_own(struct series_book *book, struct workload *workload)
{
	struct candidates all = {0}, own = {0};
	int error = collect(book, workload, &all);

	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		struct series *series = &book->series[i];

		series->supported = series->compared = false;
		series->reference_ns = usual_of(series, series->own_ns);
		series->usual_frequency = (float)usual_frequency(series);
	}
	for (size_t i = 0; !error && i < all.count; i++) {
		struct series *series = &book->series[all.items[i].series];

		if (series->supported ||
		    !((spread(&all.items[i].group) && all.items[i].group.n >= book->config->support_batches) ||
		      agreed(book, &all, i)))
			continue;
		series->supported = true;
		series->own_ns = all.items[i].group.centre_ns;
		series->reference_ns = all.items[i].group.centre_ns = usual_of(series, series->own_ns);
		if (series->class == VAPRO_COMPUTATION && !series->certified)
			continue;
		if (grow(&own.items, &own.capacity, own.count + 1, sizeof(*own.items)))
			error = -ENOMEM;
		else
			own.items[own.count++] = all.items[i];
	}
	if (!error)
		error = add_provisional(book, workload, &own);
	if (!error)
		pool(book, &own);
	free(all.items);
	free(own.items);
	return error;
}

/* ---- ranks that are slower than the others in the same calls, for good */

static int compare_own(const void *a, const void *b)
{
	const struct series *left = *(struct series *const *)a, *right = *(struct series *const *)b;

	return (left->own_ns > right->own_ns) - (left->own_ns < right->own_ns);
}

/* In a rooted collective the root waits for all others, by design. */
static bool rooted(const struct series_book *book, const struct series *series)
{
	const char *labels = stg__state(book->stg, series->state)->about.common;

	return labels && (!strncmp(labels, "root=", 5) || strstr(labels, " root="));
}

/* A rank that computes less than the others arrives early and waits for the difference. */
static bool waits_early(const struct series_book *book, const struct series *series, double usual_ns)
{
	const struct stg_job *job = stg__job(book->stg, series->job);
	double less = stg__computes_less(job, series->row, false);

	return less > SHARE_MOST * (series->own_ns - usual_ns) * series->view_n;
}

static uint64_t batches_of(const struct series *series)
{
	return batches__total(&series->batches) + batches__total(&series->batches_live);
}

/*
 * Where most ranks agree, a rank that takes longer for the same calls of the same size has the others' reference: the
 * rank has no good time of its own.
 */
static int find_slower(struct series_book *book, const struct workload *workload, uint32_t processor)
{
	struct series **ranks = NULL;
	size_t count = 0, capacity = 0, near = 0;
	uint64_t batches = 0;
	double median;

	for (uint32_t i = workload->series; i != SERIES_NONE; i = book->series[i].next) {
		struct series *series = &book->series[i];

		if (processor_of(book, series) != processor)
			continue;
		series->slower = false;
		if (batches_of(series) < LEAST_BATCHES || series->own_ns <= 0 || rooted(book, series))
			continue;
		if (grow(&ranks, &capacity, count + 1, sizeof(*ranks))) {
			free(ranks);
			return -ENOMEM;
		}
		ranks[count++] = series;
	}
	if (count)
		qsort(ranks, count, sizeof(*ranks), compare_own);
	median = count ? ranks[(count - 1) / 2]->own_ns : 0;
	for (size_t i = 0; i < count; i++) {
		bool is = fabs(ranks[i]->own_ns - median) <= (RATIO_ALIKE - 1) * median;

		near += is;
		batches += is ? batches_of(ranks[i]) : 0;
	}
	if (count < LEAST_COMPARED || (double)near < SHARE_OF_RANKS * (double)count ||
	    batches < book->config->support_batches)
		count = 0;
	for (size_t i = 0; i < count; i++) {
		struct series *series = ranks[i];

		if (median >= book->config->threshold * series->own_ns ||
		    (workload->class == VAPRO_COMMUNICATION && waits_early(book, series, median)))
			continue;
		/* Ranks that only communicate with a slower one are slower by less. */
		if (series->own_ns - median < SHARE_OF_SLOWEST * (ranks[count - 1]->own_ns - median))
			continue;
		series->slower = series->supported = true;
		series->reference_ns = median;
	}
	free(ranks);
	return 0;
}

int typical__refresh(struct series_book *book, struct workload *workload)
{
	bool fixed = workload->class == VAPRO_IO ||
		     (workload->class == VAPRO_COMPUTATION && book->source == VAPRO_BY_INSTRUCTIONS);

	workload->dirty = false;
	if (fixed ? refresh_fixed(book, workload) : refresh_own(book, workload))
		return -ENOMEM;
	return workload->class == VAPRO_COMPUTATION ? 0 : each_processor(book, workload, find_slower);
}
