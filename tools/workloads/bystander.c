// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program without MPI, to measure what monitoring costs other processes: the time
 * of read() of one byte from /dev/zero, of fork and exec of /bin/true, or of a context switch between two processes on
 * one CPU that hand a byte to and fro.
 *
 *   bystander --mode read --seconds 1 [--cpu N]     {"mode":"read","unit":"ns","min":..,"median":..}
 *   bystander --mode exec --seconds 2 [--cpu N]     {"mode":"exec","unit":"us",...}
 *   bystander --mode switch --seconds 1 [--cpu N]   {"mode":"switch","unit":"ns",...}
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "common.h"
#include "truth.h"

enum { CALLS_PER_BATCH = 10000, SWITCHES_PER_BATCH = 2000, BATCHES = 100000 };

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double read_batch(int file)
{
	uint64_t begin_ns = now_ns();
	char byte;
	int i;

	for (i = 0; i < CALLS_PER_BATCH; i++) {
		if (read(file, &byte, 1) != 1) {
			fprintf(stderr, "/dev/zero: %s\n", strerror(errno));
			exit(1);
		}
	}
	return (double)(now_ns() - begin_ns) / CALLS_PER_BATCH;
}

static double exec_once(void)
{
	char *const args[] = {"true", NULL};
	char *const env[] = {NULL};
	uint64_t begin_ns = now_ns();
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execve("/bin/true", args, env);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "/bin/true: %s\n", pid < 0 ? strerror(errno) : "it failed");
		exit(1);
	}
	return (double)(now_ns() - begin_ns) / 1e3;
}

static int to_other, from_other; /* pipes of the mode switch */

static void give_and_take(int to, int from)
{
	char byte = 0;

	if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
		exit(1);
}

static double switch_batch(void)
{
	uint64_t begin_ns = now_ns();

	for (int i = 0; i < SWITCHES_PER_BATCH / 2; i++)
		give_and_take(to_other, from_other); /* two switches */
	return (double)(now_ns() - begin_ns) / SWITCHES_PER_BATCH;
}

/* Starts the other of two processes that switch; it ends when the pipes close. */
static void start_other(void)
{
	int there[2], back[2];
	pid_t pid;
	char byte;

	if (pipe(there) || pipe(back) || (pid = fork()) < 0) {
		fprintf(stderr, "no second process: %s\n", strerror(errno));
		exit(1);
	}
	if (pid == 0) {
		close(there[1]);
		close(back[0]);
		while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	close(there[0]);
	close(back[1]);
	to_other = there[1];
	from_other = back[0];
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"mode", required_argument, NULL, 'm'},
	    {"seconds", required_argument, NULL, 's'},
	    {"cpu", required_argument, NULL, 'c'},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	const char *mode = "read";
	double seconds = 1, *values;
	int opt, cpu = -1, file, count = 0;
	uint64_t end_ns;
	bool reading, switching;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'm':
			mode = optarg;
			break;
		case 's':
			seconds = number("--seconds", optarg, 0.01, 1e4);
			break;
		case 'c':
			cpu = (int)number("--cpu", optarg, 0, 1e4);
			break;
		default:
			fprintf(opt == 'h' ? stdout : stderr,
				"usage: bystander --mode read|exec|switch [--seconds T] [--cpu N]\n");
			return opt == 'h' ? 0 : 2;
		}
	}
	reading = !strcmp(mode, "read");
	switching = !strcmp(mode, "switch");
	if (!reading && !switching && strcmp(mode, "exec")) {
		fprintf(stderr, "--mode: '%s' is not read, exec or switch\n", mode);
		return 2;
	}
	if (cpu >= 0)
		pin(cpu);
	file = open("/dev/zero", O_RDONLY);
	values = malloc(BATCHES * sizeof(*values));
	if (file < 0 || !values) {
		fprintf(stderr, "/dev/zero: %s\n", strerror(errno));
		return 1;
	}
	memset(values, 0, BATCHES * sizeof(*values));
	if (switching)
		start_other();
	read_batch(file); /* warm up */
	end_ns = now_ns() + (uint64_t)(seconds * 1e9);
	while (count < 3 || (count < BATCHES && now_ns() < end_ns))
		values[count++] = reading ? read_batch(file) : switching ? switch_batch() : exec_once();
	qsort(values, (size_t)count, sizeof(*values), compare);
	printf("{\"program\":\"bystander\",\"mode\":\"%s\",\"unit\":\"%s\",\"min\":%.3f,\"median\":%.3f,\"batches\":%d,"
	       "\"calls\":%lld}\n",
	       mode, reading || switching ? "ns" : "us", values[0], values[count / 2], count,
	       (long long)count * (reading     ? CALLS_PER_BATCH
				   : switching ? SWITCHES_PER_BATCH
					       : 1));
	return 0;
}
