// SPDX-License-Identifier: GPL-2.0-or-later
/* The child of vaprod on which costs are measured: it calls functions of vaprod, with and without probes, on request.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "overhead/calibrate_private.h"
#include "probe/bpf/kernel_side.h"

/* Batches are short, so that some of many are not disturbed, and go on for a time, however slow traps are here. */
#define BATCH_CALLS 200
#define STEPPED_CALLS 50
#define LEAST_BATCHES 4
#define MEASURE_S 0.015
#define QUICK_S 0.003

#define WORK_BATCHES 9
#define WORK_LOOPS 10000ULL
#define WORK_NS 1e6

#define PAUSE_CALLS 31
#define LEAST_PAUSE_CALLS 9 /* the times of single calls differ by a factor of three */
#define PAUSES_S 0.03	    /* time for the pauses of a class, but for the least number of calls */
#define LONGEST_PAUSE_S 3.2e-3
#define PAUSE_BYTES (2U << 20)

#define DESCRIPTORS_MOST 65536

/*
 * One function per class of site: on x86 a push is emulated by the kernel, a mov is single-stepped; on
 * arm64 a branch is emulated, and what most functions begin with is single-stepped by most kernels.
 */
#if defined(__x86_64__)
__asm__(".text\n.globl calibrate__emulated\n.type calibrate__emulated,@function\n"
	"calibrate__emulated:\n\tpush %rbx\n\tpop %rbx\n\tret\n"
	".globl calibrate__stepped\n.type calibrate__stepped,@function\n"
	"calibrate__stepped:\n\tmov %rdi,%rax\n\tret\n"
	".globl calibrate__around\n.type calibrate__around,@function\n"
	"calibrate__around:\n\tpush %rbx\n\tcall *%rdi\n\tpop %rbx\n\tret\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl calibrate__emulated\n.type calibrate__emulated,@function\n"
	"calibrate__emulated:\n\tb 1f\n1:\tret\n"
	".globl calibrate__stepped\n.type calibrate__stepped,@function\n"
	"calibrate__stepped:\n\tstp x29, x30, [sp, #-16]!\n\tldp x29, x30, [sp], #16\n\tret\n"
	".globl calibrate__around\n.type calibrate__around,@function\n"
	"calibrate__around:\n\tb 2f\n2:\tstp x29, x30, [sp, #-16]!\n\tblr x0\n\tldp x29, x30, [sp], #16\n\tret\n");
#endif

/* Kernels from 6.18 replace a probe on a five-byte nop by a call. */
#if defined(__x86_64__)
void calibrate__nop5(void);
__asm__(".text\n.globl calibrate__nop5\n.type calibrate__nop5,@function\n"
	"calibrate__nop5:\n\t.byte 0x0f,0x1f,0x44,0x00,0x00\n\tret\n");
void (*const calibrate_nop5)(void) = calibrate__nop5;
#else
void (*const calibrate_nop5)(void) = NULL; /* this CPU has none */
#endif

static double seconds_now(void)
{
	return (double)mono_now() * 1e-9;
}

/* Returns the least of some batches of calls, ns per call. */
static double measure_warm(char what, int zero)
{
	uint32_t calls = what == 's' ? STEPPED_CALLS : BATCH_CALLS;
	double least = 1e9, from = seconds_now(), end = from;
	double until = from + (what == 'q' ? QUICK_S : MEASURE_S);
	char byte;

	for (int batch = 0; batch < LEAST_BATCHES || end < until; batch++) {
		double begin = seconds_now(), each;

		for (uint32_t i = 0; i < calls; i++) {
			if (what == 'e' || what == 'q')
				calibrate__emulated();
			else if (what == 's')
				calibrate__stepped();
			else if (what == 'n' && calibrate_nop5)
				calibrate_nop5();
			else if (read(zero, &byte, 1) != 1)
				break;
		}
		end = seconds_now();
		each = (end - begin) / calls * 1e9;
		if (each < least)
			least = each;
	}
	return least;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(values[0]), compare);
	return values[count / 2];
}

/* Returns the median time of equal batches of work, a millisecond long at first, ns. */
static double measure_work(void)
{
	static uint64_t loops;
	double spent[WORK_BATCHES];

	for (int i = 0; i < WORK_BATCHES;) {
		volatile uint64_t sum = 0;
		double begin = seconds_now();

		for (uint64_t at = 0; at < loops; at++)
			sum += at;
		(void)sum; /* only the time counts */
		spent[i] = (seconds_now() - begin) * 1e9;
		if (loops >= WORK_LOOPS && (i || spent[i] >= WORK_NS || loops > UINT32_MAX))
			i++;
		else
			loops = loops ? 2 * loops : WORK_LOOPS;
	}
	return median(spent, WORK_BATCHES);
}

/* The child walks through memory for pause_seconds in a pause, from pause_begin to pause_end, in seconds. */
static volatile char *memory;
static double pause_seconds, pause_begin, pause_end;

static void pause_from_hits(void)
{
	static size_t at;

	pause_begin = pause_end = seconds_now();
	for (; pause_end < pause_begin + pause_seconds; pause_end = seconds_now())
		for (int line = 0; line < 64; line++, at = (at + 64) % PAUSE_BYTES)
			memory[at]++;
}

/* Measures medians of an entry and a return after a pause of the middle of its class, or after the longest one. */
static void measure_pauses(const struct kernel_counters *counters, struct paused *answer)
{
	double spent[2][PAUSE_CALLS], preamble[2][PAUSE_CALLS];

	memory = calloc(1, PAUSE_BYTES);
	if (!memory)
		return;
	for (int i = 0; i < KERNEL_PAUSES - 1; i++) {
		int calls = 0;

		pause_seconds = fmin(LONGEST_PAUSE_S, sqrt(2) * 1e-9 * (double)((uint64_t)KERNEL_PAUSE_NS << i));
		for (double until = seconds_now() + PAUSES_S;
		     calls < LEAST_PAUSE_CALLS || (calls < PAUSE_CALLS && seconds_now() < until); calls++) {
			struct kernel_counters before;
			double begin;

			memcpy(&before, counters, sizeof(before));
			pause_from_hits();
			begin = seconds_now();
			calibrate__around(pause_from_hits);
			spent[1][calls] = (seconds_now() - pause_end) * 1e9;
			spent[0][calls] = (pause_begin - begin) * 1e9;
			for (int returned = 0; returned < 2; returned++)
				preamble[returned][calls] =
				    (double)(counters->preamble_ns[returned] - before.preamble_ns[returned]);
		}
		for (int returned = 0; returned < 2; returned++) {
			answer->spent[returned][i] = median(spent[returned], calls);
			answer->preamble[returned][i] = median(preamble[returned], calls);
		}
	}
	for (int returned = 0; returned < 2; returned++) {
		answer->spent[returned][KERNEL_PAUSES - 1] = answer->spent[returned][KERNEL_PAUSES - 2];
		answer->preamble[returned][KERNEL_PAUSES - 1] = answer->preamble[returned][KERNEL_PAUSES - 2];
	}
	free((char *)memory);
}

/*
 * Runs in the child: measures as requested 'e'mulated, the same 'q'uickly, 's'tepped, 'n'op5 or 'r'ead, and
 * responds in ns per call; or halves of calls after 'p'auses, or batches of 'w'ork. counters: its own.
 */
static void serve(int from, int to, const struct kernel_counters *counters)
{
	int zero = open("/dev/zero", O_RDONLY);
	char what;

	while (read(from, &what, 1) == 1) {
		struct paused paused = {0};
		double warm = 0;
		void *answer = what == 'p' ? (void *)&paused : &warm;
		size_t size = what == 'p' ? sizeof(paused) : sizeof(warm);

		if (what == 'p')
			measure_pauses(counters, &paused);
		else
			warm = what == 'w' ? measure_work() : measure_warm(what, zero);
		if (write(to, answer, size) != (ssize_t)size)
			break;
	}
	_exit(0);
}

/* Closes the descriptors from first to last. */
static void close_range_of(int first, int last)
{
	/* before 5.9 one by one, as far as vaprod may have any */
	if (first > last || !close_range((unsigned)first, (unsigned)last, 0))
		return;
	for (int fd = first; fd <= last && fd < DESCRIPTORS_MOST; fd++)
		close(fd);
}

/*
 * Closes all descriptors of vaprod but a and b and those of its messages: a probe is removed when the last descriptor
 * of its link is closed, which this process must not delay.
 */
static void close_others(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	close_range_of(STDERR_FILENO + 1, low - 1);
	close_range_of(low + 1, high - 1);
	close_range_of(high + 1, INT_MAX);
}

int calibrate__start_child(struct kernel_side *side, struct child *child)
{
	int request[2] = {-1, -1}, answer[2] = {-1, -1};

	if (pipe2(request, O_CLOEXEC) || pipe2(answer, O_CLOEXEC) || (child->pid = fork()) < 0) {
		int error = errno;

		for (int i = 0; i < 2; i++) {
			if (request[i] >= 0)
				close(request[i]);
			if (answer[i] >= 0)
				close(answer[i]);
		}
		return -error;
	}
	if (!child->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_others(request[0], answer[1]);
		/* the memory of the counters is shared with the kernel, and with this child */
		serve(request[0], answer[1], &kernel_side__shared(side)->counters[CALIBRATION_SLOT]);
	}
	close(request[0]);
	close(answer[1]);
	child->requests = request[1];
	child->answer = answer[0];
	fcntl(child->answer, F_SETFL, O_NONBLOCK); /* of this end alone: the child's is another */
	return 0;
}

double calibrate__measure(const struct child *child, char what)
{
	struct pollfd answer = {.fd = child->answer, .events = POLLIN};
	double ns = 0;
	int status = calibrate__request(child, what);

	while (!status && (status = calibrate__answer(child, &ns)) == -EAGAIN)
		status = poll(&answer, 1, -1) < 0 && errno != EINTR ? -errno : 0;
	return status < 0 ? 0 : ns;
}

int calibrate__request(const struct child *child, char what)
{
	return write(child->requests, &what, 1) == 1 ? 0 : -errno;
}

int calibrate__answer(const struct child *child, double *ns)
{
	ssize_t size = read(child->answer, ns, sizeof(*ns));

	if (size < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	return size == sizeof(*ns) ? 0 : -EPIPE;
}

void calibrate__kill_child(const struct child *child)
{
	close(child->requests);
	close(child->answer);
	kill(child->pid, SIGKILL);
}

bool calibrate__has_ended(const struct child *child)
{
	return waitpid(child->pid, NULL, WNOHANG) != 0;
}

void calibrate__end_child(const struct child *child)
{
	calibrate__kill_child(child);
	waitpid(child->pid, NULL, 0);
}

int calibrate__link(struct kernel_side *side, const struct process *self, void (*function)(void), pid_t pid,
		    bool entry_only, struct kernel_link **link)
{
	const struct process_mapping *mapping = process__mapping_at(self, (uint64_t)(uintptr_t)function);
	uint64_t offset, cookie = CALIBRATION_ROW;
	struct kernel_sites sites = {.path = "/proc/self/exe",
				     .offsets = &offset,
				     .cookies = &cookie,
				     .count = 1,
				     .pid = pid,
				     .entry_only = entry_only};

	*link = NULL;
	if (!mapping)
		return -ENOENT;
	offset = (uint64_t)(uintptr_t)function - mapping->start + mapping->offset;
	return kernel_side__link(side, &sites, link);
}

int calibrate__link_call(struct kernel_side *side, const struct process *self, pid_t pid, struct kernel_link **link)
{
	return calibrate__link(side, self, calibrate__emulated, pid, false, link);
}
