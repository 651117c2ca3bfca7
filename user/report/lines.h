/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lines that are no result of a window: hello, process, warning, stage, bye. Each function makes of plain
 * facts one line of NDJSON without its newline, malloc'ed; NULL when out of memory. Texts that
 * are NULL and costs that are NAN become null.
 */
#ifndef VAPRO_REPORT_LINES_H
#define VAPRO_REPORT_LINES_H

#include <vapro/analysis.h>
#include "base/job_names.h"
#include "capture/stream.h"

struct line_counter {
	const char *name;     /* "instructions" */
	const char *provider; /* hardware, clock, none */
	bool available;
	const char *reason; /* why unavailable; NULL where available */
};

/* Extra cost of hits, ns, after a pause of their thread from hits of from_ns or more. */
struct line_pause {
	double from_ns;
	double entry_ns, return_ns;
};

/* Costs calibrated at start, ns per hit; NAN where not measured. */
struct line_costs {
	double entry_ns, return_ns; /* probes on an emulated instruction */
	double nop5_ns;		    /* probes on a nop5 */
	double syscall_ns;	    /* a traced system call */
	double bystander_ns;	    /* a system call of another process */
	double beside_ns;	    /* a link of another process at the sites of a call */
	double sample_ns;	    /* a sample inside slow computation; NAN: none is taken */
	const struct line_pause *pauses;
	uint32_t pause_count;
};

/* A way to attach. */
struct line_mode {
	const char *name;
	bool works;
	const char *reason; /* why it fails or was not tried; NULL where it works */
};

/* A factor that the operating system reports beyond the scheduler's switches. */
struct line_factor {
	const char *name, *source;
	bool available, approx;
	const char *reason; /* why unavailable, or a note; NULL: none */
};

struct line_hello {
	uint64_t utc_ns; /* now */
	const char *host;
	const char *version, *kernel, *mode;
	bool pmu_available;
	const char *pmu_reason; /* why unavailable */
	const struct line_counter *counters;
	uint32_t counter_count;
	enum vapro_workload_source workload_source;
	const struct line_costs *costs; /* NULL: none (replay) */
	const struct vapro_config *config;
	struct stream_clock clock;
	const struct line_mode *modes;
	uint32_t mode_count;
	const struct line_factor *factors;
	uint32_t factor_count; /* 0: none (replay) */
};

struct line_skipped {
	const char *function, *reason;
};

struct line_image {
	const char *path, *build_id;
	uint32_t functions; /* functions probed */
	uint32_t shifted;   /* functions probed at entry + k */
	const struct line_skipped *skipped;
	uint32_t skipped_count;
};

enum line_process_state { LINE_ATTACHED, LINE_DETACHED, LINE_REFUSED, LINE_EXITED };

struct line_process {
	uint64_t utc_ns;
	const char *host;
	uint32_t pid;
	uint64_t start_utc_ns; /* start of the process; 0 where unknown */
	const char *exe, *build_id;
	const char *command;			  /* its command line; NULL unknown */
	const char *user_name;			  /* NULL unknown */
	int32_t rank;				  /* -1 where unknown: null */
	uint32_t world_size;			  /* 0 where unknown: null */
	const char *job_kind, *job_id, *job_step; /* slurm, 1234, 0 */
	const char *job;			  /* the identity that records call `job` */
	uint32_t user;				  /* as in struct vapro_thread */
	const struct job_names *names;		  /* what people call the job; NULL unknown */
	uint32_t threads;
	const struct line_image *images;
	uint32_t image_count;
	uint64_t hits, returns; /* of probes at entries, and at returns and exits */
	double attach_cpu_ms;	/* CPU time of vaprod and its readers so far, to read its images and set its probes */
	enum line_process_state state;
	const char *reason;
};

struct line_warning {
	uint64_t utc_ns;
	const char *host;
	const char *code; /* stable, for programs: "ring_full" */
	const char *text; /* a sentence, for people */
	uint32_t pid;	  /* 0: no process */
	uint64_t count;	  /* of equal ones that the record stands for; 0: this one */
};

/* Events counted from now on and why, or events that cannot be counted. */
struct line_stage {
	uint64_t utc_ns;
	const char *host;
	uint32_t stage;
	const char *expand;    /* NULL at stage 1 */
	const char *job;       /* NULL at stage 1 */
	uint64_t variance;     /* 0 at stage 1 */
	const char *events;    /* joined by commas; NULL where refused */
	const char *refused;   /* why not counted; NULL: counted */
	uint64_t uncounted_ns; /* time without counting before this stage */
};

struct line_totals {
	uint64_t windows, variances, alarms, bundles, fragments;
	uint64_t lost[VAPRO_LOSSES];
	uint64_t lost_lines;	 /* lines that the output lost */
	uint64_t refused;	 /* bundles that contradicted themselves */
	uint64_t untracked_hits; /* hits of probes in processes that were not tracked, or not yet */
};

struct line_bye {
	uint64_t utc_ns;
	const char *host;
	struct line_totals totals;
	const char *reason; /* signal, targets_gone, end_of_input, error: ... */
};

char *lines__hello(const struct line_hello *hello);
char *lines__process(const struct line_process *process);
char *lines__warning(const struct line_warning *warning);
char *lines__stage(const struct line_stage *stage);
char *lines__bye(const struct line_bye *bye);

/* Returns "arguments" or "instructions". */
const char *lines__workload_source(enum vapro_workload_source source);

#endif
