// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * score_clusters [--bands RULES] FILE: how well clusters of NDJSON fragments agree with their `truth`, the known true
 * work of each computation, which a reader of NDJSON passes over. The computations of each state, or of each state and
 * band, are clustered as in an analysis by instructions. A truth counts within its state.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "../../tools/accuracy/v_measure.h"
#include "base/grow.h"
#include "base/intern.h"
#include "capture/ndjson.h"
#include "model/bands.h"
#include "model/clusters.h"

struct fragment {
	uint32_t state, handle;
	uint32_t truth;
};

struct scorer {
	struct stream_sink sink; /* first */
	struct vapro_config config;
	struct rules rules;
	struct bands *bands;
	struct clusters **clusters; /* by state; NULL for calls */
	size_t states, state_room;
	int32_t *ranks; /* by thread */
	size_t rank_room;
	struct fragment *fragments;
	size_t count, room;
	struct intern *truths;
	cJSON *truth_of; /* true work by "RANK START_NS" */
};

/* As exact as numbers of cJSON are: to the nanosecond in the first 104 days of a clock. */
static void key_of(int rank, double start_ns, char *key, size_t size)
{
	snprintf(key, size, "%d %.0f", rank, start_ns);
}

static int add_state(struct scorer *scorer, const struct vapro_state *state)
{
	if (grow(&scorer->clusters, &scorer->state_room, state->id + 1, sizeof(*scorer->clusters)))
		return -ENOMEM;
	for (; scorer->states <= state->id; scorer->states++)
		scorer->clusters[scorer->states] = NULL;
	if (state->class != VAPRO_COMPUTATION)
		return 0;
	scorer->clusters[state->id] = clusters__new(&scorer->config);
	return scorer->clusters[state->id] ? 0 : -ENOMEM;
}

static int add_bundle(struct scorer *scorer, const struct vapro_bundle *bundle)
{
	struct vapro_bundle placed = *bundle;
	struct vapro_state state;
	const cJSON *truth;
	char key[64];
	int ret = bands__place(scorer->bands, &placed, &state);

	if (ret > 0)
		ret = add_state(scorer, &state);
	if (ret || !scorer->clusters[placed.state])
		return ret;
	key_of(scorer->ranks[bundle->thread], (double)bundle->start_ns, key, sizeof(key));
	truth = cJSON_GetObjectItemCaseSensitive(scorer->truth_of, key);
	if (!truth)
		return 0;
	rules__apply(&scorer->rules, &placed);
	if (!(placed.magnitude_max[VAPRO_INSTRUCTIONS] > 0) ||
	    grow(&scorer->fragments, &scorer->room, scorer->count + 1, sizeof(*scorer->fragments)))
		return -EINVAL;
	scorer->fragments[scorer->count].state = placed.state;
	scorer->fragments[scorer->count].truth = intern__id(scorer->truths, truth->valuestring);
	return clusters__add(scorer->clusters[placed.state], placed.magnitude_min, placed.magnitude_max, placed.n,
			     placed.sum_ns, placed.min_ns, &scorer->fragments[scorer->count++].handle);
}

static int put(struct stream_sink *sink, const struct stream_event *event)
{
	struct scorer *scorer = (struct scorer *)sink;

	if (event->type == STREAM_STATE)
		return bands__add_state(scorer->bands, &event->state);
	if (event->type == STREAM_BUNDLE)
		return add_bundle(scorer, &event->bundle);
	if (event->type == STREAM_THREAD) {
		if (grow(&scorer->ranks, &scorer->rank_room, event->thread.id + 1, sizeof(*scorer->ranks)))
			return -ENOMEM;
		scorer->ranks[event->thread.id] = event->thread.rank;
	}
	return 0;
}

/* Notes the truths of all lines. Returns whether each has one. */
static bool read_truths(struct scorer *scorer, const char *path)
{
	FILE *file = fopen(path, "r");
	char *line = NULL, key[64];
	size_t size;
	bool ok = file;

	scorer->truth_of = cJSON_CreateObject();
	while (ok && getline(&line, &size, file) > 0) {
		cJSON *object = cJSON_Parse(line);
		const cJSON *rank = cJSON_GetObjectItem(object, "rank"),
			    *start = cJSON_GetObjectItem(object, "start_ns"),
			    *truth = cJSON_GetObjectItem(object, "truth");

		ok = cJSON_IsNumber(rank) && cJSON_IsNumber(start) && cJSON_IsString(truth);
		if (ok) {
			key_of(rank->valueint, start->valuedouble, key, sizeof(key));
			ok = cJSON_AddStringToObject(scorer->truth_of, key, truth->valuestring);
		}
		cJSON_Delete(object);
	}
	free(line);
	if (file)
		fclose(file);
	return ok;
}

/* Prints the score of all fragments. Returns an exit code. */
static int print(struct scorer *scorer)
{
	struct v_measure_count *counts = calloc(scorer->count + 1, sizeof(*counts));
	struct v_measure measure;
	unsigned approximate = 0;

	if (!counts || !scorer->count)
		return 1;
	for (size_t i = 0; i < scorer->states; i++) {
		if (scorer->clusters[i] && clusters__form(scorer->clusters[i]))
			return 1;
		if (scorer->clusters[i])
			approximate += !clusters__certificate(scorer->clusters[i])->exact;
	}
	for (size_t i = 0; i < scorer->count; i++) {
		const struct fragment *fragment = &scorer->fragments[i];
		uint64_t state = (uint64_t)fragment->state << 32;

		counts[i] = (struct v_measure_count){
		    state | fragment->truth,
		    state | clusters__of(scorer->clusters[fragment->state], fragment->handle)->id,
		    1,
		};
	}
	v_measure__of(counts, scorer->count, &measure);
	printf("homogeneity %.6f, completeness %.6f, V-measure %.6f (%llu fragments, %llu truths, %llu clusters, %u "
	       "states approximate)\n",
	       measure.homogeneity, measure.completeness, measure.harmonic, (unsigned long long)measure.fragments,
	       (unsigned long long)measure.truths, (unsigned long long)measure.clusters, approximate);
	free(counts);
	return 0;
}

int main(int argc, char **argv)
{
	static struct scorer scorer = {.sink = {.put = put}};
	const char *bands = argc == 4 && !strcmp(argv[1], "--bands") ? argv[2] : "", *path = argv[argc - 1];
	const char *named[RULES_NAMED];
	struct ndjson *ndjson;
	uint64_t bad;
	char err[512] = "";

	if (argc != (*bands ? 4 : 2)) {
		fputs("usage: score_clusters [--bands RULES] FILE\n", stderr);
		return 2;
	}
	config__init(&scorer.config);
	scorer.truths = intern__new();
	if (rules__parse(&scorer.rules, "", bands, err, sizeof(err)) || !read_truths(&scorer, path)) {
		fprintf(stderr, "score_clusters: %s: %s\n", path, *err ? err : "a line lacks rank, start_ns or truth");
		return 1;
	}
	ndjson = ndjson__read(&path, 1, true, &bad, err, sizeof(err));
	if (!ndjson) {
		fprintf(stderr, "score_clusters: %s\n", err);
		return 1;
	}
	for (int i = 0; i < RULES_NAMED; i++)
		named[i] = ndjson__named(ndjson, i);
	rules__finalize(&scorer.rules, named);
	scorer.bands = bands__new(&scorer.rules);
	if (ndjson__feed(ndjson, scorer.config.window_s, &scorer.sink, err, sizeof(err))) {
		fprintf(stderr, "score_clusters: %s: %s\n", path, *err ? err : "a fragment has no instructions");
		return 1;
	}
	return print(&scorer);
}
