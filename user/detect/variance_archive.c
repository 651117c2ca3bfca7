// SPDX-License-Identifier: GPL-2.0-or-later
/* Variances in checkpoints: see variance.h. */
#include "detect/variance.h"

#define BINS_MOST (1U << 26) /* of one variance, 155 days: arrays have an element for each */

static const struct archive_column variance_columns[] = {
    ARCHIVE_ONE(struct variance, id),
    ARCHIVE_ONE(struct variance, revision),
    ARCHIVE_ONE(struct variance, state),
    ARCHIVE_ONE(struct variance, begin),
    ARCHIVE_ONE(struct variance, end),
    ARCHIVE_MANY(struct variance, has),
    ARCHIVE_ONE(struct variance, waiting),
    ARCHIVE_ONE(struct variance, transfers),
    ARCHIVE_ONE(struct variance, path),
    ARCHIVE_ONE(struct variance, lasting),
    ARCHIVE_ONE(struct variance, matched),
    ARCHIVE_ONE(struct variance, emitted_once),
    ARCHIVE_ONE(struct variance, over),
    ARCHIVE_ONE(struct variance, merged_into),
    ARCHIVE_ONE(struct variance, class),
    ARCHIVE_ONE(struct variance, late),
    ARCHIVE_ONE(struct variance, transfer),
    ARCHIVE_ONE(struct variance, confirmed),
    ARCHIVE_ONE(struct variance, alarm),
    ARCHIVE_ONE(struct variance, proven),
    ARCHIVE_ONE(struct variance, alike),
    ARCHIVE_ONE(struct variance, outlier),
    ARCHIVE_ONE(struct variance, lone),
    ARCHIVE_ONE(struct variance, stepped),
    ARCHIVE_ONE(struct variance, moved),
    ARCHIVE_ONE(struct variance, gradual),
    ARCHIVE_ONE(struct variance, by_place),
    ARCHIVE_ONE(struct variance, small),
    ARCHIVE_ONE(struct variance, caused_ns),
    ARCHIVE_ONE(struct variance, others),
    ARCHIVE_ONE(struct variance, share),
    ARCHIVE_ONE(struct variance, rated_share),
    ARCHIVE_ONE(struct variance, denominator_ns),
    ARCHIVE_ONE(struct variance, severity),
    ARCHIVE_ONE(struct variance, effect_of),
    ARCHIVE_MANY(struct variance, evidence),
    ARCHIVE_ONE(struct variance, diagnosed),
    ARCHIVE_ONE(struct variance, emitted.begin),
    ARCHIVE_ONE(struct variance, emitted.end),
    ARCHIVE_ONE(struct variance, emitted.row_count),
    ARCHIVE_ONE(struct variance, emitted.lost_seconds),
    ARCHIVE_ONE(struct variance, emitted.confirmed),
    ARCHIVE_ONE(struct variance, emitted.alarm),
    ARCHIVE_ONE(struct variance, emitted.still_open),
    ARCHIVE_ONE(struct variance, emitted.by_place),
    ARCHIVE_ONE(struct variance, emitted.severity),
    ARCHIVE_ONE(struct variance, emitted.effect_of),
    ARCHIVE_ONE(struct variance, emitted.diagnosed),
};
static const struct archive_table variance_table = ARCHIVE_TABLE("variances", struct variance, variance_columns);

static const struct archive_column row_columns[] = {{"row", ARCHIVE_U32, 1, 0, false}};
static const struct archive_table row_table = {"variance rows", row_columns, 1, sizeof(uint32_t)};

static void check(struct archive *archive, const struct variance *variance, size_t at, size_t rows)
{
	archive__check(archive,
		       variance->id && (!at || variance[-1].id < variance->id) && variance->begin <= variance->end &&
			   variance->end - variance->begin <= BINS_MOST && variance->end <= UINT64_MAX / VAPRO_BIN_NS &&
			   variance->class < VAPRO_CLASSES && variance->severity < VAPRO_SEVERITIES &&
			   variance->emitted.severity < VAPRO_SEVERITIES && variance->state <= VAPRO_REGION_CLOSED &&
			   variance->row_count <= rows,
		       "a variance contradicts others");
	for (size_t i = 0; i < variance->row_count; i++)
		archive__check(archive, variance->rows[i] < rows, "a variance has an unknown row");
}

void variance__archive(struct archive *archive, struct variance_book *book, size_t rows, size_t series)
{
	archive__rows(archive, &variance_table, &book->variances, &book->count, &book->capacity);
	for (size_t i = 0; i < book->count; i++) {
		struct variance *variance = &book->variances[i];

		archive__rows(archive, &row_table, &variance->rows, &variance->row_count, &variance->row_capacity);
		tally__archive(archive, &variance->history, series);
		tally__archive(archive, &variance->retiring, series);
		tally__archive(archive, &variance->staying, series);
		tally__archive(archive, &variance->total, series);
		if (archive__reads(archive))
			check(archive, variance, i, rows);
	}
}
