// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Probes on demand, for `make bench`: one function's entry and return probed by an empty program or by
 * vaprod's own, and many functions at once, timed. Lines in, one JSON line out for each:
 *
 *   costs                          what calibrate__run measures
 *   track PID...                   tracks these processes: their threads get state
 *   pair empty|ours LIB NAME PID   probes entry and return of a function of LIB in one process (0: in all), or of
 *                                  several: NAME,NAME...
 *   many LIB COUNT [PID...]        probes COUNT functions by vaprod's programs: in all processes by one link,
 *                                  or one link for each PID
 *   syscalls empty|ours            the system-call tracepoints, which every process of the node passes
 *   off                            removes all probes
 *   counts                         the counts of the tracked processes; what their hits since the last counts cost by
 * the model, after `costs`
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vapro/config.h>

#include "base/clock.h"
#include "collect/callsites.h"
#include "collect/labels.h"
#include "collect/pool_reader.h"
#include "overhead/calibrate.h"
#include "functions/functions.h"
#include "probe/elf/site.h"
#include "probe/elf/mpi_files.h"
#include "probe/elf/reader.h"
#include "target/image.h"
#include "target/process.h"
#include "probe/bpf/kernel_side.h"
#include "collect/image_cache.h"

#define SITES_MAX 1024
#define LINKS_MAX 1024

struct sites {
	uint64_t offsets[SITES_MAX], cookies[SITES_MAX];
	uint32_t count, wanted;
	const char *name; /* NULL: any MPI function */
	struct image *image;
	struct site last;
};

static struct kernel_side *side;
static struct costs costs;
static struct kernel_link *links[LINKS_MAX];
static size_t link_count;
static uint32_t tracked;
static int empty = -1;
static int tracepoints[2] = {-1, -1};

static const struct bpf_insn nothing[] = {
    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
    {.code = BPF_JMP | BPF_EXIT},
};

static double ms_now(void)
{
	return (double)mono_now() * 1e-6;
}

static int failed(const char *what, int status)
{
	printf("{\"error\":\"%s: %s\"}\n", what, strerror(-status));
	return status;
}

static bool has_offset(const struct sites *sites, uint64_t offset)
{
	for (uint32_t i = 0; i < sites->count; i++)
		if (sites->offsets[i] == offset)
			return true; /* MPI_X and PMPI_X */
	return false;
}

static int collect(const struct image_symbol *symbol, void *ctx)
{
	struct sites *sites = ctx;
	int row = functions__find(symbol->name);
	struct site site;

	if (!symbol->dynamic || (sites->name ? strcmp(symbol->name, sites->name) : strncmp(symbol->name, "MPI_", 4)))
		return 0;
	site__choose(sites->image, symbol, row >= 0 ? functions__arguments(&function_rows[row]) : 0, &site);
	if (site.class != SITE_EMULATED || has_offset(sites, site.offset))
		return 0;
	sites->last = site;
	sites->offsets[sites->count] = site.offset;
	/* as the attacher has them */
	sites->cookies[sites->count] =
	    row >= 0 ? (uint64_t)row | functions__plain(&function_rows[row]) : KERNEL_FUNCTIONS - 2;
	if (site.shift)
		sites->cookies[sites->count] |= KERNEL_SITE_COUNTED;
	sites->count++;
	return sites->count >= sites->wanted;
}

/* Rows as the attacher reports them to the kernel side. */
static void emit_rows(const struct sites *sites)
{
	int map = kernel_side__map(side, KERNEL_MAP_FUNCTIONS);

	for (uint32_t i = 0; i < sites->count; i++) {
		uint32_t row = (uint32_t)sites->cookies[i] & KERNEL_SITE_ROW;
		struct bpf_function_state function = {.known = 1, .class = VAPRO_COMMUNICATION};

		if (row < function_row_count)
			function.roles = function_rows[row].roles;
		bpf_map_update_elem(map, &row, &function, BPF_ANY);
	}
}

static int find_sites(const char *path, const char *name, uint32_t wanted, struct sites *sites)
{
	char err[256];
	int status;

	memset(sites, 0, sizeof(*sites));
	sites->name = name;
	sites->wanted = wanted < SITES_MAX ? wanted : SITES_MAX;
	sites->image = image__open(path, err, sizeof(err));
	if (!sites->image)
		return -ENOENT;
	status = image__functions(sites->image, false, collect, sites);
	image__free(sites->image);
	return status < 0 ? status : sites->count ? 0 : -ENOENT;
}

static int load_empty(void)
{
	enum attach_mode mode = kernel_side__mode(side);
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		    .expected_attach_type = (enum bpf_attach_type)(mode == ATTACH_MODE_SESSION ? ATTACH_UPROBE_SESSION
								   : mode == ATTACH_MODE_MULTI ? ATTACH_UPROBE_MULTI
											       : 0));

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "bench_empty", "GPL", nothing, sizeof(nothing) / sizeof(nothing[0]),
			     &options);
}

static int add_link(const char *path, const struct sites *from, pid_t pid, bool with_empty)
{
	const struct mode_programs programs = {.session = empty, .entry = empty, .exited = empty};
	struct kernel_sites sites = {
	    .path = path, .offsets = from->offsets, .cookies = from->cookies, .count = from->count, .pid = pid};
	int status;

	if (link_count == LINKS_MAX)
		return -ENOSPC;
	if (with_empty)
		status = modes__open(kernel_side__mode(side), &programs, &sites, &links[link_count]);
	else
		status = kernel_side__link(side, &sites, &links[link_count]);
	if (!status)
		link_count++;
	return status;
}

static double take_out(void)
{
	double begin = ms_now();

	while (link_count)
		kernel_side__unlink(side, links[--link_count]);
	kernel_side__watch_syscalls(side, false);
	for (int i = 0; i < 2; i++) {
		if (tracepoints[i] >= 0)
			close(tracepoints[i]);
		tracepoints[i] = -1;
	}
	kernel_side__finalize(side);
	/* calls that were open at this time have no end */
	(*kernel_side__shared(side)->generation)++;
	return ms_now() - begin;
}

static int pair(char *words)
{
	char what[16], path[512], names[512], *rest = names, *name;
	static struct sites sites;
	int pid, status;

	if (sscanf(words, "%15s %511s %511s %d", what, path, names, &pid) != 4)
		return failed("pair", -EINVAL);
	take_out();
	while ((name = strsep(&rest, ","))) {
		status = find_sites(path, name, 1, &sites);
		if (status)
			return failed(name, status);
		emit_rows(&sites);
		status = add_link(path, &sites, pid, !strcmp(what, "empty"));
		if (status)
			return failed("link", status);
	}
	printf("{\"shift\":%u,\"class\":\"%s\",\"instruction\":\"%s\"}\n", sites.last.shift,
	       site_class_name[sites.last.class], sites.last.instruction);
	return 0;
}

/* Attaches an empty program to a tracepoint of the kernel. Returns a descriptor to close, or -errno. */
static int empty_at(const char *name)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_RAW_TP);
	int program, link, id = libbpf_find_vmlinux_btf_id(name, BPF_TRACE_RAW_TP);

	if (id < 0)
		return id;
	options.attach_btf_id = (uint32_t)id;
	program = bpf_prog_load(BPF_PROG_TYPE_TRACING, "bench_empty", "GPL", nothing,
				sizeof(nothing) / sizeof(nothing[0]), &options);
	if (program < 0)
		return program;
	link = bpf_raw_tracepoint_open(NULL, program);
	close(program);
	return link;
}

static int syscalls(const char *what)
{
	int status = 0;

	take_out();
	if (!strncmp(what, "ours", 4)) {
		status = kernel_side__watch_syscalls(side, true);
	} else {
		tracepoints[0] = empty_at("sys_exit");
		tracepoints[1] = empty_at("sys_enter");
		for (int i = 0; i < 2 && !status; i++)
			status = tracepoints[i] < 0 ? tracepoints[i] : 0;
	}
	return status ? failed("syscalls", status) : puts("{}") < 0;
}

static int many(char *words)
{
	static struct sites sites;
	char path[512], *at;
	unsigned int count;
	int read = 0, status;
	double begin;

	if (sscanf(words, "%511s %u%n", path, &count, &read) != 2)
		return failed("many", -EINVAL);
	take_out();
	status = find_sites(path, NULL, count, &sites);
	if (status)
		return failed(path, status);
	emit_rows(&sites);
	begin = ms_now();
	at = strtok(words + read, " \n");
	if (!at)
		status = add_link(path, &sites, 0, false);
	for (; at && !status; at = strtok(NULL, " \n"))
		status = add_link(path, &sites, atoi(at), false);
	if (status)
		return failed("link", status);
	printf("{\"functions\":%u,\"links\":%zu,\"attach_ms\":%.3f}\n", sites.count, link_count, ms_now() - begin);
	return 0;
}

/* What the kernel side knows of a process's handles. */
static int emit_handles(pid_t pid)
{
	struct image_cache *cache = image_cache__new(NULL);
	struct mpi_files *files = mpi_files__new();
	struct callsites *callsites = NULL;
	struct process *process = NULL;
	char err[256];
	int status = process__read(pid, &process, err, sizeof(err));

	if (!status && files)
		status = mpi_files__look(files, process, false, err, sizeof(err));
	if (!status && cache)
		callsites = callsites__new(cache, process);
	if (callsites)
		labels__push_handles(callsites, kernel_side__map(side, KERNEL_MAP_HANDLES), pid,
				     process__mpi(process, NULL));
	callsites__free(callsites);
	image_cache__free(cache);
	mpi_files__free(files);
	process__free(process);
	return status;
}

static int track(char *words)
{
	for (char *at = strtok(words, " \n"); at; at = strtok(NULL, " \n")) {
		struct bpf_process_state process = {.slot = tracked};
		int status = emit_handles(atoi(at));

		if (!status)
			status = kernel_side__track(side, atoi(at), &process);
		if (status)
			return failed(at, status);
		tracked++;
	}
	(*kernel_side__shared(side)->generation)++;
	printf("{\"tracked\":%u}\n", tracked);
	return 0;
}

static int measure_costs(void)
{
	char err[256];
	int status = calibrate__run(side, true, &costs, err, sizeof(err));

	if (status)
		return failed(err, status);
	printf("{\"rung\":\"%s\",\"entry_ns\":%.1f,\"call_ns\":%.1f,\"stepped_call_ns\":%.1f,\"nop5_ns\":%.1f,"
	       "\"syscall_ns\":%.1f,\"bystander_ns\":%.1f}\n",
	       attach_mode_name[kernel_side__mode(side)], costs.entry_ns, costs.call_ns, costs.stepped_call_ns,
	       costs.nop5_ns, costs.syscall_ns, costs.bystander_ns);
	return 0;
}

static int counts(void)
{
	const struct kernel_counters *all = kernel_side__shared(side)->counters;
	struct kernel_counters sum = {0};
	uint64_t lost = 0;
	static struct kernel_counters before[KERNEL_SLOTS];
	double cost = 0;

	for (uint32_t i = 0; i < tracked; i++) {
		struct kernel_counters now = all[i], hits;

		costs__hits_since(&now, &before[i], &hits);
		cost += costs__of(&costs, &hits);
		before[i] = now;
		sum.enter += all[i].enter;
		sum.exit += all[i].exit;
		sum.emitted += all[i].emitted;
		for (int cause = 0; cause < 16; cause++)
			lost += all[i].lost[cause];
	}
	printf("{\"enter\":%llu,\"exit\":%llu,\"emitted\":%llu,\"lost\":%llu,\"cost_ns\":%.0f}\n",
	       (unsigned long long)sum.enter, (unsigned long long)sum.exit, (unsigned long long)sum.emitted,
	       (unsigned long long)lost, cost);
	return 0;
}

static int discard(void *ctx, void *data, size_t size)
{
	(void)ctx;
	(void)data;
	(void)size;
	return 0;
}

static bool take_bundle(void *ctx, const struct kernel_bundle_key *key, const struct kernel_bundle *bundle)
{
	(void)ctx;
	(void)key;
	(void)bundle;
	return true;
}

/* Records are not analysed here; their maps must not fill up. */
static void empty_maps(struct ring_buffer *ring, struct pool_reader *pool)
{
	ring_buffer__consume(ring);
	pool_reader__read(pool, (uint32_t)(utc_now() / KERNEL_BIN_NS - 1), take_bundle, NULL);
}

static int obey(char *line)
{
	if (!strncmp(line, "costs", 5))
		return measure_costs();
	if (!strncmp(line, "track ", 6))
		return track(line + 6);
	if (!strncmp(line, "pair ", 5))
		return pair(line + 5);
	if (!strncmp(line, "many ", 5))
		return many(line + 5);
	if (!strncmp(line, "syscalls ", 9))
		return syscalls(line + 9);
	if (!strncmp(line, "counts", 6))
		return counts();
	if (!strncmp(line, "off", 3))
		return printf("{\"detach_ms\":%.3f}\n", take_out()) < 0;
	return failed("no such command", -EINVAL);
}

int main(int argc, char **argv)
{
	struct vapro_config config;
	struct ring_buffer *ring;
	struct pool_reader *pool;
	static char line[16384];
	char err[512];
	int status;

	reader__main(argc, argv); /* files are read in a confined child: this program again */
	config__init(&config);
	side = kernel_side__load(&config, NULL, err, sizeof(err), &status);
	if (!side) {
		fprintf(stderr, "probes: %s\n", err);
		return status;
	}
	empty = load_empty();
	ring = ring_buffer__new(kernel_side__map(side, KERNEL_MAP_RING), discard, NULL, NULL);
	*kernel_side__shared(side)->utc_offset_ns = utc_now() - mono_now();
	pool = pool_reader__new(side, utc_now());
	if (empty < 0 || !ring || !pool || kernel_side__watch_tasks(side, err, sizeof(err))) {
		fprintf(stderr, "probes: %s\n", strerror(errno));
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		obey(line);
		fflush(stdout);
		empty_maps(ring, pool);
	}
	take_out();
	pool_reader__free(pool);
	ring_buffer__free(ring);
	kernel_side__free(side);
	return 0;
}
