// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * move_probes RUNG PID...: probes the MPI functions of the processes as vaprod does, then moves each probe between its
 * site and its function's entry, one after the other, until the processes have ended: calls are in flight
 * at every move. Prints a line when all are attached, and at the end how often probes were moved, how many calls were
 * seen, and how many calls of exactly counted functions lack a return.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vapro/config.h>

#include "probe/attach/attacher.h"
#include "probe/attach/mpi_image.h"
#include "functions/functions.h"
#include "probe/elf/mpi_files.h"
#include "probe/elf/reader.h"

/* Calls that enter between two moves are in flight at the next one, during which none is seen; perf links take long. */
#define BETWEEN_US 5000
#define BETWEEN_PERF_US 200000

static int fail(const char *what)
{
	fprintf(stderr, "move_probes: %s\n", what);
	return 1;
}

static int attach(struct kernel_side *side, struct attacher *attacher, pid_t pid, uint32_t slot)
{
	struct bpf_process_state tracked = {.slot = slot};
	const struct process_mapping *library = NULL;
	const struct attached_image *image;
	struct mpi_files *files = mpi_files__new();
	struct process *process;
	char err[512];
	int status = process__read(pid, &process, err, sizeof(err));

	if (status || !files)
		return fail(err);
	if (mpi_files__look(files, process, false, err, sizeof(err)))
		fail(err);
	mpi_files__free(files);
	if (process__mpi(process, &library) == PROCESS_MPICH)
		tracked.flags |= KERNEL_PROCESS_MPICH;
	if (!library)
		status = fail("a process has no MPI library");
	else if (kernel_side__track(side, pid, &tracked))
		status = fail("a process cannot be tracked");
	else if (attacher__attach(attacher, process, library, true, &(struct functions_spared){0}, &image, err,
				  sizeof(err)))
		status = fail(err);
	process__free(process);
	return status;
}

static bool any_alive(char **pids)
{
	for (; *pids; pids++)
		if (!kill(atoi(*pids), 0))
			return true;
	return false;
}

/* Moves each probe that is not at its function's entry there and back; others are linked again. */
static unsigned long move_all(struct attacher *attacher, char **pids, useconds_t between)
{
	unsigned long moves = 0;

	for (size_t i = 0; i < attacher->base.count; i++) {
		struct mpi_image *image = attacher__image(attacher, i);

		for (size_t j = 0; j < image->probe_count && any_alive(pids); j++) {
			struct probe *probe = &image->probes[j], at = *probe;

			if (at.offset == at.entry && strcmp(at.name, "MPI_Waitall") && strcmp(at.name, "MPI_Allreduce"))
				continue;
			mpi_image__move(attacher, image, probe, at.entry, SITE_STEPPED);
			usleep(between);
			mpi_image__move(attacher, image, probe, at.offset, at.class);
			usleep(between);
			moves += 2;
		}
	}
	return moves;
}

static void report(const struct attacher *attacher, unsigned long moves)
{
	int64_t calls = 0, missing = 0;

	for (uint32_t row = 0; row < function_row_count; row++) {
		const struct kernel_function_counters *per_cpu = attachments__counters(&attacher->base, row);

		for (uint32_t cpu = 0; per_cpu && cpu < attacher->base.cpus; cpu++) {
			calls += (int64_t)(per_cpu[cpu].enter + per_cpu[cpu].calls);
			missing += (int64_t)(per_cpu[cpu].enter - per_cpu[cpu].exit - per_cpu[cpu].vanished);
		}
	}
	printf("{\"moves\":%lu,\"calls\":%" PRId64 ",\"missing\":%" PRId64 "}\n", moves, calls, missing);
}

int main(int argc, char **argv)
{
	struct vapro_config config;
	struct kernel_side *side;
	struct attacher *attacher;
	unsigned long moves = 0;
	char err[512];
	int status;

	reader__main(argc, argv);
	config__init(&config);
	if (argc < 3)
		return fail("usage: move_probes session|multi|perf PID...");
	if (config__set(&config, "attach", argv[1], err, sizeof(err)))
		return fail(err);
	side = kernel_side__load(&config, NULL, err, sizeof(err), &status);
	attacher = side ? attacher__new(side, 0) : NULL;
	if (!attacher)
		return fail(side ? "out of memory" : err);
	/* when a process ends the open calls of its threads are counted */
	if (kernel_side__watch_tasks(side, err, sizeof(err)))
		return fail(err);
	for (int i = 2; i < argc; i++)
		if (attach(side, attacher, atoi(argv[i]), (uint32_t)i - 1))
			return 1;
	puts("{\"ready\":true}");
	fflush(stdout);
	while (any_alive(argv + 2))
		moves += move_all(attacher, argv + 2, strcmp(argv[1], "perf") ? BETWEEN_US : BETWEEN_PERF_US);
	report(attacher, moves);
	attacher__pause(attacher);
	attacher__free(attacher);
	kernel_side__free(side);
	return 0;
}
