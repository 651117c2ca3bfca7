// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A job that loops over computation and MPI_Allreduce, and then does not go on, in the way that its first argument
 * names:
 *
 *   hang HOW [--seconds S] [--before S] [--log DIR] [--pipe FIFO]
 *
 *   receive   the last rank receives what no rank sends, the others are in MPI_Allreduce
 *   missing   the last rank is in MPI_Barrier, the others are in MPI_Allreduce
 *   io        the last rank reads again from a pipe that delivered a byte at first
 *   compute   all ranks compute for a minute: no hang
 *   input     the last rank reads from a pipe before the first collective: no hang
 *   loop      goes on
 *
 * --seconds: sleep before the first call; --before: length of the loop. Each call stands on a source line with its name
 * as a comment.
 */
/* The marks must stay on their lines. */
/* clang-format off */
#include <fcntl.h>
#include <mpi.h>
#include <time.h>

#include "common.h"

static volatile uint64_t sink;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void say_ready(const char *log, int rank)
{
	char path[512];
	FILE *file;

	if (!log)
		return;
	snprintf(path, sizeof(path), "%s/truth.%d", log, rank);
	file = fopen(path, "w");
	if (!file)
		exit(1);
	fprintf(file, "# rank %d pid %d\n", rank, (int)getpid());
	fclose(file);
}

static void read_byte(int fd)
{
	char byte;

	if (read(fd, &byte, 1) < 0) /* read */
		exit(1);
}

/* Loops until rank 0 has done so for long enough; seconds below 0: for ever. */
static void loop(int rank, double seconds)
{
	double end = now() + seconds;
	int more = 1, all = 1;

	while (all) {
		sink = lcg(sink, 2000 * LCG_STEPS_PER_US);
		more = rank || seconds < 0 || now() < end;
		MPI_Allreduce(&more, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD); /* loop */
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "", *log = NULL, *pipe = NULL;
	double seconds = 0, before = 5;
	int rank, size, fd = -1, sum = 1;

	for (int i = 2; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seconds"))
			seconds = number(argv[i], argv[i + 1], 0, 1000);
		else if (!strcmp(argv[i], "--before"))
			before = number(argv[i], argv[i + 1], 0, 1000);
		else if (!strcmp(argv[i], "--log"))
			log = argv[i + 1];
		else if (!strcmp(argv[i], "--pipe"))
			pipe = argv[i + 1];
	}
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (pipe && rank == size - 1)
		fd = open(pipe, O_RDWR); /* so that it never ends */
	say_ready(log, rank);
	wait_for_observer(seconds);

	if (!strcmp(how, "input") && rank == size - 1)
		read_byte(fd);
	if (!strcmp(how, "io") && rank == size - 1) {
		if (write(fd, "x", 1) != 1)
			exit(1);
		read_byte(fd);
	}
	loop(rank, !strcmp(how, "loop") ? -1 : before);
	if (!strcmp(how, "receive") && rank == size - 1)
		MPI_Recv(&sum, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* receive */
	else if (!strcmp(how, "missing") && rank == size - 1)
		MPI_Barrier(MPI_COMM_WORLD); /* missing */
	else if (!strcmp(how, "io") && rank == size - 1)
		read_byte(fd);
	else if (!strcmp(how, "compute"))
		sink = lcg(sink, 60000000 * LCG_STEPS_PER_US);
	MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* others */
	MPI_Finalize();
	return 0;
}
