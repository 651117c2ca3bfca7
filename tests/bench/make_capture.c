// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes a synthetic capture: ranks that loop over computations and allreduces, all alike but for a
 * little jitter, some of them disturbed now and then by a task that takes half of their CPU. It measures
 * the speed, the memory and the size of the output of `vapro analyze`, not its findings. Two runs with
 * the same options write the same bytes.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "config/config_json.h"
#include "report/lines.h"

#define S 1000000000ULL
#define UTC 1800000000000000000ULL /* a bin border */
#define MONO (100 * S)
#define BINS_PER_S (S / VAPRO_BIN_NS)
#define BUSY 0.98	 /* of a bin; the rest lies outside of all calls */
#define COMPUTING 0.8	 /* of the busy time */
#define DISTURBED_BINS 5 /* a disturbance lasts that long */
#define HOG 4711	 /* pid of the disturbing task */
#define IPC_NS 2.0	 /* instructions in a ns */

struct options {
	uint32_t ranks, seconds, bundles, fragments, states, ranks_per_host;
	uint32_t host; /* its number from 1: ranks of this host only; 0: of all */
	double noise, jitter;
	bool counters;
	uint64_t seed;
	const char *job, *path;
};

/* Ranks of the file. */
static uint32_t first_rank(const struct options *options)
{
	return options->host ? (options->host - 1) * options->ranks_per_host : 0;
}

static uint32_t end_rank(const struct options *options)
{
	uint32_t end = options->host ? options->host * options->ranks_per_host : options->ranks;

	return end < options->ranks ? end : options->ranks;
}

struct maker {
	const struct options *options;
	struct stream_sink *sink;
	uint64_t bundles, fragments;
	uint64_t *calls; /* by rank */
	int status;
};

static void usage(FILE *out)
{
	fputs("Usage: make_capture [options] FILE\n"
	      "Writes a synthetic capture for `vapro analyze`. The same options write the same file.\n"
	      "\n"
	      "  --ranks N           ranks of the job (16)\n"
	      "  --seconds N         length of the run (65)\n"
	      "  --bundles N         bundles per rank and second (100)\n"
	      "  --fragments N       fragments in a bundle; 1 = single fragments, each emitted by itself (1)\n"
	      "  --states N          computations in the loop, and as many calls of MPI_Allreduce (4)\n"
	      "  --ranks-per-host N  (64)\n"
	      "  --host N            only the ranks of this host, 1 = the first: captures of all hosts are one job\n"
	      "  --job TEXT          identity of the job (sim:1)\n"
	      "  --counters          with instructions and the CPU's time by stage 1\n"
	      "  --jitter X          relative scatter of durations (0.02)\n"
	      "  --noise X           share of rank-seconds in which another task takes half of the CPU (0)\n"
	      "  --seed N            (1)\n"
	      "Says how many bundles and fragments it wrote, on standard output.\n",
	      out);
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* 0..1, a function of its arguments only: ranks and times need no order. */
static double chance(const struct options *options, uint64_t what, uint64_t a, uint64_t b)
{
	return (double)(mix(options->seed ^ mix(what ^ mix(a ^ mix(b)))) >> 11) * 0x1p-53;
}

static void put(struct maker *maker, const struct stream_event *event)
{
	if (!maker->status)
		maker->status = stream__put(maker->sink, event);
}

static void emit_hello(struct maker *maker, const struct vapro_config *config)
{
	char host[32];
	struct line_hello hello = {
	    .utc_ns = UTC,
	    .host = host,
	    .version = "synthetic",
	    .kernel = "none",
	    .mode = "none",
	    .pmu_available = maker->options->counters,
	    .workload_source = maker->options->counters ? VAPRO_BY_INSTRUCTIONS : VAPRO_BY_ARGUMENTS,
	    .config = config,
	    .clock = {MONO, UTC},
	};
	struct stream_event event = {.type = STREAM_LINE};
	char *line;

	snprintf(host, sizeof(host), "sim%u", first_rank(maker->options) / maker->options->ranks_per_host);
	line = lines__hello(&hello);
	event.line = (struct stream_line){RECORD_OBJECT_hello, line};
	if (line)
		put(maker, &event);
	else
		maker->status = -ENOMEM;
	free(line);
}

static void emit_clock(struct maker *maker, uint64_t ns)
{
	put(maker, &(struct stream_event){.type = STREAM_CLOCK, .clock = {MONO + ns, UTC + ns}});
}

static void name_ranks(struct maker *maker)
{
	const struct options *options = maker->options;
	char host[32];

	for (uint32_t rank = first_rank(options); rank < end_rank(options); rank++) {
		struct stream_event event = {.type = STREAM_THREAD};

		snprintf(host, sizeof(host), "sim%u", rank / options->ranks_per_host);
		event.thread = (struct vapro_thread){
		    .id = rank - first_rank(options),
		    .rank = (int32_t)rank,
		    .world_size = options->ranks,
		    .pid = 10000 + rank,
		    .tid = 10000 + rank,
		    .job = options->job,
		    .host = host,
		};
		put(maker, &event);
		put(maker, &(struct stream_event){.type = STREAM_SEEN, .seen = {rank - first_rank(options), MONO, 0}});
		put(maker, &(struct stream_event){.type = STREAM_PLACE,
						  .place = {.thread = rank - first_rank(options),
							    .cpu = (int32_t)(rank % options->ranks_per_host),
							    .socket = 0,
							    .numa = 0}});
	}
}

/* State 2i is a computation, 2i + 1 the call that ends it. */
static void emit_states(struct maker *maker)
{
	for (uint32_t i = 0; i < 2 * maker->options->states; i++) {
		struct stream_event event = {.type = STREAM_STATE};
		char from[64], to[64];

		snprintf(from, sizeof(from), "sim@0123456789ab+0x%x", 0x1000 + 16 * (i / 2));
		snprintf(to, sizeof(to), "sim@0123456789ab+0x%x", 0x1000 + 16 * ((i / 2 + 1) % maker->options->states));
		event.state = (struct vapro_state){
		    .id = i,
		    .class = i & 1 ? VAPRO_COMMUNICATION : VAPRO_COMPUTATION,
		    .from = i & 1 ? NULL : from,
		    .to = to,
		    .labels = i & 1 ? "bytes=64 comm=0 function=MPI_Allreduce" : "",
		    .common = i & 1 ? "bytes=64 function=MPI_Allreduce" : "",
		    .to_symbol = "solve",
		};
		put(maker, &event);
	}
}

static bool disturbed(const struct options *options, uint32_t rank, uint64_t bin)
{
	return options->noise > 0 && chance(options, 1, rank, bin / DISTURBED_BINS) < options->noise;
}

static void count(struct vapro_bundle *bundle, double on_cpu_ns, double work_ns)
{
	double instructions = IPC_NS * work_ns;

	bundle->magnitude_min[VAPRO_INSTRUCTIONS] = floor(instructions * (bundle->n > 1 ? 0.999 : 1));
	bundle->magnitude_max[VAPRO_INSTRUCTIONS] = floor(instructions * (bundle->n > 1 ? 1.001 : 1));
	bundle->factor[VAPRO_RETIRING] = floor(on_cpu_ns * 0.45);
	bundle->factor[VAPRO_FRONTEND] = floor(on_cpu_ns * 0.1);
	bundle->factor[VAPRO_BAD_SPECULATION] = floor(on_cpu_ns * 0.05);
	bundle->factor[VAPRO_BACKEND] = floor(on_cpu_ns * 0.35);
	bundle->factor[VAPRO_KERNEL] = floor(on_cpu_ns * 0.05);
}

/* n fragments of one state, of each_ns without a disturbance. Returns the end of the last one. */
static uint64_t emit_bundle(struct maker *maker, uint32_t rank, uint32_t state, uint32_t n, uint64_t start_ns,
			    uint64_t end_ns, double each_ns, bool disturbs)
{
	const struct options *options = maker->options;
	struct stream_event event = {.type = STREAM_BUNDLE};
	struct vapro_bundle *bundle = &event.bundle;
	uint64_t call = maker->calls[rank];
	double now_ns = each_ns * (1 + options->jitter * (2 * chance(options, 2, rank, call) - 1));
	bool computes = !(state & 1);

	*bundle = (struct vapro_bundle){.thread = rank - first_rank(options), .state = state, .n = n};
	maker->calls[rank] += n;
	if (computes && options->counters)
		count(bundle, now_ns * n, each_ns);
	if (computes && disturbs) {
		bundle->factor[VAPRO_PREEMPTED] = floor(now_ns * n);
		bundle->factor[VAPRO_INVOLUNTARY_SWITCHES] = n;
		now_ns *= 2;
	}
	if (computes && chance(options, 3, rank, call) < 0.1)
		bundle->factor[VAPRO_MINOR_FAULTS] = 1;
	bundle->start_ns = MONO + start_ns;
	bundle->sum_ns = (uint64_t)(now_ns * n);
	bundle->end_ns = n > 1 ? MONO + end_ns : bundle->start_ns + bundle->sum_ns;
	bundle->min_ns = n > 1 ? (uint64_t)(now_ns * (1 - options->jitter)) : bundle->sum_ns;
	bundle->max_ns = n > 1 ? (uint64_t)(now_ns * (1 + options->jitter)) : bundle->sum_ns;
	bundle->first_call = call;
	bundle->last_call = call + n - 1;
	if (!computes)
		bundle->magnitude_min[VAPRO_BYTES] = bundle->magnitude_max[VAPRO_BYTES] = 64;
	maker->bundles++;
	maker->fragments += n;
	put(maker, &event);
	return bundle->end_ns - MONO;
}

/* Single fragments, one after the other until the bin is full. */
static void emit_singles(struct maker *maker, uint32_t rank, uint64_t from, double compute_ns, double call_ns,
			 bool disturbs)
{
	uint64_t at = from, end = from + (uint64_t)(BUSY * VAPRO_BIN_NS);
	uint32_t state = 0;

	while (at + (uint64_t)compute_ns / 2 < end) {
		at = emit_bundle(maker, rank, state, 1, at, 0, compute_ns, disturbs);
		at = emit_bundle(maker, rank, state + 1, 1, at, 0, call_ns, disturbs);
		state = (state + 2) % (2 * maker->options->states);
	}
}

/* Each state has its bundles, all of which span the bin. */
static void emit_merged(struct maker *maker, uint32_t rank, uint64_t from, uint64_t bundles, double compute_ns,
			double call_ns, bool disturbs)
{
	uint64_t end = from + (uint64_t)(BUSY * VAPRO_BIN_NS);
	uint32_t n = maker->options->fragments, fewer = n / 2 + 1;

	for (uint64_t i = 0; i < bundles; i++) {
		uint32_t state = (uint32_t)(i % (2 * maker->options->states));

		emit_bundle(maker, rank, state, disturbs ? fewer : n, from, end, state & 1 ? call_ns : compute_ns,
			    disturbs);
	}
}

static void emit_bin(struct maker *maker, uint64_t bin)
{
	const struct options *options = maker->options;
	uint64_t from = bin * VAPRO_BIN_NS;
	uint64_t bundles = options->bundles * (bin + 1) / BINS_PER_S - options->bundles * bin / BINS_PER_S;
	double pairs = options->bundles / (double)BINS_PER_S * options->fragments / 2;
	double compute_ns = BUSY * COMPUTING * VAPRO_BIN_NS / pairs, call_ns = compute_ns * (1 - COMPUTING) / COMPUTING;

	for (uint32_t rank = first_rank(options); rank < end_rank(options); rank++) {
		bool disturbs = disturbed(options, rank, bin);

		if (options->fragments > 1)
			emit_merged(maker, rank, from, bundles, compute_ns, call_ns, disturbs);
		else
			emit_singles(maker, rank, from, compute_ns, call_ns, disturbs);
		if (!disturbs)
			continue;
		put(maker, &(struct stream_event){.type = STREAM_INTERFERENCE,
						  .interference = {.thread = rank - first_rank(options),
								   .pid = HOG,
								   .bin = UTC / VAPRO_BIN_NS + bin,
								   .preempted_ns = VAPRO_BIN_NS / 2,
								   .slices = 1,
								   .longest_us = VAPRO_BIN_NS / 2 / 1000,
								   .comm = "hog"}});
	}
}

static void emit_window(struct maker *maker, uint64_t begin_ns, uint64_t end_ns, bool last)
{
	for (uint32_t rank = first_rank(maker->options); rank < end_rank(maker->options); rank++) {
		if (last)
			put(maker,
			    &(struct stream_event){.type = STREAM_SEEN,
						   .seen = {rank - first_rank(maker->options), MONO, MONO + end_ns}});
		put(maker, &(struct stream_event){.type = STREAM_FACTS,
						  .facts = {.pid = 10000 + rank,
							    .job = maker->options->job,
							    .wall_ns = end_ns - begin_ns,
							    .hits = maker->options->bundles,
							    .cost_ns = (end_ns - begin_ns) / 1000}});
	}
	put(maker, &(struct stream_event){.type = STREAM_WINDOW, .window = {UTC + begin_ns, UTC + end_ns, last, 0.1}});
	if (!last)
		emit_clock(maker, end_ns);
}

static void emit_all(struct maker *maker, const struct vapro_config *config)
{
	const struct options *options = maker->options;
	uint64_t begin_ns = 0, end_ns = 15 * S, bins = options->seconds * BINS_PER_S;

	emit_hello(maker, config);
	emit_clock(maker, 0);
	name_ranks(maker);
	emit_states(maker);
	for (uint64_t bin = 0; bin < bins && !maker->status; bin++) {
		emit_bin(maker, bin);
		if ((bin + 1) * VAPRO_BIN_NS < end_ns || bin + 1 == bins)
			continue;
		emit_window(maker, begin_ns, end_ns, false);
		begin_ns = end_ns;
		end_ns += 10 * S;
	}
	emit_window(maker, begin_ns, bins * VAPRO_BIN_NS, true);
	put(maker, &(struct stream_event){.type = STREAM_END});
}

static bool parse_number(const char *text, double least, double *number)
{
	char *end;

	*number = strtod(text, &end);
	return end != text && !*end && *number >= least && *number <= 1e9;
}

static bool parse(struct options *options, int argc, char **argv)
{
	const struct {
		const char *name;
		uint32_t *member;
	} numbers[] = {
	    {"--ranks", &options->ranks},     {"--seconds", &options->seconds},
	    {"--bundles", &options->bundles}, {"--fragments", &options->fragments},
	    {"--states", &options->states},   {"--ranks-per-host", &options->ranks_per_host},
	    {"--host", &options->host},
	};
	const struct {
		const char *name;
		double *member;
	} shares[] = {{"--jitter", &options->jitter}, {"--noise", &options->noise}};
	double number;

	for (int i = 1; i < argc; i++) {
		bool known = false;

		if (!strcmp(argv[i], "--counters")) {
			options->counters = true;
			continue;
		}
		if (argv[i][0] != '-') {
			options->path = argv[i];
			continue;
		}
		for (size_t k = 0; i + 1 < argc && k < sizeof(numbers) / sizeof(*numbers); k++) {
			if (strcmp(argv[i], numbers[k].name))
				continue;
			known = parse_number(argv[i + 1], 1, &number);
			*numbers[k].member = known ? (uint32_t)number : 1;
		}
		for (size_t k = 0; i + 1 < argc && k < sizeof(shares) / sizeof(*shares); k++) {
			if (strcmp(argv[i], shares[k].name))
				continue;
			known = parse_number(argv[i + 1], 0, &number) && number < 1;
			*shares[k].member = known ? number : 0;
		}
		if (i + 1 < argc && !strcmp(argv[i], "--seed")) {
			known = parse_number(argv[i + 1], 0, &number);
			options->seed = known ? (uint64_t)number : 0;
		}
		if (i + 1 < argc && !strcmp(argv[i], "--job")) {
			options->job = argv[i + 1];
			known = true;
		}
		if (!known)
			return false;
		i++;
	}
	return options->path && first_rank(options) < options->ranks;
}

int main(int argc, char **argv)
{
	struct options options = {.ranks = 16,
				  .seconds = 65,
				  .bundles = 100,
				  .fragments = 1,
				  .states = 4,
				  .ranks_per_host = 64,
				  .jitter = 0.02,
				  .seed = 1,
				  .job = "sim:1"};
	struct maker maker = {.options = &options};
	struct vapro_config config;
	char *tunables;
	int status;

	if (!parse(&options, argc, argv)) {
		usage(stderr);
		return 2;
	}
	config__init(&config);
	/* a capture of each host would have its own hello */
	if (!options.host)
		config.memory_cap *= (options.ranks + options.ranks_per_host - 1) / options.ranks_per_host;
	tunables = config__to_text(&config);
	maker.calls = calloc(options.ranks, sizeof(*maker.calls));
	maker.sink = tunables && maker.calls ? capture__create(options.path, tunables) : NULL;
	if (!maker.sink) {
		fprintf(stderr, "make_capture: cannot write %s: %s\n", options.path, strerror(errno));
		return 1;
	}
	emit_all(&maker, &config);
	status = stream__close(maker.sink);
	if (!maker.status)
		maker.status = status;
	free(tunables);
	free(maker.calls);
	if (maker.status) {
		fprintf(stderr, "make_capture: %s: %s\n", options.path, strerror(-maker.status));
		return 1;
	}
	printf("%llu bundles %llu fragments\n", (unsigned long long)maker.bundles, (unsigned long long)maker.fragments);
	return 0;
}
