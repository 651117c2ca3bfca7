// SPDX-License-Identifier: GPL-2.0-or-later
#include "overhead/calibrate.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
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

#define BESIDE 16    /* links beside another; where each takes long to remove, fewer */
#define FEW_BESIDE 4 /* see above */

#define WORK_BATCHES 9
#define WORK_LOOPS 10000ULL
#define WORK_NS 1e6

#define PAUSE_CALLS 31
#define LEAST_PAUSE_CALLS 9 /* the times of single calls differ by a factor of three */
#define PAUSES_S 0.03	    /* time for the pauses of a class, but for the least number of calls */
#define LONGEST_PAUSE_S 3.2e-3
#define PAUSE_BYTES (2U << 20)

/*
 * One function per class of site: on x86 a push is emulated by the kernel, a mov is single-stepped; on
 * arm64 a branch is emulated, and what most functions begin with is single-stepped by most kernels.
 */
void vapro_calibrate_emulated(void);
void vapro_calibrate_stepped(void);
void vapro_calibrate_around(void (*inner)(void)); /* emulated too; calls the given function */
#if defined(__x86_64__)
__asm__(".text\n.globl vapro_calibrate_emulated\n.type vapro_calibrate_emulated,@function\n"
	"vapro_calibrate_emulated:\n\tpush %rbx\n\tpop %rbx\n\tret\n"
	".globl vapro_calibrate_stepped\n.type vapro_calibrate_stepped,@function\n"
	"vapro_calibrate_stepped:\n\tmov %rdi,%rax\n\tret\n"
	".globl vapro_calibrate_around\n.type vapro_calibrate_around,@function\n"
	"vapro_calibrate_around:\n\tpush %rbx\n\tcall *%rdi\n\tpop %rbx\n\tret\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl vapro_calibrate_emulated\n.type vapro_calibrate_emulated,@function\n"
	"vapro_calibrate_emulated:\n\tb 1f\n1:\tret\n"
	".globl vapro_calibrate_stepped\n.type vapro_calibrate_stepped,@function\n"
	"vapro_calibrate_stepped:\n\tstp x29, x30, [sp, #-16]!\n\tldp x29, x30, [sp], #16\n\tret\n"
	".globl vapro_calibrate_around\n.type vapro_calibrate_around,@function\n"
	"vapro_calibrate_around:\n\tb 2f\n2:\tstp x29, x30, [sp, #-16]!\n\tblr x0\n\tldp x29, x30, [sp], #16\n\tret\n");
#endif

/* Kernels from 6.18 replace a probe on a five-byte nop by a call. */
#if defined(__x86_64__)
void vapro_calibrate_nop5(void);
__asm__(".text\n.globl vapro_calibrate_nop5\n.type vapro_calibrate_nop5,@function\n"
	"vapro_calibrate_nop5:\n\t.byte 0x0f,0x1f,0x44,0x00,0x00\n\tret\n");
static void (*const nop5)(void) = vapro_calibrate_nop5;
#else
static void (*const nop5)(void) = NULL; /* this CPU has none */
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
				vapro_calibrate_emulated();
			else if (what == 's')
				vapro_calibrate_stepped();
			else if (what == 'n' && nop5)
				nop5();
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

/* Of entries and returns after pauses, by the length of the pause, ns: how long they take, and their preamble. */
struct paused {
	double spent[2][KERNEL_PAUSES], preamble[2][KERNEL_PAUSES];
};

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
			vapro_calibrate_around(pause_from_hits);
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
		close(request[1]);
		close(answer[0]);
		/* the memory of the counters is shared with the kernel, and with this child */
		serve(request[0], answer[1], &kernel_side__shared(side)->counters[CALIBRATION_SLOT]);
	}
	close(request[0]);
	close(answer[1]);
	child->requests = request[1];
	child->answer = answer[0];
	return 0;
}

double calibrate__measure(const struct child *child, char what)
{
	double ns = 0;

	if (write(child->requests, &what, 1) != 1 || read(child->answer, &ns, sizeof(ns)) != sizeof(ns))
		return 0;
	return ns;
}

static int link_own(struct kernel_side *side, const struct process *self, void (*function)(void), pid_t pid,
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

/*
 * Measures what a link of another process adds to a call, by a link of this process with the same site many times: the
 * kernel asks each of them at each hit.
 */
static double measure_beside(struct kernel_side *side, const struct process *self, const struct child *child,
			     double call_ns)
{
	const struct process_mapping *mapping =
	    process__mapping_at(self, (uint64_t)(uintptr_t)vapro_calibrate_emulated);
	uint32_t count = kernel_side__frugal(side) ? FEW_BESIDE : BESIDE;
	uint64_t offsets[BESIDE], cookies[BESIDE];
	struct kernel_sites sites = {
	    .path = "/proc/self/exe", .offsets = offsets, .cookies = cookies, .count = count, .pid = getpid()};
	struct kernel_link *link;
	double with;

	for (uint32_t i = 0; i < count && mapping; i++) {
		offsets[i] = (uint64_t)(uintptr_t)vapro_calibrate_emulated - mapping->start + mapping->offset;
		cookies[i] = CALIBRATION_ROW;
	}
	if (!mapping || kernel_side__link(side, &sites, &link))
		return 0;
	with = calibrate__measure(child, 'e');
	kernel_side__unlink(side, link);
	return costs__extra(with, call_ns) / count;
}

int calibrate__link_call(struct kernel_side *side, const struct process *self, pid_t pid, struct kernel_link **link)
{
	return link_own(side, self, vapro_calibrate_emulated, pid, false, link);
}

void calibrate__end_child(const struct child *child)
{
	close(child->requests);
	close(child->answer);
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
}

/*
 * Sets the costs of pauses: the times after pauses, with a bare call's own, a tenth of a microsecond, less those of
 * calls back to back.
 */
static void find_pauses(const struct child *child, struct costs *costs)
{
	struct paused paused;
	const double warm[2] = {costs->entry_ns, fmax(0, costs->call_ns - costs->entry_ns)};

	if (write(child->requests, "p", 1) != 1 || read(child->answer, &paused, sizeof(paused)) != sizeof(paused))
		return;
	memcpy(costs->preamble_ns, paused.preamble, sizeof(costs->preamble_ns));
	for (int returned = 0; returned < 2; returned++)
		for (int i = 0; i < KERNEL_PAUSES; i++)
			costs->pause_ns[returned][i] = fmax(0, paused.spent[returned][i] - warm[returned]);
}

/* Sets the mean time of our BPF program, by the hits that were timed since the counters were cleared. */
static void find_programs(const struct kernel_counters *counters, struct costs *costs)
{
	for (int returned = 0; returned < 2; returned++)
		if (counters->timed[returned])
			costs->program_ns[returned] =
			    (double)counters->timed_ns[returned] / (double)counters->timed[returned];
}

/* Tracks the child by other flags from now on: a new generation makes its thread read these. */
static int track_child(struct kernel_side *side, pid_t pid, uint32_t flags)
{
	struct bpf_process_state tracked = {.slot = CALIBRATION_SLOT, .flags = flags};
	int status = kernel_side__track(side, pid, &tracked);

	(*kernel_side__shared(side)->generation)++;
	return status;
}

/* Times of calls of the child without probes, ns. */
struct bare {
	double call, stepped, nop5, read;
};

/* Begins to track the child; measures what a traced system call costs a process that is watched, and another one. */
static int measure_syscalls(struct kernel_side *side, bool syscalls, struct child *child, double bare_read,
			    struct costs *costs)
{
	double beside = 0, traced;
	int status;

	if (syscalls && !kernel_side__watch_syscalls(side, true))
		beside = calibrate__measure(child, 'r');
	status = track_child(side, child->pid, 0);
	if (!syscalls || status)
		return status;
	traced = calibrate__measure(child, 'r');
	kernel_side__watch_syscalls(side, false);
	/* measured before and after: a disturbed measurement would make the others cost nothing */
	bare_read = fmin(bare_read, calibrate__measure(child, 'r'));
	costs->bystander_ns = costs__extra(beside, bare_read);
	costs->syscall_ns = costs__extra(traced, bare_read);
	return 0;
}

/* Measures entry and return of a call, and the entry alone, at sites that the kernel emulates. */
static int measure_calls(struct kernel_side *side, const struct process *self, struct child *child,
			 const struct bare *bare, struct costs *costs)
{
	struct kernel_counters *counters = &kernel_side__shared(side)->counters[CALIBRATION_SLOT];
	struct kernel_link *link;
	int status = calibrate__link_call(side, self, child->pid, &link);

	if (status)
		return status;
	memset(counters, 0, sizeof(*counters));
	costs->call_ns = costs__extra(calibrate__measure(child, 'e'), bare->call);
	find_programs(counters, costs);
	costs->beside_ns = measure_beside(side, self, child, costs->call_ns + bare->call);
	kernel_side__unlink(side, link);
	/* measured next to the call, since a return is the difference */
	track_child(side, child->pid, KERNEL_PROCESS_NO_RETURN);
	status = link_own(side, self, vapro_calibrate_emulated, child->pid, true, &link);
	if (status)
		return status;
	costs->entry_ns = costs__extra(calibrate__measure(child, 'e'), bare->call);
	kernel_side__unlink(side, link);
	if (!nop5)
		return 0;
	status = link_own(side, self, nop5, child->pid, true, &link);
	if (status)
		return status;
	costs->nop5_ns = costs__extra(calibrate__measure(child, 'n'), bare->nop5);
	kernel_side__unlink(side, link);
	return 0;
}

/* Measures a call at a single-stepped site, and what pauses between calls add. */
static int measure_stepped(struct kernel_side *side, const struct process *self, struct child *child,
			   const struct bare *bare, struct costs *costs)
{
	struct kernel_link *link;
	int status;

	track_child(side, child->pid, 0);
	status = link_own(side, self, vapro_calibrate_stepped, child->pid, false, &link);
	if (status)
		return status;
	costs->stepped_call_ns = costs__extra(calibrate__measure(child, 's'), bare->stepped);
	kernel_side__unlink(side, link);
	status = link_own(side, self, (void (*)(void))vapro_calibrate_around, child->pid, false, &link);
	if (status)
		return status;
	find_pauses(child, costs);
	kernel_side__unlink(side, link);
	return 0;
}

int calibrate__run(struct kernel_side *side, bool syscalls, struct costs *costs, char *err, size_t err_size)
{
	struct bpf_function_state row = {.known = 1};
	uint32_t key = CALIBRATION_ROW;
	struct process *self = NULL;
	struct child child = {.pid = -1};
	struct bare bare;
	int status;

	memset(costs, 0, sizeof(*costs));
	status = process__read(getpid(), &self, err, err_size);
	if (!status)
		status = calibrate__start_child(side, &child);
	if (status) {
		snprintf(err, err_size, "cannot start the calibration child: %s", strerror(-status));
		goto out;
	}
	bpf_map_update_elem(kernel_side__map(side, KERNEL_MAP_FUNCTIONS), &key, &row, BPF_ANY);
	bare.call = calibrate__measure(&child, 'e');
	bare.stepped = calibrate__measure(&child, 's');
	bare.nop5 = calibrate__measure(&child, 'n');
	bare.read = calibrate__measure(&child, 'r');
	status = measure_syscalls(side, syscalls, &child, bare.read, costs);
	if (!status)
		status = measure_calls(side, self, &child, &bare, costs);
	if (!status)
		status = measure_stepped(side, self, &child, &bare, costs);
	if (status)
		snprintf(err, err_size, "cannot probe the calibration child: %s", strerror(-status));
out:
	if (child.pid > 0) {
		kernel_side__untrack(side, child.pid);
		calibrate__end_child(&child);
	}
	process__free(self);
	return status < 0 ? status : 0;
}
