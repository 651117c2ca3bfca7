/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cases.h"

#include <string.h>

static uint64_t hash_of(const char *text)
{
	uint64_t hash = 14695981039346656037ULL;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211ULL;
	return hash;
}

void cases__make(const struct accuracy_case *at, double length_ms, uint64_t seed, struct job *job)
{
	struct draw draw = {.seed = draw__mix(hash_of(at->kind) ^ draw__mix(seed) ^ (uint64_t)(length_ms * 1000))};

	memset(job, 0, sizeof(*job));
	job->kind = at->kind;
	job->variant = at->variant;
	job->seed = draw.seed;
	draw__unit(&draw);
	if (at->study)
		at->study(job);
	else
		at->make(job, &draw, length_ms);
}

void cases__usual(struct job *job, struct draw *draw, double length_ms, double calls, double writes)
{
	static const int sizes[] = {16, 24, 32, 48, 64};

	job->ranks = sizes[draw__int(draw, 0, 4)];
	/* a ms of computation is a thousand fragments a second of each rank */
	if (length_ms < 5 && job->ranks > 32)
		job->ranks = 32;
	if (length_ms < 0.5)
		job->ranks = 16;
	job->hosts = job->ranks / 8;
	job->cyclic = draw__unit(draw) < 0.3;
	job->seconds = length_ms < 0.5 ? 60 : length_ms >= 400 ? 150 : draw__int(draw, 8, 12) * 10;
	job->jitter = draw__between(draw, 0.005, 0.03);
	job__program(job, length_ms * 1e6, calls, writes);
}

struct job_ranks cases__rank(const struct job *job, struct draw *draw)
{
	int rank = draw__int(draw, 0, job->ranks - 1);

	return (struct job_ranks){RANKS_RANGE, rank, rank};
}

struct job_ranks cases__host(const struct job *job, struct draw *draw)
{
	int host = draw__int(draw, 0, job->hosts - 1);

	return (struct job_ranks){RANKS_HOST, host, host};
}

struct job_ranks cases__socket(const struct job *job, struct draw *draw)
{
	int socket = draw__int(draw, 0, 2 * job->hosts - 1);

	return (struct job_ranks){RANKS_SOCKET, socket, socket};
}
