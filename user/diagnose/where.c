/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "diagnose/where.h"

#include "model/grow.h"

#include <stdbool.h>
#include <stdio.h>

/* Of the others, those that may have it too: noise spares some, and there it still is the place to look. */
#define FEW_OTHERS 0.2

int places__add(struct places *places, const struct vapro_place *place)
{
	struct vapro_place own = *place;
	const char **texts[] = {&own.core_type, &own.cpu_model, &own.cgroup, &own.limit, &own.limit_cgroup};
	size_t before = places->count;

	if (!places->texts)
		places->texts = intern__new();
	if (!places->texts || grow(&places->items, &places->capacity, (size_t)place->thread + 1, sizeof(own)))
		return -ENOMEM;
	for (; before <= place->thread; before++)
		places->items[before] =
		    (struct vapro_place){.thread = (uint32_t)before, .cpu = -1, .socket = -1, .numa = -1};
	if (places->count < before)
		places->count = before;
	/* A quota that is gone still is what held the thread back before. */
	if (!own.limit) {
		own.limit = places->items[own.thread].limit;
		own.limit_cgroup = places->items[own.thread].limit_cgroup;
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		uint32_t id = intern__id(places->texts, *texts[i]);

		if (id == INTERN_NONE)
			return -ENOMEM;
		*texts[i] = intern__text(places->texts, id);
	}
	places->items[place->thread] = own;
	return 0;
}

void places__free(struct places *places)
{
	free(places->items);
	if (places->texts)
		intern__free(places->texts);
	*places = (struct places){0};
}

enum fact { FACT_HOST, FACT_CPU_MODEL, FACT_SOCKET, FACT_NUMA, FACT_CORE_TYPE, FACT_CGROUP, FACT_CPU };

static const char *const names[WHERE_FACTS] = {
    [FACT_HOST] = "host",	    [FACT_CPU_MODEL] = "cpu_model", [FACT_SOCKET] = "socket", [FACT_NUMA] = "numa",
    [FACT_CORE_TYPE] = "core_type", [FACT_CGROUP] = "cgroup",	    [FACT_CPU] = "cpu",
};

static bool within_host(enum fact fact)
{
	return fact == FACT_SOCKET || fact == FACT_NUMA || fact == FACT_CPU;
}

/* Writes a fact of a row; false where it is not known. */
static bool fact_of(enum fact fact, const struct stg_row *row, const struct vapro_place *place, char *buf, size_t size)
{
	int32_t number = -1;

	*buf = 0;
	if (fact == FACT_HOST) {
		snprintf(buf, size, "%s", row->host);
		return *buf;
	}
	if (!place)
		return false;
	if (fact == FACT_CPU_MODEL || fact == FACT_CORE_TYPE || fact == FACT_CGROUP) {
		const char *text = fact == FACT_CGROUP	    ? place->cgroup
				   : fact == FACT_CPU_MODEL ? place->cpu_model
							    : place->core_type;

		snprintf(buf, size, "%s", text ? text : "");
		return *buf;
	}
	number = fact == FACT_SOCKET ? place->socket : fact == FACT_NUMA ? place->numa : place->cpu;
	snprintf(buf, size, "%d", number);
	return number >= 0;
}

/* The place of each row's own thread; NULL where nobody told it. */
static void find_places(const struct places *places, const struct stg *stg, uint32_t job,
			const struct vapro_place **of_row)
{
	for (size_t i = 0; i < places->count && i < stg__threads(stg); i++) {
		const struct stg_thread *thread = stg__thread(stg, (uint32_t)i);

		if (thread->job == job && thread->about.thread == stg__job(stg, job)->rows[thread->row].thread)
			of_row[thread->row] = &places->items[i];
	}
}

/* Rows that are slow, by number: there are few. */
struct slow_rows {
	uint32_t *rows;
	size_t count;
};

static bool same_host(const struct stg_job *about, const struct slow_rows *slow, const char *host)
{
	for (size_t i = 0; i < slow->count; i++) {
		if (about->rows[slow->rows[i]].host == host) /* interned */
			return true;
	}
	return false;
}

/* Whether all slow rows have one value, and few of the others, where there are others to be told from. */
static bool shared(enum fact fact, const struct stg_job *about, const unsigned char *slow,
		   const struct slow_rows *slow_rows, const struct vapro_place *const *of_row, struct where *out)
{
	uint32_t others = 0, with = 0;
	char value[sizeof(out->value)];
	bool any = false;

	for (size_t row = 0; row < about->row_count; row++) {
		if (slow[row] != 1)
			continue;
		if (!fact_of(fact, &about->rows[row], of_row[row], value, sizeof(value)))
			return false;
		if (any && strcmp(value, out->value))
			return false;
		memcpy(out->value, value, sizeof(value));
		any = true;
	}
	for (size_t row = 0; row < about->row_count && any; row++) {
		/* A socket, NUMA node or CPU of another host is another one. */
		if (slow[row] || (within_host(fact) && !same_host(about, slow_rows, about->rows[row].host)))
			continue;
		if (!fact_of(fact, &about->rows[row], of_row[row], value, sizeof(value)))
			continue;
		others++;
		with += !strcmp(value, out->value);
	}
	out->fact = names[fact];
	out->others = with;
	return any && others && with <= FEW_OTHERS * others;
}

int where__find(const struct places *places, const struct stg *stg, uint32_t job, const unsigned char *slow,
		struct where *where, uint32_t *count)
{
	const struct stg_job *about = stg__job(stg, job);
	const struct vapro_place **of_row = calloc(about->row_count + 1, sizeof(*of_row));
	struct slow_rows slow_rows = {.rows = calloc(about->row_count + 1, sizeof(*slow_rows.rows))};
	int error = -ENOMEM;

	*count = 0;
	if (!of_row || !slow_rows.rows)
		goto cleanup;
	find_places(places, stg, job, of_row);
	for (uint32_t row = 0; row < about->row_count; row++) {
		if (slow[row] == 1)
			slow_rows.rows[slow_rows.count++] = row;
	}
	for (int fact = 0; fact < WHERE_FACTS; fact++) {
		where[*count] = (struct where){0};
		if (shared((enum fact)fact, about, slow, &slow_rows, of_row, &where[*count]))
			++*count;
	}
	error = 0;
cleanup:
	free(slow_rows.rows);
	free(of_row);
	return error;
}

int where__limit(const struct places *places, const struct stg *stg, uint32_t job, const unsigned char *slow,
		 const struct vapro_place **limited)
{
	const struct stg_job *about = stg__job(stg, job);
	const struct vapro_place **of_row = calloc(about->row_count + 1, sizeof(*of_row));

	*limited = NULL;
	if (!of_row)
		return -ENOMEM;
	find_places(places, stg, job, of_row);
	for (size_t row = 0; row < about->row_count && !*limited; row++) {
		if (slow[row] == 1 && of_row[row] && of_row[row]->limit && *of_row[row]->limit)
			*limited = of_row[row];
	}
	free(of_row);
	return 0;
}
