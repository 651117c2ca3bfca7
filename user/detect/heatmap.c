/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "detect/heatmap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t part_bytes(int part)
{
	return part < HEATMAP_OWNER	? sizeof(struct cell_side)
	       : part < HEATMAP_EMITTED ? sizeof(uint32_t)
	       : part < HEATMAP_LATE	? sizeof(unsigned char)
					: sizeof(float);
}

/* The array of a part, made where there is none; NULL when out of memory. */
static void *take_part(struct heatmap *map, uint64_t bin, int part)
{
	void **at = &heatmap__bin(map, bin)->parts[part];

	if (!*at)
		*at = calloc(map->row_capacity, part_bytes(part));
	return *at;
}

static void drop_parts(struct heatmap_bin *bin, int from, int to)
{
	for (int part = from; part < to; part++) {
		free(bin->parts[part]);
		bin->parts[part] = NULL;
	}
}

static void forget(struct heatmap *map, uint64_t begin, uint64_t end)
{
	for (uint64_t bin = begin; bin < end; bin++) {
		struct heatmap_bin *at = heatmap__bin(map, bin);

		drop_parts(at, 0, HEATMAP_PARTS);
		memset(at->emitted, 0, sizeof(at->emitted));
		at->divided = 0;
		at->arrivals = (struct heatmap_arrivals){0};
	}
}

void heatmap__free(struct heatmap *map)
{
	forget(map, map->begin, map->end);
	free(map->bins);
	*map = (struct heatmap){0};
}

static uint64_t ring_of(uint64_t span)
{
	uint64_t room = 64;

	while (room < span)
		room *= 2;
	return room;
}

/* Moves the bins from begin on to a ring of another length, which has room for them. */
static int move(struct heatmap *map, uint64_t begin, uint64_t room)
{
	struct heatmap_bin *bins = calloc(room, sizeof(*bins));

	if (!bins)
		return -ENOMEM;
	forget(map, map->begin, begin);
	for (uint64_t bin = begin; bin < map->end; bin++)
		bins[bin & (room - 1)] = *heatmap__bin(map, bin);
	free(map->bins);
	map->bins = bins;
	map->begin = begin;
	map->ring = room;
	return 0;
}

static int make_span(struct heatmap *map, uint64_t view_bins)
{
	uint64_t span = view_bins + HEATMAP_MORE > HEATMAP_SPAN ? view_bins + HEATMAP_MORE : HEATMAP_SPAN;

	if (view_bins > map->view)
		map->view = view_bins;
	if (map->cut)
		span = view_bins + HEATMAP_LEAST;
	if (span <= map->span)
		return 0;
	if (ring_of(span) > map->ring && move(map, map->begin, ring_of(span)))
		return -ENOMEM;
	map->span = span;
	return 0;
}

uint64_t heatmap__cut(struct heatmap *map)
{
	uint64_t span = map->view + HEATMAP_LEAST, room = ring_of(span);
	uint64_t begin = map->begin, forgotten;

	if (map->cut || !map->span || room >= map->ring) {
		map->cut = true;
		return 0;
	}
	if (map->end - begin > span)
		begin = map->end - span;
	forgotten = begin - map->begin;
	if (move(map, begin, room))
		return 0;
	map->span = span;
	map->cut = true;
	return forgotten;
}

size_t heatmap__bytes(const struct heatmap *map)
{
	/* regions grow in layers of 32-bit numbers */
	size_t bytes = map->ring * sizeof(*map->bins) + map->row_count * map->ring * REGION_LAYERS * sizeof(uint32_t);

	for (uint64_t bin = map->begin; bin < map->end; bin++) {
		for (int part = 0; part < HEATMAP_PARTS; part++)
			bytes += heatmap__bin(map, bin)->parts[part] ? map->row_capacity * part_bytes(part) : 0;
	}
	return bytes;
}

/* Enlarges an array; its new rows are empty. */
static int enlarge(const struct heatmap *map, void **array, size_t capacity, size_t size)
{
	char *more = *array ? realloc(*array, capacity * size) : NULL;

	if (!*array)
		return 0;
	if (!more)
		return -ENOMEM;
	memset(more + map->row_capacity * size, 0, (capacity - map->row_capacity) * size);
	*array = more;
	return 0;
}

int heatmap__rows(struct heatmap *map, size_t count, uint64_t view_bins)
{
	size_t capacity = map->row_capacity + map->row_capacity / 2;

	if (make_span(map, view_bins))
		return -ENOMEM;
	if (count > map->row_capacity) {
		capacity = count > capacity ? count : capacity;
		for (uint64_t bin = map->begin; bin < map->end; bin++) {
			for (int part = 0; part < HEATMAP_PARTS; part++) {
				if (enlarge(map, &heatmap__bin(map, bin)->parts[part], capacity, part_bytes(part)))
					return -ENOMEM;
			}
		}
		map->row_capacity = capacity;
	}
	map->row_count = count > map->row_count ? count : map->row_count;
	return 0;
}

void heatmap__advance(struct heatmap *map, uint64_t first, uint64_t end)
{
	uint64_t begin = map->begin;

	if (map->begin == map->end || first > map->end || map->end + map->span < end) {
		/* Nothing yet, or a gap longer than the ring: start over. */
		forget(map, map->begin, map->end);
		map->begin = end > first + map->span ? end - map->span : first;
		map->end = end;
		return;
	}
	if (end > begin + map->span)
		begin = end - map->span;
	forget(map, map->begin, begin < map->end ? begin : map->end);
	map->begin = begin;
	if (end > map->end)
		map->end = end;
}

void heatmap__clear(struct heatmap *map, uint64_t view)
{
	for (uint64_t bin = map->begin; bin < map->end; bin++) {
		struct heatmap_bin *at = heatmap__bin(map, bin);

		drop_parts(at, HEATMAP_OPEN, HEATMAP_OWNER);
		drop_parts(at, HEATMAP_OPEN_LATE, HEATMAP_PARTS);
		if (bin >= view)
			at->arrivals = (struct heatmap_arrivals){0};
		for (int part = 0; bin >= view && part < HEATMAP_PARTS; part++) {
			if (at->parts[part] && (part < HEATMAP_OWNER || part >= HEATMAP_LATE))
				memset(at->parts[part], 0, map->row_capacity * part_bytes(part));
		}
	}
}

/* Adds the unseen waits of a bundle to a bin, as a call that waits for late peers. Returns 0 or -ENOMEM. */
static int add_waited(struct heatmap *map, const struct bundle_rec *rec, uint32_t row, uint64_t bin)
{
	bool open = rec->flags & VAPRO_BUNDLE_OPEN;
	float waited = (float)((double)rec->waited_ns * bundle_rec__share(rec, bin));
	struct cell_side *side = take_part(map, bin, (open ? HEATMAP_OPEN : HEATMAP_CLOSED) + VAPRO_COMMUNICATION);

	if (!side)
		return -ENOMEM;
	side[row].dur += waited;
	return heatmap__add_wait(map, open ? HEATMAP_OPEN_LATE : HEATMAP_LATE, row, bin, waited);
}

int heatmap__add(struct heatmap *map, const struct bundle_rec *rec, uint32_t row, enum vapro_class class, uint64_t from,
		 uint64_t to)
{
	bool rebuilt = rec->flags & VAPRO_BUNDLE_OPEN || rec->account == BUNDLE_FROM_ACCOUNT;
	int part = (rebuilt ? HEATMAP_OPEN : HEATMAP_CLOSED) + (int)class;
	uint64_t first = bundle_rec__first_bin(rec), last = bundle_rec__bin(rec);
	struct loss loss = {0};
	bool one = first == last;

	if (from < map->begin)
		from = map->begin;
	if (to > map->end)
		to = map->end;
	if (first < from)
		first = from;
	/* mostly the kernel attributes nothing */
	if (rec->factor != bundle_rec_no_factors)
		loss = bundle_rec__loss(rec);
	for (uint64_t bin = first; bin <= last && bin < to; bin++) {
		struct cell_side *side = take_part(map, bin, part);
		double share = one ? 1 : bundle_rec__share(rec, bin);

		if (!side)
			return -ENOMEM;
		side += row;
		/* A retained bundle was seen when it arrived. */
		if (!rec->retained && !rec->account)
			side->seen += (float)(rec->sum_ns * share);
		if (!rec->covered)
			continue;
		side->dur += (float)(rec->sum_ns * share);
		side->ref += (float)((double)rec->reference * rec->n * share);
		if (rec->waited_ns > 0 && add_waited(map, rec, row, bin))
			return -ENOMEM;
		if (!(loss.cpu > 0 || loss.blocked > 0))
			continue;
		side->cpu += (float)(loss.cpu * share);
		side->stolen += (float)(fmin(loss.cpu, bundle_rec__stolen(rec)) * share);
		side->blocked += (float)(loss.blocked * share);
	}
	return 0;
}

int heatmap__add_wait(struct heatmap *map, enum heatmap_part part, uint32_t row, uint64_t bin, float ns)
{
	float *wait = take_part(map, bin, part);

	if (!wait)
		return -ENOMEM;
	wait[row] += ns;
	return 0;
}

int heatmap__own(struct heatmap *map, uint32_t row, uint64_t bin, enum vapro_class class, uint32_t id)
{
	uint32_t *owner = take_part(map, bin, HEATMAP_OWNER + (int)class);

	if (!owner)
		return -ENOMEM;
	owner[row] = id;
	return 0;
}

int heatmap__emit(struct heatmap *map, uint32_t row, uint64_t bin, enum vapro_class class, unsigned char emitted)
{
	unsigned char *at;

	if (heatmap__emitted(map, row, bin, class) == emitted)
		return 0;
	at = take_part(map, bin, HEATMAP_EMITTED + (int)class);
	if (!at)
		return -ENOMEM;
	at[row] = emitted;
	return 0;
}

void heatmap__disown(struct heatmap *map)
{
	for (uint64_t bin = map->begin; bin < map->end; bin++)
		drop_parts(heatmap__bin(map, bin), HEATMAP_OWNER, HEATMAP_EMITTED);
}

unsigned char heatmap__hundredths(double performance)
{
	return isnan(performance) ? 0 : (unsigned char)(1 + lround(100 * performance));
}

bool heatmap__differs(unsigned char emitted, unsigned char now)
{
	if (!emitted || !now)
		return emitted != now;
	return emitted > now ? emitted - now > 1 : now - emitted > 1;
}
