// SPDX-License-Identifier: GPL-2.0-or-later
/* The slow regions of a page: what `vapro view` says of each, and the details of its records. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/factors.h"
#include "diagnose/interferers.h"
#include "page/page_json.h"
#include "page/page_json_private.h"
#include "report/cause_text.h"
#include "report/json.h"
#include "report/record.h"
#include "report/region_effects.h"

/* Adds the call-sites of a record with where they are in words. */
static bool add_sites(cJSON *object, const cJSON *variance)
{
	cJSON *list = cJSON_AddArrayToObject(object, "sites");
	const cJSON *site;
	bool ok = list;

	cJSON_ArrayForEach(site, record__item(variance, KEY(variance, call_sites)))
	{
		char *text = summary__describe_item(site);
		cJSON *item = ok ? page_json__append(list) : NULL;

		ok = item && text && json__add_text(item, "text", text) &&
		     json__add_text(item, "class", record__text(site, KEY(state, class))) &&
		     json__add_text(item, "labels", record__text(site, KEY(state, labels))) &&
		     json__add_number(item, "lost", record__number(site, KEY(call_site, lost_seconds), NAN), 6) &&
		     json__add_number(item, "ratio", record__number(site, KEY(call_site, ratio), NAN), 4);
		free(text);
	}
	return ok;
}

/* Adds the factors of a diagnosis: a tree by their parents, shares are of the parent's loss. */
static bool add_factors(cJSON *object, const struct run_region *region)
{
	cJSON *list = cJSON_AddArrayToObject(object, "factors");
	const cJSON *factor;
	bool ok = list;

	cJSON_ArrayForEach(factor, record__item(region->diagnosis, KEY(diagnosis, factors)))
	{
		const char *name = record__text(factor, KEY(factor, name));
		cJSON *item;

		if (!name)
			continue;
		item = ok ? page_json__append(list) : NULL;
		ok = item && json__add_text(item, "name", name) &&
		     json__add_text(item, "parent", record__text(factor, KEY(factor, parent))) &&
		     json__add_text(item, "meaning", regions__meaning(region->region, name)) &&
		     json__add_number(item, "share",
				      record__number(factor, KEY(factor, contribution_pct_of_level), NAN) / 100, 4) &&
		     json__add_number(item, "seconds", record__number(factor, KEY(factor, impact_seconds), NAN), 6) &&
		     json__add_text(item, "method", record__text(factor, KEY(factor, method))) &&
		     cJSON_AddBoolToObject(item, "major", record__true(factor, KEY(factor, major))) &&
		     cJSON_AddBoolToObject(item, "approx", record__true(factor, KEY(factor, approx)));
	}
	return ok;
}

static bool add_interferers(cJSON *object, const cJSON *diagnosis)
{
	cJSON *list = cJSON_AddArrayToObject(object, "interferers");
	const cJSON *task;
	bool ok = list;

	cJSON_ArrayForEach(task, record__item(diagnosis, KEY(diagnosis, interferers)))
	{
		const char *comm = record__text(task, KEY(interferer, comm));
		int relation =
		    record__word(record__text(task, KEY(interferer, relation)), interferers__relation, VAPRO_RELATIONS);
		const struct result_interferer what = {
		    .relation = relation < VAPRO_RELATIONS ? (enum vapro_relation)relation : VAPRO_FOREIGN,
		    .rank = (int32_t)record__number(task, KEY(interferer, rank), -1),
		    .job = record__text(task, KEY(interferer, job))};
		char words[INTERFERER_WORDS];
		cJSON *item;

		if (!comm)
			continue;
		item = ok ? page_json__append(list) : NULL;
		ok = item && json__add_text(item, "comm", comm) &&
		     json__add_uint(item, "pid", record__uint(task, KEY(interferer, pid))) &&
		     json__add_number(item, "seconds", record__number(task, KEY(interferer, seconds), NAN), 6) &&
		     json__add_text(item, "relation", *interferers__says(&what, words) ? words : NULL);
	}
	return ok;
}

/* Adds the slowest fragments of a region. */
static bool add_exemplars(cJSON *object, const struct run_report *report, const cJSON *variance)
{
	const cJSON *exemplar;
	cJSON *list = cJSON_AddArrayToObject(object, "exemplars");
	bool ok = list;

	cJSON_ArrayForEach(exemplar, record__item(variance, KEY(variance, exemplars)))
	{
		const cJSON *site = record__site_of(variance, exemplar), *state = site ? site : exemplar;
		char *text = summary__describe_item(state);
		uint64_t start_ns;
		cJSON *item;

		if (record__time(exemplar, KEY(exemplar, begin), &start_ns)) {
			item = ok ? page_json__append(list) : NULL;
			ok =
			    item && json__add_number(item, "start", page_json__offset(report, start_ns), 9) &&
			    json__add_number(item, "seconds",
					     record__number(exemplar, KEY(exemplar, duration_ns), NAN) / 1e9, 9) &&
			    json__add_number(item, "rank", record__number(exemplar, KEY(exemplar, rank), NAN), 0) &&
			    json__add_number(item, "thread", record__number(exemplar, KEY(exemplar, thread), NAN), 0) &&
			    json__add_text(item, "state", text);
		}
		free(text);
	}
	return ok;
}

/* Adds copies of members that the page shows as they are. */
static bool add_copies(cJSON *object, const struct run_region *region)
{
	const struct {
		const cJSON *from;
		enum record_row key;
	} members[] = {
	    {region->variance, KEY(variance, inside)},
	    {region->variance, KEY(variance, culprits)},
	    {region->variance, KEY(variance, also)},
	    {record__item(region->diagnosis, KEY(diagnosis, where)), KEY(place, shared)},
	    {record__item(region->diagnosis, KEY(diagnosis, where)), KEY(place, hosts)},
	};
	bool ok = true;

	for (size_t i = 0; ok && i < sizeof(members) / sizeof(*members); i++) {
		const cJSON *item = record__item(members[i].from, members[i].key);

		if (item)
			ok = json__add(object, record_keys[members[i].key].name, cJSON_Duplicate(item, true));
	}
	return ok;
}

static const char *confidence(const struct region *region)
{
	return region->confirmed ? "high" : region->place_only ? "medium" : "low";
}

static bool add_extent(cJSON *item, const struct run_report *report, const struct run_region *own)
{
	const struct region *region = own->region;
	const struct run_region *cause =
	    region->effect_of ? run_report__find(report, region->job, region->effect_of) : NULL;
	char unseen[160], waiters[512];
	char *ranks = json__ranks(region->ranks, region->rank_count);
	bool ok =
	    ranks && json__add_text(item, "number", own->number) && json__add_text(item, "job", region->job) &&
	    json__add_number(item, "uid", region->user ? (double)region->user - 1 : NAN, 0) &&
	    json__add_text(item, "class", region->class) &&
	    json__add_number(item, "begin", page_json__offset(report, region->begin_ns), 9) &&
	    json__add_number(item, "end", page_json__offset(report, region->end_ns), 9) &&
	    cJSON_AddBoolToObject(item, "ended", region->ended) &&
	    json__add_text(item, "unseen", regions__unseen(region, unseen, sizeof(unseen))) &&
	    json__add_text(item, "ranks", ranks) && json__add_text(item, "who", region->who) &&
	    json__add_number(item, "lost", region->lost_seconds, 6) &&
	    json__add_number(item, "caused", region->caused_seconds, 6) &&
	    json__add_text(item, "waiters",
			   cause ? region_effects__waiters(cause->region, region, waiters, sizeof(waiters)) : NULL);

	free(ranks);
	return ok;
}

/* Adds a text of a record with the numbers of the page in place of those of variances: "region 1.2". */
static bool add_words(cJSON *item, const char *name, const struct run_report *report, const struct region *region,
		      const char *text)
{
	static const char word[] = "variance ";
	char *words = NULL;
	size_t size;
	FILE *out = text ? open_memstream(&words, &size) : NULL;
	bool ok;

	if (!text)
		return json__add_text(item, name, NULL);
	if (!out)
		return false;
	for (const char *at; (at = strstr(text, word));) {
		char *end;
		uint64_t id = strtoull(at + sizeof(word) - 1, &end, 10);
		/* the numbers of a host are those of its vaprod, in their lower bits */
		const struct run_region *other =
		    run_report__find(report, region->job, (region->id & ~((1ULL << SUMMARY_HOST_SHIFT) - 1)) | id);

		fprintf(out, "%.*s%s", (int)(at - text), text, other ? "region " : word);
		if (other)
			fputs(other->number, out);
		text = other ? end : at + sizeof(word) - 1;
	}
	fputs(text, out);
	ok = !fclose(out) && json__add_text(item, name, words);
	free(words);
	return ok;
}

static bool add_judgement(cJSON *item, const struct run_report *report, const struct region *region)
{
	return json__add_number(item, "speed", region->performance, 4) &&
	       cJSON_AddBoolToObject(item, "work_unknown", region->work_unknown) &&
	       json__add_text(item, "severity", *region->severity ? region->severity : NULL) &&
	       cJSON_AddBoolToObject(item, "alarm", region->alarm) &&
	       cJSON_AddBoolToObject(item, "sure", regions__sure(region)) &&
	       cJSON_AddBoolToObject(item, "effect", region->effect_of > 0) &&
	       cJSON_AddBoolToObject(item, "waiting", regions__is_waiting(region)) &&
	       json__add_text(item, "confidence", confidence(region)) &&
	       add_words(item, "evidence", report, region, region->evidence);
}

static bool add_diagnosis(cJSON *item, const struct run_report *report, const struct region *region)
{
	return add_words(item, "verdict", report, region, region->verdict) &&
	       json__add_text(item, "cause", region->cause ? cause_text__noun(region->cause) : NULL) &&
	       json__add_text(item, "culprit", *region->culprit.comm ? region->culprit.comm : NULL) &&
	       add_words(item, "advice", report, region, region->advice);
}

static bool add_region(cJSON *item, const struct run_report *report, const struct run_region *own)
{
	return add_extent(item, report, own) && add_judgement(item, report, own->region) &&
	       add_diagnosis(item, report, own->region) && add_sites(item, own->variance) && add_factors(item, own) &&
	       add_interferers(item, own->diagnosis) && add_exemplars(item, report, own->variance) &&
	       add_copies(item, own);
}

/* Drops what says nothing, which is most of a page of many regions: null, false and empty lists. */
static void drop_defaults(cJSON *object)
{
	for (cJSON *item = object->child, *next; item; item = next) {
		next = item->next;
		if (cJSON_IsNull(item) || cJSON_IsFalse(item) || (cJSON_IsArray(item) && !item->child))
			cJSON_Delete(cJSON_DetachItemViaPointer(object, item));
	}
}

cJSON *page_json__regions(const struct run_report *report)
{
	cJSON *list = cJSON_CreateArray();
	bool ok = list;

	for (size_t i = 0; ok && i < report->region_count && i < PAGE_REGIONS; i++) {
		cJSON *item = page_json__append(list);

		ok = item && add_region(item, report, &report->regions[i]);
		if (ok)
			drop_defaults(item);
	}
	if (ok)
		return list;
	cJSON_Delete(list);
	return NULL;
}
