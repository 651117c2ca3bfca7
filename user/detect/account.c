/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/account.h"

#include "base/grow.h"
#include "model/judgement.h"

#include <math.h>

static const enum vapro_factor factor_of[ACCOUNT_CAUSES] = {
    [CAUSE_PREEMPTED] = VAPRO_PREEMPTED, [CAUSE_WAKEUP_WAIT] = VAPRO_WAKEUP_WAIT,
    [CAUSE_THROTTLED] = VAPRO_THROTTLED, [CAUSE_STOPPED] = VAPRO_STOPPED,
    [CAUSE_STEAL] = VAPRO_STEAL,
};

void account__clear(struct account *account)
{
	free(account->records);
	free(account->recs);
	free(account->factors);
	free(account->bins);
	*account = (struct account){0};
}

size_t account__bytes(const struct account *account)
{
	return account->capacity * sizeof(*account->records) + account->rec_capacity * sizeof(*account->recs) +
	       account->factor_capacity * sizeof(*account->factors) + account->bin_capacity * sizeof(*account->bins);
}

static int add_sums(struct account *account, const struct vapro_account *bin)
{
	struct account_bin *at = NULL;
	struct result_account *sums;

	for (size_t i = account->bin_count; !at && i-- > 0;)
		at = account->bins[i].bin == bin->bin ? &account->bins[i] : NULL;
	if (!at) {
		if (grow(&account->bins, &account->bin_capacity, account->bin_count + 1, sizeof(*account->bins)))
			return -ENOMEM;
		at = &account->bins[account->bin_count++];
		*at = (struct account_bin){.bin = bin->bin};
	}
	sums = &at->sums;
	sums->on_cpu_s += (double)bin->on_cpu_ns / 1e9;
	sums->preempted_s += (double)bin->preempted_ns / 1e9;
	sums->wakeup_wait_s += (double)bin->wakeup_wait_ns / 1e9;
	sums->throttled_s += (double)bin->throttled_ns / 1e9;
	sums->stopped_s += (double)bin->stopped_ns / 1e9;
	sums->steal_s += (double)bin->steal_ns / 1e9;
	sums->blocked_io_s += (double)bin->blocked_io_ns / 1e9;
	sums->blocked_other_s += (double)bin->blocked_other_ns / 1e9;
	return 0;
}

/*
 * Whether a thread slept that may wait for other ranks: not one that hardly ever does anything, nor one whose calls are
 * seen, which show its waits.
 */
static bool is_sleep(const struct stg *stg, const struct vapro_account *bin)
{
	uint64_t seen_until = stg__thread(stg, bin->thread)->last_ns / VAPRO_BIN_NS + HEATMAP_AROUND_LEAST;

	return (double)bin->blocked_other_ns >= ACCOUNT_LEAST_NS && bin->bin > seen_until &&
	       stg__work_share(stg, bin->thread, bin->bin) >= SHARE_MEANINGFUL;
}

int account__add(struct account *account, struct stg *stg, const struct vapro_account *bin)
{
	struct account_record record = {
	    .bin = bin->bin,
	    .thread = bin->thread,
	    .row = SERIES_NONE,
	    .ns =
		{
		    [CAUSE_PREEMPTED] = (float)bin->preempted_ns,
		    [CAUSE_WAKEUP_WAIT] = (float)bin->wakeup_wait_ns,
		    [CAUSE_THROTTLED] = (float)bin->throttled_ns,
		    [CAUSE_STOPPED] = (float)bin->stopped_ns,
		    [CAUSE_STEAL] = (float)bin->steal_ns,
		},
	};
	double attributed = 0;
	bool slept;

	account->known = true;
	for (int cause = 0; cause < ACCOUNT_CAUSES; cause++)
		attributed += (double)record.ns[cause];
	stg__add_work(stg, bin->thread, bin->bin, (double)bin->on_cpu_ns, attributed);
	stg__note_account(stg, bin);
	if (add_sums(account, bin))
		return -ENOMEM;
	slept = is_sleep(stg, bin);
	if (attributed < ACCOUNT_LEAST_NS && !slept)
		return 0;
	record.slept_ns = slept ? (float)bin->blocked_other_ns : 0;
	account->sleeps |= slept;
	if (grow(&account->records, &account->capacity, account->count + 1, sizeof(*account->records)))
		return -ENOMEM;
	account->records[account->count++] = record;
	return 0;
}

static double attributed_in(const struct account_record *record)
{
	double sum = 0;

	for (int cause = 0; cause < ACCOUNT_CAUSES; cause++)
		sum += (double)record->ns[cause];
	return sum;
}

static int compare(const void *a, const void *b)
{
	const struct account_record *left = a, *right = b;

	if (left->bin != right->bin)
		return left->bin < right->bin ? -1 : 1;
	if (left->row != right->row)
		return left->row < right->row ? -1 : 1;
	return (left->thread > right->thread) - (left->thread < right->thread);
}

int account__rows(struct account *account, struct stg *stg, uint64_t end)
{
	for (size_t i = 0; i < account->count; i++) {
		struct account_record *record = &account->records[i];

		record->row = SERIES_NONE;
		record->judged_ns = record->carried_ns = record->seen_ns = 0;
		if (record->bin >= end || stg__work_share(stg, record->thread, record->bin) < SHARE_MEANINGFUL)
			continue;
		if (stg__touch(stg, record->thread, record->bin * VAPRO_BIN_NS, false))
			return -ENOMEM;
		record->row = stg__thread(stg, record->thread)->row;
	}
	if (account->count)
		qsort(account->records, account->count, sizeof(*account->records), compare);
	return 0;
}

/* Finds the first record at or after a bin and row. */
static size_t find(const struct account *account, uint64_t bin, uint32_t row)
{
	const struct account_record wanted = {.bin = bin, .row = row};
	size_t low = 0, high = account->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare(&account->records[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static double carried_by(const struct bundle_rec *rec)
{
	double sum = 0;

	for (int cause = 0; rec->factor != bundle_rec_no_factors && cause < ACCOUNT_CAUSES; cause++)
		sum += (double)rec->factor[factor_of[cause]];
	return sum;
}

static void carry(struct account *account, const struct series_book *book, const struct bundle_rec *rec, bool past)
{
	uint64_t from = account->records[0].bin, to = account->records[account->count - 1].bin;
	uint64_t first = bundle_rec__first_bin(rec), last = bundle_rec__bin(rec);
	uint32_t row = book->series[rec->series].row;
	bool judged = rec->covered && !rec->attributed_only;

	if (last < from || first > to)
		return;
	first = first < from ? from : first;
	last = last > to ? to : last;
	for (uint64_t bin = first; bin <= last; bin++) {
		size_t at = find(account, bin, row);
		struct account_record *record = &account->records[at];
		double share;

		if (at == account->count)
			break;
		if (record->bin > bin) { /* no record in between */
			bin = record->bin - 1;
			continue;
		}
		if (record->row != row)
			continue;
		share = bundle_rec__share(rec, bin);
		*(past ? &record->past_seen_ns : &record->seen_ns) += (float)(rec->sum_ns * share);
		if (!judged)
			continue;
		*(past ? &record->past_judged_ns : &record->judged_ns) += (float)(rec->sum_ns * share);
		*(past ? &record->past_carried_ns : &record->carried_ns) += (float)(carried_by(rec) * share);
	}
}

void account__carry(struct account *account, const struct series_book *book, const struct bundle_rec *rec, size_t count)
{
	for (size_t i = 0; account->count && i < count; i++)
		carry(account, book, &rec[i], false);
}

void account__carry_past(struct account *account, const struct series_book *book, const struct bundle_rec *rec)
{
	if (account->count)
		carry(account, book, rec, true);
}

void account__forget_past(struct account *account)
{
	for (size_t i = 0; i < account->count; i++)
		account->records[i].past_judged_ns = account->records[i].past_carried_ns =
		    account->records[i].past_seen_ns = 0;
}

bool account__is_loss(const struct account_record *record, const struct vapro_config *config, double *time,
		      double *lost)
{
	double rest = attributed_in(record) - (double)record->carried_ns - (double)record->past_carried_ns;

	*time = (double)VAPRO_BIN_NS - (double)record->judged_ns - (double)record->past_judged_ns;
	*lost = fmin(rest, *time);
	return record->row != SERIES_NONE && *time >= config->valid_bin * (double)VAPRO_BIN_NS &&
	       *lost >= ACCOUNT_LEAST_NS && *lost > (1 - config->threshold) * *time;
}

int account__make(struct account *account, struct series_book *book, uint64_t end, uint64_t retire)
{
	account->rec_count = 0;
	if (grow(&account->recs, &account->rec_capacity, account->count, sizeof(*account->recs)) ||
	    grow(&account->factors, &account->factor_capacity, account->count, sizeof(*account->factors)))
		return -ENOMEM;
	for (size_t i = 0; i < account->count; i++) {
		const struct account_record *record = &account->records[i];
		struct bundle_rec *rec = &account->recs[account->rec_count];
		float *factor = account->factors[account->rec_count];
		double time, lost, part;
		uint32_t series;
		int error;

		if (record->bin >= end || !account__is_loss(record, book->config, &time, &lost))
			continue;
		error = series__unseen(book, record->thread, &series);
		if (error == -ENOSPC)
			continue;
		if (error)
			return error;
		part = lost / attributed_in(record);
		memset(factor, 0, sizeof(account->factors[0]));
		for (int cause = 0; cause < ACCOUNT_CAUSES; cause++)
			factor[factor_of[cause]] = (float)(part * (double)record->ns[cause]);
		*rec = (struct bundle_rec){
		    .start_ns = record->bin * VAPRO_BIN_NS,
		    .end_ns = (record->bin + 1) * VAPRO_BIN_NS,
		    .sum_ns = time,
		    .factor = factor,
		    .series = series,
		    .n = 1,
		    .max_ns = (float)time,
		    .cell = BUNDLE_NO_CELL,
		    .reference = (float)fmax(1, time - lost), /* 0 would be unknown */
		    .covered = 1,
		    .attributed_only = 1,
		    .reason = VAPRO_NOT_SEEN,
		    .account = record->bin < retire ? BUNDLE_FROM_ACCOUNT_RETIRING : BUNDLE_FROM_ACCOUNT,
		};
		account->rec_count++;
	}
	return 0;
}

uint64_t account__retire_bin(const struct heatmap *map, uint64_t end)
{
	uint64_t oldest = end > HEATMAP_MORE ? end - HEATMAP_MORE : 0;

	return oldest > map->begin ? oldest : map->begin;
}

void account__retire(struct account *account, uint64_t retire)
{
	size_t left = 0;

	for (size_t i = 0; i < account->count; i++) {
		if (account->records[i].bin >= retire)
			account->records[left++] = account->records[i];
	}
	account->count = left;
}

struct result_account account__window(struct account *account, uint64_t end)
{
	struct result_account sum = {.known = account->known};
	size_t left = 0;

	for (size_t i = 0; i < account->bin_count; i++) {
		const struct result_account *from = &account->bins[i].sums;

		if (account->bins[i].bin >= end) {
			account->bins[left++] = account->bins[i];
			continue;
		}
		sum.on_cpu_s += from->on_cpu_s;
		sum.preempted_s += from->preempted_s;
		sum.wakeup_wait_s += from->wakeup_wait_s;
		sum.throttled_s += from->throttled_s;
		sum.stopped_s += from->stopped_s;
		sum.steal_s += from->steal_s;
		sum.blocked_io_s += from->blocked_io_s;
		sum.blocked_other_s += from->blocked_other_s;
	}
	account->bin_count = left;
	return sum;
}

static const struct archive_column account_columns[] = {
    ARCHIVE_ONE(struct account, known),
    ARCHIVE_ONE(struct account, sleeps),
    ARCHIVE_ONE(struct account, rec_capacity),
    ARCHIVE_ONE(struct account, factor_capacity),
};
static const struct archive_table account_table = ARCHIVE_TABLE("account", struct account, account_columns);

static const struct archive_column record_columns[] = {
    ARCHIVE_ONE(struct account_record, bin),
    ARCHIVE_ONE(struct account_record, thread),
    ARCHIVE_ONE(struct account_record, row),
    ARCHIVE_MANY(struct account_record, ns),
    ARCHIVE_ONE(struct account_record, slept_ns),
    ARCHIVE_ONE(struct account_record, judged_ns),
    ARCHIVE_ONE(struct account_record, carried_ns),
    ARCHIVE_ONE(struct account_record, past_judged_ns),
    ARCHIVE_ONE(struct account_record, past_carried_ns),
    ARCHIVE_ONE(struct account_record, seen_ns),
    ARCHIVE_ONE(struct account_record, past_seen_ns),
};
static const struct archive_table record_table =
    ARCHIVE_TABLE("account records", struct account_record, record_columns);

static const struct archive_column bin_columns[] = {
    ARCHIVE_ONE(struct account_bin, bin),
    ARCHIVE_ONE(struct account_bin, sums.on_cpu_s),
    ARCHIVE_ONE(struct account_bin, sums.preempted_s),
    ARCHIVE_ONE(struct account_bin, sums.wakeup_wait_s),
    ARCHIVE_ONE(struct account_bin, sums.throttled_s),
    ARCHIVE_ONE(struct account_bin, sums.stopped_s),
    ARCHIVE_ONE(struct account_bin, sums.steal_s),
    ARCHIVE_ONE(struct account_bin, sums.blocked_io_s),
    ARCHIVE_ONE(struct account_bin, sums.blocked_other_s),
};
static const struct archive_table bin_table = ARCHIVE_TABLE("account bins", struct account_bin, bin_columns);

void account__archive(struct archive *archive, struct account *account, const struct stg *stg, uint32_t job)
{
	archive__record(archive, &account_table, account);
	archive__rows(archive, &record_table, &account->records, &account->count, &account->capacity);
	archive__rows(archive, &bin_table, &account->bins, &account->bin_count, &account->bin_capacity);
	if (!archive__reads(archive))
		return;
	if (account->rec_capacity)
		account->recs = archive__take(archive, account->rec_capacity, sizeof(*account->recs));
	if (account->factor_capacity)
		account->factors = archive__take(archive, account->factor_capacity, sizeof(*account->factors));
	if (!account->recs)
		account->rec_capacity = 0;
	if (!account->factors)
		account->factor_capacity = 0;
	for (size_t i = 0; i < account->count && !archive__error(archive); i++) {
		const struct account_record *at = &account->records[i];

		archive__check(archive,
			       at->thread < stg__threads(stg) && stg__thread(stg, at->thread)->job == job &&
				   at->bin < UINT64_MAX / VAPRO_BIN_NS,
			       "an account has an unknown thread");
	}
}
