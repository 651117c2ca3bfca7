// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that has nothing to do with MPI, to measure what monitoring costs everybody else: the time
 * of read() of one byte from /dev/zero, or of fork and exec of /bin/true.
 *
 *   bystander --mode read --seconds 1 [--cpu N]     {"mode":"read","unit":"ns","min":..,"median":..}
 *   bystander --mode exec --seconds 2 [--cpu N]     {"mode":"exec","unit":"us",...}
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "common.h"
#include "truth.h"

enum { CALLS_PER_BATCH = 10000, BATCHES = 100000 };

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
	bool reading;

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
				"usage: bystander --mode read|exec [--seconds T] [--cpu N]\n");
			return opt == 'h' ? 0 : 2;
		}
	}
	reading = !strcmp(mode, "read");
	if (!reading && strcmp(mode, "exec")) {
		fprintf(stderr, "--mode: '%s' is neither read nor exec\n", mode);
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
	read_batch(file); /* warm up */
	end_ns = now_ns() + (uint64_t)(seconds * 1e9);
	while (count < 3 || (count < BATCHES && now_ns() < end_ns))
		values[count++] = reading ? read_batch(file) : exec_once();
	qsort(values, (size_t)count, sizeof(*values), compare);
	printf("{\"program\":\"bystander\",\"mode\":\"%s\",\"unit\":\"%s\",\"min\":%.3f,\"median\":%.3f,\"batches\":%d,"
	       "\"calls\":%lld}\n",
	       mode, reading ? "ns" : "us", values[0], values[count / 2], count,
	       (long long)count * (reading ? CALLS_PER_BATCH : 1));
	return 0;
}
