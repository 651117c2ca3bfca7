/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words of the output contract for classes, factors, losses and uncovered time (ARCHITECTURE 8 to 10). */
#include <vapro/analysis.h>

const char *const vapro_class_name[VAPRO_CLASSES] = {
    [VAPRO_COMPUTATION] = "computation",
    [VAPRO_COMMUNICATION] = "communication",
    [VAPRO_IO] = "io",
};

#define WORD(id, word) [VAPRO_##id] = #word,
const char *const vapro_factor_name[VAPRO_FACTORS] = {VAPRO_TIMES(WORD) VAPRO_COUNTS(WORD)};

const char *const vapro_loss_name[VAPRO_LOSSES] = {
    [VAPRO_LOST_RING_FULL] = "ring_full",	[VAPRO_LOST_MAP_FULL] = "map_full",
    [VAPRO_LOST_NO_STORAGE] = "no_storage",	[VAPRO_LOST_ARGUMENT] = "argument",
    [VAPRO_LOST_TRUNCATED] = "truncated",	[VAPRO_LOST_GOVERNED] = "governed",
    [VAPRO_LOST_VANISHED] = "vanished",		[VAPRO_LOST_UNACCOUNTED] = "unaccounted",
    [VAPRO_LOST_APPROXIMATED] = "approximated", [VAPRO_LOST_UNMATCHED] = "unmatched",
    [VAPRO_LOST_COUNTER] = "counter",		[VAPRO_LOST_STATES] = "states",
    [VAPRO_LOST_PUBLISHED] = "published",	[VAPRO_LOST_INTERFERENCE] = "interference",
};

const char *const vapro_hang_kind_name[VAPRO_HANG_KINDS] = {
    [VAPRO_HANG_CALLS] = "calls",   [VAPRO_HANG_STOPPED] = "stopped", [VAPRO_HANG_TRACED] = "traced",
    [VAPRO_HANG_FROZEN] = "frozen", [VAPRO_HANG_INPUT] = "input",     [VAPRO_HANG_NOT_KNOWN] = "not_known",
};

const char *const vapro_hang_condition_name[VAPRO_HANG_CONDITIONS] = {
    [VAPRO_HANG_STOPPED_RANK] = "stopped", [VAPRO_HANG_TRACED_RANK] = "traced", [VAPRO_HANG_FROZEN_RANK] = "frozen",
    [VAPRO_HANG_ENDED] = "ended",	   [VAPRO_HANG_ASLEEP] = "asleep",	[VAPRO_HANG_WAITS_FOR_INPUT] = "input",
    [VAPRO_HANG_UNSEEN] = "not_known",	   [VAPRO_HANG_IN_CALL] = "in_call",	[VAPRO_HANG_NO_DATA] = "no_data",
};

const char *const vapro_noise_source_name[VAPRO_NOISE_SOURCES] = {
    [VAPRO_NOISE_SCHEDULER] = "scheduler",
    [VAPRO_NOISE_FRAGMENTS] = "fragments",
};

const char *const vapro_noise_together_name[VAPRO_NOISE_TOGETHER] = {
    [VAPRO_NOISE_APART] = "apart",
    [VAPRO_NOISE_HOST] = "host",
    [VAPRO_NOISE_JOB] = "job",
};

const char *const vapro_hang_outcome_name[VAPRO_HANG_OUTCOMES] = {
    [VAPRO_HANG_GOES_ON] = "goes_on",
    [VAPRO_HANG_RESUMED] = "resumed",
    [VAPRO_HANG_JOB_ENDED] = "job_ended",
    [VAPRO_HANG_UNWATCHED] = "unwatched",
};

const char *const vapro_variability_kind_name[VAPRO_VARIABILITY_KINDS] = {
    [VAPRO_VARIES_NOT] = "none",
    [VAPRO_VARIES_SPATIALLY] = "spatial",
    [VAPRO_VARIES_TEMPORALLY] = "temporal",
    [VAPRO_VARIES_BOTH] = "both",
};

const char *const vapro_variability_origin_name[VAPRO_VARIABILITY_ORIGINS] = {
    [VAPRO_ORIGIN_UNKNOWN] = "unknown", [VAPRO_ORIGIN_SOFTWARE] = "software", [VAPRO_ORIGIN_HARDWARE] = "hardware"};

const char *const vapro_variability_work_name[VAPRO_VARIABILITY_WORKS] = {
    [VAPRO_WORK_UNKNOWN] = "unknown", [VAPRO_WORK_REPEATED] = "repeated", [VAPRO_WORK_COUNTED] = "counted"};

const char *const vapro_uncovered_name[VAPRO_UNCOVERED_REASONS] = {
    [VAPRO_COVERED] = "covered",	 [VAPRO_FEW_FRAGMENTS] = "few_fragments",
    [VAPRO_SPREAD] = "spread",		 [VAPRO_RARE] = "rare",
    [VAPRO_GOVERNED] = "governed",	 [VAPRO_NO_RETURN] = "no_return",
    [VAPRO_NOT_SEEN] = "not_seen",	 [VAPRO_LOST] = "lost",
    [VAPRO_NO_WORKLOAD] = "no_workload", [VAPRO_SHED] = "shed",
    [VAPRO_WARM_UP] = "warm_up",
};
