/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tunables: one declarative table (name, type, default, range, help) feeds the config file, the
 * command line, --help, the man page and the hello record alike. The papers' constants are its
 * defaults.
 */
#ifndef VAPRO_CONFIG_H
#define VAPRO_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define VAPRO_FUNCTIONS_TEXT 4096

enum vapro_tristate { VAPRO_OFF, VAPRO_ON, VAPRO_AUTO };
enum vapro_states { VAPRO_BY_CALL_SITE, VAPRO_BY_CALL_PATH };

/* typical: the centre of the fastest group of batches; fastest: the fastest member (VAPRO (PPoPP'22) section 3.4) */
enum vapro_reference { VAPRO_REFERENCE_TYPICAL, VAPRO_REFERENCE_FASTEST };

#define VAPRO_TEXT_MAX 512 /* size of a text tunable */

/* auto: the best attach mode that the kernel accepts */
enum vapro_attach { VAPRO_ATTACH_AUTO, VAPRO_ATTACH_SESSION, VAPRO_ATTACH_MULTI, VAPRO_ATTACH_PERF };

/* auto: hardware where counters exist, else none; test: clocks instead, to test the readers of counters */
enum vapro_counters { VAPRO_COUNTERS_AUTO, VAPRO_COUNTERS_HARDWARE, VAPRO_COUNTERS_NONE, VAPRO_COUNTERS_TEST };

/* A site's definition of an event that the built-in tables lack or define otherwise: `event NAME=pmu/terms/`. */
struct vapro_event_spec {
	char name[64];
	char spec[128];
};

#define VAPRO_EVENT_SPECS 16
#define VAPRO_SOCKET "/run/vapro/"

struct vapro_config {
	/* detection: VAPRO (PPoPP'22) sections 3.4 and 3.5 */
	double window_s;		      /* length of an analysis window; its stride is two thirds */
	double threshold;		      /* region growing: cells below it are slow */
	uint64_t min_cells;		      /* least cells of a region */
	double min_lost_s;		      /* own loss of a region that is always worth a variance */
	double min_share;		      /* share of the job's rank-seconds: the same for own and caused loss */
	double warning_share, critical_share; /* the same, for severities */
	double valid_bin;		      /* a bin counts when this share of it is covered */
	double cluster_tolerance;	      /* Algorithm 1 */
	uint64_t cluster_floor;		      /* instructions; differences below it are equal */
	uint64_t cluster_cells;		      /* cells of a state; beyond, all become wider */
	uint64_t rare_members;		      /* clusters with fewer members are rare */
	/* workload without a PMU: ARCHITECTURE section 6, NoiseMiner section 4 */
	uint64_t certify_fragments; /* fragments a state needs before it is certified */
	double certify_share;	    /* share of its on-CPU time near a populous group */
	double certify_width;	    /* distance called near, relative to the group's mean */
	double populous_share;	    /* share of fragments that makes a group populous */
	double rank_agreement;	    /* references of ranks that may be compared */
	double evidence_share;	    /* share of a loss that the kernel must explain */
	enum vapro_reference reference;
	uint64_t support_batches; /* batches that a group needs to be a reference */
	/* diagnosis: VAPRO (PPoPP'22) section 4.3 */
	double abnormal_ratio; /* k_a */
	double major_share;
	double p_value;
	/* cost */
	double overhead_cap_pct;    /* percent of any 5 s; 0 = no bound */
	double overhead_budget_pct; /* the mean; 0 = the cap alone */
	uint64_t memory_cap;	    /* bytes that the analysis may hold; 0 = no cap */
	/* collection */
	double long_fragment_s;
	uint64_t map_entries; /* merged bundles per 200 ms bin */
	uint64_t ring_bytes;
	enum vapro_tristate io;
	enum vapro_tristate threads;
	enum vapro_tristate interrupts; /* timing of interrupts; auto: while a diagnosis wants it */
	enum vapro_tristate inside;	/* sampling of slow computation; auto: where the kernel can */
	bool no_return;
	double learn_s; /* how long polling calls are learnt when a process is attached */
	enum vapro_attach attach;
	/* functions beyond the built-in ones */
	double function_share; /* share of the budget that all may cost a process */
	char functions[VAPRO_FUNCTIONS_TEXT];
	enum vapro_states states; /* distinction of states: VAPRO (PPoPP'22) section 3.2 */
	uint64_t hop_frames;	  /* callers that a call-site whose times spread is followed to, at most; 0: none */
	char transparent[VAPRO_TEXT_MAX]; /* globs of images that are hopped over, joined by ',' */
	enum vapro_counters counters;
	char workload[VAPRO_TEXT_MAX]; /* events, separated by commas, that make up the workload vector */
	char bands[VAPRO_TEXT_MAX];    /* dynamic rules: model/rules.h */
	struct vapro_event_spec events[VAPRO_EVENT_SPECS];
	uint32_t event_count;
	/* queries: vapro diagnose */
	char socket[VAPRO_TEXT_MAX]; /* "": no queries */
	double keep_s;		     /* retention of dropped data, for queries; 0: none */
	uint64_t keep_bytes;
};

enum vapro_option_type {
	VAPRO_OPT_DOUBLE,
	VAPRO_OPT_SHARE,   /* a double, 0.05 or 5% */
	VAPRO_OPT_PERCENT, /* a double, 5 or 5% */
	VAPRO_OPT_SECONDS,
	VAPRO_OPT_UINT,
	VAPRO_OPT_SIZE, /* bytes, with K, M or G */
	VAPRO_OPT_BOOL,
	VAPRO_OPT_TRISTATE, /* off, on, auto */
	VAPRO_OPT_ATTACH,
	VAPRO_OPT_FUNCTIONS, /* rows, one more each time; separated by semicolons; "" removes all */
	VAPRO_OPT_STATES,
	VAPRO_OPT_COUNTERS,
	VAPRO_OPT_REFERENCE,
	VAPRO_OPT_TEXT,
	VAPRO_OPT_PATH,
	VAPRO_OPT_EVENTS, /* workload and bands, which are read together */
};

/* What options are about: their headings in --help, and the sections of the configuration file. */
enum vapro_group {
	VAPRO_GROUP_SELECTION,
	VAPRO_GROUP_OUTPUT,
	VAPRO_GROUP_PUBLISHING,
	VAPRO_GROUP_OVERHEAD,
	VAPRO_GROUP_ANALYSIS,
	VAPRO_GROUP_ANALYSIS_EXPERT,
	VAPRO_GROUP_KERNEL_EXPERT,
	VAPRO_GROUPS,
};

struct vapro_group_info {
	const char *section; /* as in [section]; two groups may share one */
	const char *heading;
	bool expert; /* listed on request only: the defaults hold on nearly every machine */
};

extern const struct vapro_group_info vapro_groups[VAPRO_GROUPS];

struct vapro_option {
	const char *name; /* as in --name and in `name = value` of the config file */
	enum vapro_option_type type;
	size_t offset; /* in struct vapro_config */
	const char *initial;
	double min, max;
	const char *help;
	enum vapro_group group;
};

extern const struct vapro_option vapro_options[];
extern const size_t vapro_option_count;

/* Returns the tunable of a name, with - or _ and by older names, or NULL. */
const struct vapro_option *config__find(const char *name);

/* Sets every tunable to its default. */
void config__init(struct vapro_config *config);

/*
 * Sets one tunable from text, with units as in base/units.h.
 * `event NAME` is no row of the table but sets how that event is counted here.
 * Returns 0, -ENOENT where no tunable has that name, or -EINVAL with a sentence in err.
 */
int config__set(struct vapro_config *config, const char *name, const char *value, char *err, size_t err_size);

/* Settings of a program that stand in the same file but are no tunables. */
struct config_others {
	/* Returns the n-th setting's name, and its group, or NULL behind the last one. */
	const char *(*name)(void *ctx, size_t n, enum vapro_group *group);
	/* Returns 0, or a negative errno with a sentence in err that begins with prefix. */
	int (*set)(void *ctx, const char *name, const char *value, const char *prefix, char *err, size_t err_size);
	void *ctx;
};

/*
 * Reads [section] and `name = value` lines (config/config_file.h); each setting belongs to the section of its group, or
 * stands before the first section. others may be NULL. Returns 0 or a negative errno with a sentence in err; then
 * config is unchanged.
 */
int config__read(struct vapro_config *config, const char *path, const struct config_others *others, char *err,
		 size_t err_size);

/* Writes the value of a tunable as text; VAPRO_FUNCTIONS_TEXT bytes hold each. */
void config__format(const struct vapro_config *config, const struct vapro_option *option, char *buf, size_t size);

/* Writes what --help calls the value of a tunable: "TIME", or "off|on|auto". */
void config__value_name(const struct vapro_option *option, char *text, size_t size);

#endif
