// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The target of `make bench`: an MPI program of one rank that times one kind of call on request.
 *
 *   calls [--cpu N]      prints {"ready":true,"pid":P}, then answers each line
 *
 *   WHAT CALLS BATCHES [STEPS]   with {"least_ns":..,"median_ns":..,"mean_ns":..,"calls":..}, each per call
 *   cold WHAT CALLS BYTES [US]   with the same of calls one by one, before each a walk through so much memory, again
 * and again for US microseconds
 *
 * A batch is CALLS calls in a loop; with STEPS each is followed by so many steps of fixed work
 * (common.h), so that the rate of calls can be chosen. All calls are valid ones that cost little.
 */
#include <getopt.h>
#include <fcntl.h>
#include <mpi.h>

#include "common.h"
#include "truth.h"

#define BATCHES_MAX 4096
#define WALK_LINES 64 /* between two looks at the clock */

static char byte;
static MPI_Request none = MPI_REQUEST_NULL;
static int zero_file;

static void send_to_nobody(void)
{
	MPI_Send(&byte, 1, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
}

/* The same without a wrapper of MPI_Send, where there is one. */
static void psend_to_nobody(void)
{
	PMPI_Send(&byte, 1, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
}

static void wait_for_none(void)
{
	MPI_Waitall(1, &none, MPI_STATUSES_IGNORE);
}

static void test_none(void)
{
	int flag;

	MPI_Test(&none, &flag, MPI_STATUS_IGNORE);
}

/* A message to itself: two posts and their completion, as programs that exchange do. */
static void exchange(void)
{
	MPI_Request both[2];
	static char out, in;

	MPI_Irecv(&in, 1, MPI_BYTE, 0, 7, MPI_COMM_SELF, &both[0]);
	MPI_Isend(&out, 1, MPI_BYTE, 0, 7, MPI_COMM_SELF, &both[1]);
	MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static void read_zero(void)
{
	if (read(zero_file, &byte, 1) != 1)
		exit(1);
}

static void nothing(void)
{
	__asm__ volatile("" ::: "memory");
}

static const struct {
	const char *name;
	void (*call)(void);
} kinds[] = {
    {"send", send_to_nobody}, {"psend", psend_to_nobody}, {"waitall", wait_for_none}, {"test", test_none},
    {"exchange", exchange},   {"read", read_zero},	  {"nothing", nothing},
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Prints the durations of the calls of each of `batches`, ns per call; they are sorted. */
static void report(double *each, unsigned int batches, uint64_t calls)
{
	double sum = 0;

	for (unsigned int i = 0; i < batches; i++)
		sum += each[i];
	qsort(each, batches, sizeof(each[0]), by_value);
	printf("{\"least_ns\":%.2f,\"median_ns\":%.2f,\"mean_ns\":%.2f,\"calls\":%llu}\n", each[0], each[batches / 2],
	       sum / batches, (unsigned long long)(calls * batches));
}

static double each[BATCHES_MAX];

static void measure(void (*call)(void), uint64_t calls, unsigned int batches, uint64_t steps)
{
	volatile uint64_t keep = 1;

	for (unsigned int i = 0; i < batches; i++) {
		uint64_t begin = now_ns();

		for (uint64_t j = 0; j < calls; j++) {
			call();
			if (steps)
				keep = lcg(keep, steps);
		}
		each[i] = (double)(now_ns() - begin) / (double)calls;
	}
	report(each, batches, calls);
}

/* Times calls as programs make them: with caches that are full of other data. */
static int measure_cold(void (*call)(void), unsigned int calls, uint64_t bytes, uint64_t walk_ns)
{
	volatile char *memory = calloc(1, bytes);
	uint64_t at = 0;

	if (!memory)
		return 1;
	for (unsigned int i = 0; i < calls; i++) {
		uint64_t begin = now_ns();

		do {
			for (uint64_t line = 0; line < bytes / 64 && line < WALK_LINES; line++, at = (at + 64) % bytes)
				memory[at]++;
		} while (walk_ns ? now_ns() - begin < walk_ns : at);
		begin = now_ns();
		call();
		each[i] = (double)(now_ns() - begin);
	}
	free((char *)memory);
	report(each, calls, 1);
	return 0;
}

static void (*kind_of(const char *name))(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return kinds[i].call;
	return NULL;
}

/* 0; 2: the line is unknown. */
static int obey(const char *line)
{
	unsigned long long calls, amount = 0, walk_us = 0;
	unsigned int batches;
	char name[32];

	if (sscanf(line, "cold %31s %u %llu %llu", name, &batches, &amount, &walk_us) >= 3) {
		if (!kind_of(name) || !batches || batches > BATCHES_MAX || !amount || amount % 64)
			return 2;
		return measure_cold(kind_of(name), batches, amount, walk_us * 1000);
	}
	if (sscanf(line, "%31s %llu %u %llu", name, &calls, &batches, &amount) < 3 || !kind_of(name) || !calls ||
	    !batches || batches > BATCHES_MAX)
		return 2;
	measure(kind_of(name), calls, batches, amount);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"cpu", required_argument, NULL, 'c'}, {NULL, 0, NULL, 0}};
	char line[256];
	int option, status;

	MPI_Init(&argc, &argv);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option != 'c')
			return 2;
		pin((int)number("--cpu", optarg, 0, 1e4));
	}
	zero_file = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		status = obey(line);
		if (status)
			return status;
		fflush(stdout);
	}
	MPI_Finalize();
	return 0;
}
