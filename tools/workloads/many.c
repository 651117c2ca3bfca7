// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Many processes or threads of one user, for what is shared out by owner and for what comes and goes:
 *
 *	many hold LIBRARY COUNT
 *		COUNT processes that map LIBRARY as code and sleep
 *	many maps LIBRARY COUNT
 *		COUNT processes that map LIBRARY as code as often as the kernel allows, and sleep
 *	many peers LIBRARY COUNT SECONDS [CALLS]
 *		COUNT processes that each make CALLS (50) calls of MPI_Send of LIBRARY every 20 ms, each with a peer
 *		that was never used before: each call is a new state
 *	many ranks LIBRARY COUNT SECONDS
 *		COUNT ranks of one job that compute for some 5 ms between two calls
 *	many threads LIBRARY COUNT SECONDS
 *		one process of COUNT threads that each make 20 calls; prints "calls N" at its end
 *	many execs LIBRARY COUNT SECONDS
 *		one process that makes a call and executes itself again, COUNT times; prints "execs N" at its end
 *
 * LIBRARY is a file named like an MPI library (stand_in.c), MPI is not begun. All end with the first process.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int (*send_function)(void *buffer, int count, void *type, int peer, int tag, void *comm);

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static send_function open_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	send_function function = NULL;

	if (library)
		*(void **)&function = dlsym(library, "MPI_Send");
	if (!function) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return function;
}

static void hold(const char *path)
{
	int file = open(path, O_RDONLY);
	struct stat st;

	if (file < 0 || fstat(file, &st) ||
	    mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	for (;;)
		pause();
}

static void map_often(const char *path)
{
	int file = open(path, O_RDONLY);
	unsigned long count = 0;

	/* all begin at the first page of the file, so that neighbours do not become one mapping */
	while (file >= 0 && mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) != MAP_FAILED)
		count++;
	if (count < 1000) {
		perror(path);
		exit(1);
	}
	for (;;)
		pause();
}

static void call_peers(const char *path, double seconds, int in_a_row)
{
	send_function send = open_library(path);
	unsigned peer = (unsigned)getpid() * 2654435761U;
	char byte = 0;

	for (double end = now() + seconds; now() < end; usleep(20000))
		for (int i = 0; i < in_a_row; i++)
			send(&byte, 1, NULL, (int)(peer++ & 0x7fffffff), 1, NULL);
}

static void compute(const char *path, double seconds)
{
	send_function send = open_library(path);
	volatile double sum = 0;
	char byte = 0;

	for (double end = now() + seconds; now() < end; send(&byte, 1, NULL, 1, 1, NULL))
		for (int i = 0; i < 2500000; i++)
			sum += i;
}

#define THREAD_CALLS 20

static send_function thread_send;
static double thread_rest_s;
static unsigned long calls;

static void *call_and_rest(void *unused)
{
	char byte = 0;

	(void)unused;
	for (int i = 0; i < THREAD_CALLS; i++) {
		thread_send(&byte, 1, NULL, 1, 1, NULL);
		__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
		usleep((useconds_t)(thread_rest_s * 1e6));
	}
	return NULL;
}

static int run_threads(const char *path, int count, double seconds)
{
	pthread_t *threads = calloc((size_t)count, sizeof(*threads));
	pthread_attr_t attributes;
	int started = 0;

	thread_send = open_library(path);
	thread_rest_s = seconds / THREAD_CALLS;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	while (threads && started < count && !pthread_create(&threads[started], &attributes, call_and_rest, NULL))
		started++;
	for (int i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	printf("calls %lu\n", calls);
	return started != count;
}

/* The argument behind the time is the number of the execution. */
static int run_execs(char **argv, int argc)
{
	int number = argc > 5 ? atoi(argv[5]) : 0, count = atoi(argv[3]);
	char byte = 0, text[16];

	open_library(argv[2])(&byte, 1, NULL, 1, 1, NULL);
	usleep((useconds_t)(atof(argv[4]) * 1e6 / count));
	if (number < count) {
		snprintf(text, sizeof(text), "%d", number + 1);
		execl(argv[0], argv[0], argv[1], argv[2], argv[3], argv[4], text, NULL);
		return 1;
	}
	printf("execs %d\n", number);
	return 0;
}

/* A rank's environment is read where a program begins: each rank executes this one again. */
static void begin_rank(char **argv, int rank)
{
	char text[32];

	snprintf(text, sizeof(text), "many-ranks-%d", (int)getppid());
	setenv("PMIX_NAMESPACE", text, 1);
	snprintf(text, sizeof(text), "%d", rank);
	setenv("OMPI_COMM_WORLD_RANK", text, 1);
	setenv("OMPI_COMM_WORLD_SIZE", argv[3], 1);
	execl(argv[0], argv[0], "rank", argv[2], "1", argv[4], NULL);
	exit(1);
}

static void live(char **argv, int number)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!strcmp(argv[1], "hold"))
		hold(argv[2]);
	if (!strcmp(argv[1], "maps"))
		map_often(argv[2]);
	if (!strcmp(argv[1], "ranks"))
		begin_rank(argv, number);
	call_peers(argv[2], atof(argv[4]), argv[5] ? atoi(argv[5]) : 50);
	exit(0);
}

int main(int argc, char **argv)
{
	int status, failed = 0;

	if (argc < 4 || (argc < 5 && strcmp(argv[1], "hold") != 0 && strcmp(argv[1], "maps") != 0)) {
		fprintf(stderr, "usage: many hold|maps LIBRARY COUNT | peers|ranks|threads|execs LIBRARY COUNT SECONDS "
				"[CALLS]\n");
		return 2;
	}
	if (!strcmp(argv[1], "rank")) {
		compute(argv[2], atof(argv[4]));
		return 0;
	}
	if (!strcmp(argv[1], "threads"))
		return run_threads(argv[2], atoi(argv[3]), atof(argv[4]));
	if (!strcmp(argv[1], "execs"))
		return run_execs(argv, argc);
	for (int i = 0; i < atoi(argv[3]); i++)
		if (fork() == 0)
			live(argv, i);
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
