/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the judgement of variances has before it (evidence.h, alone.h). */
#ifndef VAPRO_EVIDENCE_INPUT_H
#define VAPRO_EVIDENCE_INPUT_H

#include "detect/variance.h"

struct evidence_input {
	const struct vapro_config *config;
	const struct heatmap *map;
	const struct stg_job *job;
	const struct series_book *series;
	const struct stg *stg;
	enum vapro_workload_source source;
	const struct bundle_rec *recs; /* of the view */
	size_t rec_count;
	uint64_t begin, end; /* bins: the new part */
	bool partial;	     /* some ranks of the world are not seen */
};

#endif
