/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/interferers.h"
#include "diagnose/verdict.h"
#include "diagnose/where.h"
#include "base/grow.h"
#include "report/json.h"
#include "report/line_runs.h"
#include "report/run_option.h"
#include "report/view_model.h"

#define SHOWN_MAX 20 /* bad lines reported one by one */

static const char *text_of(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

/* Parses a relation; foreign where an old record has none or a newer one an unknown word. */
static enum vapro_relation relation_of(const char *name)
{
	for (int i = 0; name && i < VAPRO_RELATIONS; i++)
		if (!strcmp(name, interferers__relation[i]))
			return (enum vapro_relation)i;
	return VAPRO_FOREIGN;
}

static double number_of(const cJSON *object, const char *key, double missing)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsNumber(item) && isfinite(item->valuedouble) ? item->valuedouble : missing;
}

static uint64_t uint_of(const cJSON *object, const char *key)
{
	double number = number_of(object, key, 0);

	return number >= 1 && number < 1e18 ? (uint64_t)number : 0;
}

static bool time_of(const cJSON *object, const char *key, uint64_t *utc_ns)
{
	const char *text = text_of(object, key);

	return text && json__parse_time(text, utc_ns);
}

/* Compares users; NAN is unknown, as in older records. */
static bool same_user(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

/* Finds or makes a map. Where users have jobs of one name, all but the first are shown with their user. */
static struct view_map *find_map(struct view_model *model, const char *job, double uid, const char *class,
				 uint64_t bin_ns)
{
	char name[256];
	struct view_map *map;

	snprintf(name, sizeof(name), "%s", job);
	for (size_t i = 0; i < model->map_count; i++) {
		map = &model->maps[i];
		if (strcmp(map->said, job))
			continue;
		if (!same_user(map->uid, uid)) {
			if (!isnan(uid))
				snprintf(name, sizeof(name), "%s of uid %.0f", job, uid);
			continue;
		}
		if (map->bin_ns == bin_ns && !strcmp(map->class, class))
			return map;
	}
	if (grow(&model->maps, &model->map_capacity, model->map_count + 1, sizeof(*map)))
		return NULL;
	map = &model->maps[model->map_count++];
	memset(map, 0, sizeof(*map));
	map->job = strdup(name);
	map->said = strdup(job);
	map->uid = uid;
	map->class = strdup(class);
	map->bin_ns = bin_ns;
	return map->job && map->said && map->class ? map : NULL;
}

/* Lines of one run have rows in one order: the guess is right but for the first time. */
static struct view_row *find_row(struct view_map *map, size_t guess, int64_t rank, int64_t thread, uint64_t pid,
				 const char *host)
{
	struct view_row *row;

	for (size_t i = 0; i < map->row_count; i++) {
		row = &map->rows[(guess + i) % map->row_count];
		/* a rank is one row whichever process ran it; only unknown ranks need the pid */
		if (row->rank == rank && row->thread == thread &&
		    (rank >= 0 || (row->pid == pid && !strcmp(row->host, host))))
			return row;
	}
	if (grow(&map->rows, &map->row_capacity, map->row_count + 1, sizeof(*row)))
		return NULL;
	row = &map->rows[map->row_count];
	memset(row, 0, sizeof(*row));
	row->rank = rank;
	row->thread = thread;
	row->pid = pid;
	row->host = strdup(host);
	if (!row->host)
		return NULL;
	map->row_count++;
	return row;
}

static int add_piece(struct view_row *row, uint64_t bin, uint32_t revision, const cJSON *values)
{
	struct view_piece piece = {bin, 0, revision, NULL};
	const cJSON *value;

	if (grow(&row->pieces, &row->piece_capacity, row->piece_count + 1, sizeof(piece)))
		return -ENOMEM;
	piece.values = malloc(((size_t)cJSON_GetArraySize(values) + 1) * sizeof(*piece.values));
	if (!piece.values)
		return -ENOMEM;
	cJSON_ArrayForEach(value, values)
	{
		piece.values[piece.count++] = cJSON_IsNumber(value) ? (float)value->valuedouble : NAN;
	}
	row->pieces[row->piece_count++] = piece;
	return 0;
}

/* Returns 0, -EINVAL with the reason in *why, or -ENOMEM. */
static int add_heatmap(struct view_model *model, const cJSON *line, const char **why)
{
	const char *job = text_of(line, "job"), *class = text_of(line, "class"), *host = text_of(line, "host");
	const cJSON *rows = cJSON_GetObjectItemCaseSensitive(line, "rows"), *item;
	uint64_t begin_ns, bin_ns = uint_of(line, "bin_ns"), bin, bins = 0;
	struct view_map *map;
	size_t guess = 0;

	*why = "a heatmap without class, begin, bin_ns or rows";
	if (!class || !bin_ns || !time_of(line, "begin", &begin_ns) || !cJSON_IsArray(rows))
		return -EINVAL;
	cJSON_ArrayForEach(item, rows)
	{
		const cJSON *values = cJSON_GetObjectItemCaseSensitive(item, "values");
		uint64_t count = (uint64_t)cJSON_GetArraySize(values);

		*why = "a heatmap's row without rank or values";
		if (!cJSON_IsArray(values) || isnan(number_of(item, "rank", NAN)))
			return -EINVAL;
		bins = count > bins ? count : bins;
	}
	map = find_map(model, job ? job : "", number_of(line, "uid", NAN), class, bin_ns);
	if (!map)
		return -ENOMEM;
	bin = begin_ns / bin_ns;
	*why = "its time is too far from that of the lines before";
	if (map->end && (bin + bins > map->first + VIEW_BINS_MAX || bin + VIEW_BINS_MAX < map->end))
		return -EINVAL;
	if (!bins)
		return 0;
	if (!map->end || bin < map->first)
		map->first = bin;
	if (bin + bins > map->end)
		map->end = bin + bins;
	if (!model->start_ns || begin_ns < model->start_ns)
		model->start_ns = begin_ns;
	cJSON_ArrayForEach(item, rows)
	{
		const char *own = text_of(item, "host");
		struct view_row *row = find_row(map, guess++, (int64_t)number_of(item, "rank", -1),
						(int64_t)number_of(item, "thread", -1), uint_of(item, "pid"),
						own    ? own
						: host ? host
						       : "");

		if (!row || add_piece(row, bin, (uint32_t)uint_of(line, "revision"),
				      cJSON_GetObjectItemCaseSensitive(item, "values")))
			return -ENOMEM;
	}
	return 0;
}

/*
 * Gets the words for a call-site or state of a record: `source`; of a record of an earlier version its symbols, else
 * its call-sites. Returns whether there are any.
 */
static bool words_of(const cJSON *item, char *text, size_t size)
{
	const char *words = text_of(item, "source"), *from = text_of(item, "from"), *to = text_of(item, "to");

	if (!words)
		words = text_of(item, "symbols");
	if (words)
		snprintf(text, size, "%s", words);
	else if (to)
		snprintf(text, size, "%s%s%s", from ? from : "", from ? " -> " : "", to);
	return words || to;
}

static int set_site(struct region *region, const cJSON *sites)
{
	const cJSON *site = cJSON_GetArrayItem(sites, 0);
	char text[1024];

	return !words_of(site, text, sizeof(text)) || region__set_text(&region->site, text) ? 0 : -ENOMEM;
}

/* Writes a range string as words; returns true for several ranks. */
static bool name_ranks(const char *ranks, char *buf, size_t size)
{
	bool many = ranks && strpbrk(ranks, "-,");

	snprintf(buf, size, "rank%s %s", many ? "s" : "", ranks ? ranks : "?");
	return many;
}

static int add_variance(struct view_model *model, const cJSON *line, const char **why)
{
	const char *job = text_of(line, "job"), *state = text_of(line, "state");
	const char *confidence = text_of(line, "confidence"), *who = text_of(line, "who");
	const char *severity = text_of(line, "severity");
	char ranks_only[128];
	uint64_t begin_ns, end_ns;
	struct region *region;

	*why = "a variance without id, begin or end";
	if (!uint_of(line, "id") || !time_of(line, "begin", &begin_ns) || !time_of(line, "end", &end_ns) ||
	    end_ns < begin_ns)
		return -EINVAL;
	region = regions__get(&model->regions, job ? job : "", uint_of(line, "id"));
	if (!region)
		return -ENOMEM;
	region->begin_ns = begin_ns;
	region->end_ns = end_ns;
	region->effect_of = uint_of(line, "effect_of");
	region->performance = number_of(line, "performance", NAN);
	region->work_unknown = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(line, "work_unknown"));
	region->lost_seconds = number_of(line, "lost_seconds", 0);
	region->caused_seconds = number_of(line, "caused_seconds", 0);
	snprintf(region->severity, sizeof(region->severity), "%s", severity ? severity : "");
	regions__defuse(region->severity);
	region->confirmed = confidence && !strcmp(confidence, "confirmed");
	region->place = confidence && !strcmp(confidence, "place");
	region->alarm = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(line, "alarm"));
	region->ended = state && !strcmp(state, "closed");
	if (!who) {
		name_ranks(text_of(line, "ranks"), ranks_only, sizeof(ranks_only));
		who = ranks_only;
	}
	if (!region__set_text(&region->class, text_of(line, "class")) || !region__set_text(&region->who, who) ||
	    !region__set_text(&region->evidence, text_of(line, "evidence")))
		return -ENOMEM;
	return set_site(region, cJSON_GetObjectItemCaseSensitive(line, "call_sites"));
}

static int add_diagnosis(struct view_model *model, const cJSON *line, const char **why)
{
	const char *job = text_of(line, "job"), *advice = text_of(line, "advice");
	const char *verdict = text_of(line, "verdict");
	struct region *region;
	const cJSON *item;

	*why = "a diagnosis without its variance";
	if (cJSON_GetObjectItemCaseSensitive(line, "region"))
		return 0; /* a region chosen by hand is no finding */
	if (!uint_of(line, "variance"))
		return -EINVAL;
	region = regions__get(&model->regions, job ? job : "", uint_of(line, "variance"));
	if (!region)
		return -ENOMEM;
	region->cause_count = region->interferer_count = 0;
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(line, "factors"))
	{
		struct region_cause *cause = &region->causes[region->cause_count];
		const char *name = text_of(item, "name");

		if (!name || region->cause_count == REGION_CAUSES)
			continue;
		snprintf(cause->name, sizeof(cause->name), "%s", name);
		regions__defuse(cause->name);
		cause->share = number_of(item, "contribution_pct", 0) / 100;
		cause->major = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "major"));
		cause->part = text_of(item, "parent");
		region->cause_count++;
	}
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(line, "interferers"))
	{
		struct region_interferer *who = &region->interferers[region->interferer_count];
		const char *comm = text_of(item, "comm");

		if (!comm || region->interferer_count == REGION_INTERFERERS)
			continue;
		snprintf(who->comm, sizeof(who->comm), "%s", comm);
		regions__defuse(who->comm);
		who->pid = (uint32_t)uint_of(item, "pid");
		who->relation = relation_of(text_of(item, "relation"));
		who->seconds = number_of(item, "seconds", 0);
		region->interferer_count++;
	}
	if (verdict && !region__set_text(&region->verdict, verdict))
		return -ENOMEM;
	return !advice || region__set_text(&region->advice, advice) ? 0 : -ENOMEM;
}

/* Writes the facts that the ranks of a set share in words. */
static void read_place(const cJSON *line, bool many, char *buf, size_t size)
{
	struct result_shared shared[WHERE_FACTS];
	uint32_t count = 0;
	const cJSON *item;

	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(line, "shared"))
	{
		const char *fact = text_of(item, "fact"), *value = text_of(item, "value");

		if (fact && value && count < WHERE_FACTS)
			shared[count++] = (struct result_shared){.fact = fact, .value = value};
	}
	verdict__place(shared, count, many ? 2 : 1, buf, size);
}

static void read_set(const cJSON *line, struct aside *aside, char *who, size_t who_size, char *place, size_t place_size)
{
	char slowest[24];

	/* lines of earlier versions name the slowest rank only */
	snprintf(slowest, sizeof(slowest), "%.0f", number_of(line, "slow_rank", -1));
	aside->many = name_ranks(text_of(line, "ranks") ? text_of(line, "ranks") : slowest, who, who_size);
	read_place(line, aside->many, place, place_size);
	aside->who = who;
	aside->place = place;
	aside->certain = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(line, "certain"));
	aside->least = number_of(line, "ratio_least", aside->ratio);
	aside->most = number_of(line, "ratio_most", aside->ratio);
	aside->slow = number_of(line, "ratio_slow", aside->ratio);
	aside->count = uint_of(line, "states");
	aside->seconds = number_of(line, "lost_seconds", 0);
}

/* Adds rare work, drift or imbalance: lines about a state. */
static int add_aside(struct view_model *model, const cJSON *line, enum aside_kind kind, const char **why)
{
	const char *job = text_of(line, "job");
	struct aside aside = {
	    .kind = kind,
	    .cluster = uint_of(line, "cluster"),
	    .rank = (int64_t)number_of(line, "rank", -1),
	    .count = uint_of(line, kind == ASIDE_RARE ? "members" : "windows"),
	    .seconds = number_of(line, "seconds", 0),
	    .ratio = number_of(line, "ratio", 1),
	    .share = number_of(line, "share_pct", 0) / 100,
	};
	char text[1024], who[256], place[512];

	*why = "neither symbols nor call-site";
	if (!words_of(line, text, sizeof(text)))
		return -EINVAL;
	if (kind == ASIDE_IMBALANCE)
		read_set(line, &aside, who, sizeof(who), place, sizeof(place));
	return asides__add(&model->asides, &aside, job ? job : "", text);
}

static int add_line(struct view_model *model, struct line_runs *runs, const char *text, const char **why)
{
	cJSON *line = cJSON_ParseWithOpts(text, NULL, true);
	const char *type = text_of(line, "type"), *schema = text_of(line, "schema");
	int ret = 0;

	if (!line_runs__has(runs, line)) {
		cJSON_Delete(line);
		return 0;
	}
	if (!line) {
		*why = "no JSON";
		return -EINVAL;
	}
	if (!type || !schema || strcmp(schema, JSON_SCHEMA)) {
		*why = "no line of vapro/1";
		ret = -EINVAL;
	} else if (!strcmp(type, "heatmap")) {
		ret = add_heatmap(model, line, why);
	} else if (!strcmp(type, "variance")) {
		ret = add_variance(model, line, why);
	} else if (!strcmp(type, "diagnosis")) {
		ret = add_diagnosis(model, line, why);
	} else if (!strcmp(type, "rare")) {
		ret = add_aside(model, line, ASIDE_RARE, why);
	} else if (!strcmp(type, "drift")) {
		ret = add_aside(model, line, ASIDE_DRIFT, why);
	} else if (!strcmp(type, "imbalance")) {
		ret = add_aside(model, line, ASIDE_IMBALANCE, why);
	}
	cJSON_Delete(line);
	return ret;
}

static int compare_rows(const void *a, const void *b)
{
	const struct view_row *x = a, *y = b;
	int hosts = strcmp(x->host, y->host);

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->rank < 0 && (hosts || x->pid != y->pid))
		return hosts ? hosts : x->pid < y->pid ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* Copies an unseekable file to an unnamed one; rewinds the result. Returns NULL with errno. */
static FILE *seekable(FILE *file)
{
	char bytes[65536];
	FILE *copy;
	size_t got;

	if (!fseeko(file, 0, SEEK_SET))
		return file;
	copy = tmpfile();
	while (copy && (got = fread(bytes, 1, sizeof(bytes), file)) > 0) {
		if (fwrite(bytes, 1, got, copy) == got)
			continue;
		fclose(copy);
		return NULL;
	}
	if (copy)
		rewind(copy);
	return copy;
}

/* Returns 0 or a negative errno. */
static int read_lines(struct view_model *model, struct line_runs *runs, FILE *file, const char *name)
{
	size_t capacity = 0;
	char *text = NULL;
	int ret = 0;

	if (fseeko(file, line_runs__begin(runs, &model->lines), SEEK_SET))
		return -errno;
	errno = 0;
	while (ret != -ENOMEM && getline(&text, &capacity, file) >= 0) {
		const char *why = "";

		model->lines++;
		if (!text[strspn(text, " \t\r\n")])
			continue;
		ret = add_line(model, runs, text, &why);
		if (ret == -EINVAL && model->bad_lines++ < SHOWN_MAX)
			fprintf(stderr, "vapro: %s:%llu: %s\n", name, (unsigned long long)model->lines, why);
	}
	if (ret != -ENOMEM)
		ret = ferror(file) ? (errno ? -errno : -EIO) : 0;
	if (model->bad_lines > SHOWN_MAX)
		fprintf(stderr, "vapro: %s: %llu bad lines in all\n", name, (unsigned long long)model->bad_lines);
	free(text);
	return ret;
}

int view_model__read(struct view_model *model, FILE *file, int run, const char *name)
{
	FILE *input = seekable(file);
	struct line_runs *runs = input ? line_runs__read(input) : NULL;
	int ret = runs ? 0 : -errno;

	memset(model, 0, sizeof(*model));
	if (runs) {
		model->runs = line_runs__count(runs);
		model->run = line_runs__choose(runs, run);
		if (!model->run && (model->runs || run != RUN_OPTION_LAST))
			ret = -ENOENT;
		else
			ret = read_lines(model, runs, input, name);
	}
	for (size_t i = 0; i < model->map_count; i++) {
		if (model->maps[i].row_count)
			qsort(model->maps[i].rows, model->maps[i].row_count, sizeof(struct view_row), compare_rows);
	}
	line_runs__free(runs);
	if (input && input != file)
		fclose(input);
	return ret;
}

void view_model__free(struct view_model *model)
{
	for (size_t i = 0; i < model->map_count; i++) {
		struct view_map *map = &model->maps[i];

		for (size_t k = 0; k < map->row_count; k++) {
			for (size_t p = 0; p < map->rows[k].piece_count; p++)
				free(map->rows[k].pieces[p].values);
			free(map->rows[k].pieces);
			free(map->rows[k].host);
		}
		free(map->rows);
		free(map->job);
		free(map->said);
		free(map->class);
	}
	free(model->maps);
	regions__free(&model->regions);
	asides__free(&model->asides);
}
