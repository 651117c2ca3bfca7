// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes the capture of a simulated job on four hosts, of which the clock of one is off and a rank of it is slowed by a
 * hog from 42 to 50 s: make_skewed MILLISECONDS FILE.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/accuracy/findings.h"
#include "capture/capture.h"
#include "config/config_json.h"

int main(int argc, char **argv)
{
	struct job job = {.seed = 7, .ranks = 16, .hosts = 4, .seconds = 80, .jitter = 0.02, .skewed_host = 1};
	struct truths truths = {0};
	struct vapro_config config;
	struct job_totals totals;
	struct stream_sink *sink;
	char *tunables;
	int ret;

	if (argc != 3) {
		fputs("Usage: make_skewed MILLISECONDS FILE\n", stderr);
		return 2;
	}
	job.skew_s = strtod(argv[1], NULL) / 1000;
	job__program(&job, 5e6, 0.2, 0);
	job__effect(&job, EFFECT_CPU_BUSY, 42, 50, 2)->ranks = (struct job_ranks){RANKS_RANGE, 6, 6};
	config__init(&config);
	tunables = config__to_text(&config);
	sink = tunables ? capture__create(argv[2], tunables) : NULL;
	free(tunables);
	if (!sink) {
		fprintf(stderr, "make_skewed: %s cannot be written\n", argv[2]);
		return 1;
	}
	ret = job__run(&job, VAPRO_BY_ARGUMENTS, config.window_s, sink, &truths, &totals);
	if (stream__close(sink) && !ret)
		ret = -1;
	truths__free(&truths);
	return ret ? 1 : 0;
}
