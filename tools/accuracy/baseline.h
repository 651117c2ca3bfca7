/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A simple rule to compare the analysis with. Of each state the value is the time per instruction, or per fragment
 * where nothing is counted, of all bins of all ranks. A bin is slow above the median and both 18 % and six robust
 * standard deviations of it. Slow bins of a rank with at most three others between them are a run; runs of several
 * ranks or states of one class that overlap by half are an alarm, if they have lost a tenth of a second. Waiting beside
 * slow computation is dropped. It names no cause.
 */
#ifndef VAPRO_ACCURACY_BASELINE_H
#define VAPRO_ACCURACY_BASELINE_H

#include "findings.h"

/* Hands all events to `inner`, too, which it does not own. NULL when out of memory. */
struct stream_sink *baseline__sink(struct stream_sink *inner, const struct job *job, enum vapro_workload_source source);

/* What the rule finds, as alarms. 0 or -ENOMEM. */
int baseline__find(struct stream_sink *sink, struct findings *findings);

#endif
