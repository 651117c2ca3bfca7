/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/where.h"

#include "base/grow.h"
#include "base/table.h"

#include <stdbool.h>
#include <stdio.h>

/* Share of the others that may have the fact too: noise spares some rows, and the fact still locates the cause. */
#define FEW_OTHERS 0.2

enum fact { FACT_HOST, FACT_CPU_MODEL, FACT_SOCKET, FACT_NUMA, FACT_CORE_TYPE, FACT_CGROUP, FACT_CPU };

static const char *const names[WHERE_FACTS] = {
    [FACT_HOST] = "host",	    [FACT_CPU_MODEL] = "cpu_model", [FACT_SOCKET] = "socket", [FACT_NUMA] = "numa",
    [FACT_CORE_TYPE] = "core_type", [FACT_CGROUP] = "cgroup",	    [FACT_CPU] = "cpu",
};

/* Writes a fact of a row that is known. */
static void write_fact(enum fact fact, const struct stg_row *row, const struct vapro_place *place, char *buf,
		       size_t size)
{
	int32_t number;

	if (fact == FACT_HOST || fact == FACT_CPU_MODEL || fact == FACT_CORE_TYPE || fact == FACT_CGROUP) {
		snprintf(buf, size, "%s",
			 fact == FACT_HOST	  ? row->host
			 : fact == FACT_CGROUP	  ? place->cgroup
			 : fact == FACT_CPU_MODEL ? place->cpu_model
						  : place->core_type);
		return;
	}
	number = fact == FACT_SOCKET ? place->socket : fact == FACT_NUMA ? place->numa : place->cpu;
	snprintf(buf, size, "%d", number);
}

/* Returns a fact as a number that equal facts share; 0 where it is not known. Texts are interned. */
static uint64_t key_of(enum fact fact, const struct stg_row *row, const struct vapro_place *place)
{
	const char *text = row->host;
	int32_t number;

	if (fact != FACT_HOST && !place)
		return 0;
	if (fact == FACT_CORE_TYPE || fact == FACT_CGROUP || fact == FACT_CPU_MODEL)
		text = fact == FACT_CGROUP	? place->cgroup
		       : fact == FACT_CPU_MODEL ? place->cpu_model
						: place->core_type;
	if (fact == FACT_HOST || fact == FACT_CORE_TYPE || fact == FACT_CGROUP || fact == FACT_CPU_MODEL)
		return text && *text ? (uint64_t)(uintptr_t)text : 0;
	number = fact == FACT_SOCKET ? place->socket : fact == FACT_NUMA ? place->numa : place->cpu;
	return number >= 0 ? (uint64_t)number + 1 : 0;
}

/* A socket, NUMA node or CPU of another host is another one. */
static bool within_host(enum fact fact)
{
	return fact == FACT_SOCKET || fact == FACT_NUMA || fact == FACT_CPU;
}

struct where_index {
	const struct stg_job *about;
	const struct vapro_place **of_row; /* the place of each row's own thread; NULL where it is not known */
	unsigned char *counted;		   /* rows that are not left out */
	struct table *numbers;		   /* (host and fact, value) -> number in counts; value 0: all that are known */
	uint32_t *counts;
	size_t count, capacity;
};

static void find_places(struct where_index *index, const struct places *places, const struct stg *stg, uint32_t job)
{
	for (size_t i = 0; i < places->count && i < stg__threads(stg); i++) {
		const struct stg_thread *thread = stg__thread(stg, (uint32_t)i);
		const struct vapro_place **known;

		if (thread->job != job || thread->about.thread != index->about->rows[thread->row].thread)
			continue;
		/* that of the thread that was announced last */
		known = &index->of_row[thread->row];
		if (!*known || stg__thread(stg, (*known)->thread)->about.id < thread->about.id)
			*known = &places->items[i];
	}
}

static uint64_t scope_of(enum fact fact, const char *host)
{
	return (within_host(fact) ? (uint64_t)(uintptr_t)host : 0) << 3 | fact;
}

static int count_one(struct where_index *index, uint64_t scope, uint64_t value)
{
	uint32_t at;

	if (!table__get(index->numbers, scope, value, &at)) {
		at = (uint32_t)index->count;
		if (grow(&index->counts, &index->capacity, index->count + 1, sizeof(*index->counts)) ||
		    table__put(index->numbers, scope, value, at))
			return -ENOMEM;
		index->count++;
	}
	index->counts[at]++;
	return 0;
}

static uint32_t count_of(const struct where_index *index, uint64_t scope, uint64_t value)
{
	uint32_t at;

	return table__get(index->numbers, scope, value, &at) ? index->counts[at] : 0;
}

static int count_row(struct where_index *index, size_t row)
{
	for (int fact = 0; fact < WHERE_FACTS; fact++) {
		uint64_t value = key_of((enum fact)fact, &index->about->rows[row], index->of_row[row]);
		uint64_t scope = scope_of((enum fact)fact, index->about->rows[row].host);

		if (value && (count_one(index, scope, value) || count_one(index, scope, 0)))
			return -ENOMEM;
	}
	return 0;
}

struct where_index *where_index__new(const struct places *places, const struct stg *stg, uint32_t job,
				     bool (*counts)(const void *arg, uint32_t row), const void *arg)
{
	struct where_index *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	index->about = stg__job(stg, job);
	index->of_row = calloc(index->about->row_count + 1, sizeof(*index->of_row));
	index->counted = calloc(index->about->row_count + 1, 1);
	index->numbers = table__new();
	if (!index->of_row || !index->counted || !index->numbers)
		goto fail;
	find_places(index, places, stg, job);
	for (uint32_t row = 0; row < index->about->row_count; row++) {
		index->counted[row] = counts(arg, row);
		if (index->counted[row] && count_row(index, row))
			goto fail;
	}
	return index;
fail:
	where_index__free(index);
	return NULL;
}

void where_index__free(struct where_index *index)
{
	if (!index)
		return;
	free(index->of_row);
	free(index->counted);
	free(index->counts);
	table__free(index->numbers);
	free(index);
}

static int compare_hosts(const void *a, const void *b)
{
	const char *left = *(const char *const *)a, *right = *(const char *const *)b;

	return (left > right) - (left < right);
}

/* Lists the hosts of the rows, each once. */
static size_t hosts_of(const struct stg_job *about, const uint32_t *rows, size_t count, const char **hosts)
{
	size_t live = 0;

	for (size_t i = 0; i < count; i++)
		hosts[i] = about->rows[rows[i]].host;
	if (count)
		qsort(hosts, count, sizeof(*hosts), compare_hosts);
	for (size_t i = 0; i < count; i++) {
		if (!live || hosts[live - 1] != hosts[i])
			hosts[live++] = hosts[i];
	}
	return live;
}

/* Whether all slow rows have one value, and few of the others, where there are others to be distinguished from. */
static bool shared(const struct where_index *index, enum fact fact, const uint32_t *rows, size_t count,
		   const char *const *hosts, size_t host_count, struct where *out)
{
	const struct stg_row *first = &index->about->rows[rows[0]];
	uint64_t value = key_of(fact, first, index->of_row[rows[0]]);
	uint32_t others = 0, with = 0, own = 0;

	if (!value)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (key_of(fact, &index->about->rows[rows[i]], index->of_row[rows[i]]) != value)
			return false;
		own += index->counted[rows[i]];
	}
	for (size_t i = 0; i < (within_host(fact) ? host_count : 1); i++) {
		others += count_of(index, scope_of(fact, hosts[i]), 0);
		with += count_of(index, scope_of(fact, hosts[i]), value);
	}
	others -= own;
	with -= own;
	out->fact = names[fact];
	out->others = with;
	out->host = within_host(fact) && host_count == 1 && *hosts[0] ? hosts[0] : NULL;
	write_fact(fact, first, index->of_row[rows[0]], out->value, sizeof(out->value));
	return others && with <= FEW_OTHERS * others;
}

int where_index__find(const struct where_index *index, const uint32_t *rows, size_t count, struct where *where,
		      uint32_t *found)
{
	const char **hosts = calloc(count + 1, sizeof(*hosts));
	size_t host_count;

	*found = 0;
	if (!hosts)
		return -ENOMEM;
	host_count = hosts_of(index->about, rows, count, hosts);
	for (int fact = 0; fact < WHERE_FACTS && count; fact++) {
		where[*found] = (struct where){0};
		*found += shared(index, (enum fact)fact, rows, count, hosts, host_count, &where[*found]);
	}
	free(hosts);
	return 0;
}

const struct vapro_place *where_index__limit(const struct where_index *index, const uint32_t *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct vapro_place *place = index->of_row[rows[i]];

		if (place && place->limit && *place->limit)
			return place;
	}
	return NULL;
}
