// SPDX-License-Identifier: GPL-2.0-or-later
/* The hazards that leave or switch a stack: longjmp, contexts, below, above and signals (hazards.c). */
#include "hazards.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK (256 * 1024)

/* ---- longjmp */

static jmp_buf before;

static void jump_out(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	longjmp(before, *code == MPI_SUCCESS ? 1 : 2);
}

/* Frames of many sizes, so that the calls of MPI stand at different places of the stack. */
__attribute__((noinline)) static void caller_of_mpi(int depth, int *sum)
{
	volatile char frame[512 * depth + 1];

	frame[512 * depth] = 1;
	allreduce(sum);
	longjmp(before, 2 + frame[512 * depth]);
}

int jump(void)
{
	volatile int out = 0, over = 0;
	static int sum;
	MPI_Errhandler handler;
	char byte = 0;

	MPI_Comm_create_errhandler(jump_out, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	for (volatile int i = 0; i < TIMES; i++) {
		if (!setjmp(before))
			MPI_Send(&byte, 1, MPI_BYTE, 7, 1, MPI_COMM_WORLD); /* no such rank exists */
		else
			out++;
		if (i % 2)
			allreduce(&sum);
	}
	for (volatile int i = 0; i < TIMES; i++) {
		if (!setjmp(before))
			caller_of_mpi(i % 8, &sum);
		else
			over++;
	}
	MPI_Errhandler_free(&handler);
	printf("result longjmp out %d, over %d, sum %d calls MPI_Send=%d MPI_Allreduce=%d\n", out, over, sum, TIMES,
	       TIMES / 2 + TIMES);
	return 0;
}

/* ---- contexts */

static ucontext_t contexts[3]; /* contexts of main and two others */
static char stacks[2][STACK];
static int context_sums[2];

static void coroutine(int number)
{
	for (int i = 0; i < TIMES; i++) {
		allreduce(&context_sums[number]);
		swapcontext(&contexts[1 + number], &contexts[2 - number]);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

static void make_contexts(void (*run)(int))
{
	for (int i = 0; i < 2; i++) {
		getcontext(&contexts[1 + i]);
		contexts[1 + i].uc_stack.ss_sp = stacks[i];
		contexts[1 + i].uc_stack.ss_size = STACK;
		contexts[1 + i].uc_link = i ? &contexts[0] : &contexts[2];
		makecontext(&contexts[1 + i], (void (*)(void))run, 1, i);
	}
}

int switch_contexts(void)
{
	make_contexts(coroutine);
	swapcontext(&contexts[0], &contexts[1]);
	printf("result contexts sums %d %d calls MPI_Allreduce=%d MPI_Barrier=%d\n", context_sums[0], context_sums[1],
	       2 * TIMES, 2 * TIMES);
	return 0;
}

/* ---- callback */

static int base, other; /* context that copies a communicator, and context of the callback */
static int other_sum;

static void (*copy_callback)(void);

static int on_copy(MPI_Comm comm, int key, void *extra, void *from, void *to, int *flag)
{
	(void)comm;
	(void)key;
	(void)extra;
	(void)from;
	(void)to;
	*flag = 0;
	copy_callback();
	return MPI_SUCCESS;
}

int call_in_copy(void (*in_copy)(void))
{
	int key;

	copy_callback = in_copy;
	MPI_Comm_create_keyval(on_copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, key, &key);
	return key;
}

static void go_to_other(void)
{
	swapcontext(&contexts[base], &contexts[other]);
}

static void copy_communicators(void)
{
	int key = call_in_copy(go_to_other), sum = 0;
	MPI_Comm comm;

	for (int i = 0; i < TIMES; i++) {
		MPI_Comm_dup(MPI_COMM_SELF, &comm);
		MPI_Comm_free(&comm);
		allreduce(&sum);
	}
	MPI_Comm_delete_attr(MPI_COMM_SELF, key);
	context_sums[0] = sum;
}

static void call_and_go_back(int number)
{
	if (number == 0 && other != 1) {
		copy_communicators();
		setcontext(&contexts[0]);
	}
	for (;;) {
		allreduce(&other_sum);
		swapcontext(&contexts[other], &contexts[base]);
	}
}

int callback(bool above)
{
	make_contexts(call_and_go_back);
	base = above ? 1 : 0;
	other = above ? 2 : 1;
	if (above)
		swapcontext(&contexts[0], &contexts[1]);
	else
		copy_communicators();
	printf("result %s sums %d %d calls MPI_Comm_free=%d\n", above ? "above" : "below", context_sums[0], other_sum,
	       TIMES);
	return 0;
}

/* ---- signals */

static volatile sig_atomic_t handled, odd;
static int null_file;

static void on_alarm(int number)
{
	char here;

	(void)number;
	if (gettid() != getpid())
		return; /* a thread of the library: the stack is the main thread's */
	odd += write(null_file, "x", 1) != 1;
	odd += &here < stacks[0] || &here >= stacks[0] + STACK;
	handled = handled + 1;
}

int take_signals(void)
{
	const stack_t stack = {.ss_sp = stacks[0], .ss_size = STACK};
	const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK | SA_RESTART};
	const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	int sum = 0, calls = 0, got = -1;

	null_file = open("/dev/null", O_WRONLY | O_CLOEXEC);
	sigaltstack(&stack, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (; handled < 400 && calls < 50000000; calls++) {
		MPI_Sendrecv(&calls, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
		sum += got != calls;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	printf("result signals enough %d, odd %d, wrong %d calls MPI_Sendrecv=%d\n", handled >= 400, (int)odd, sum,
	       calls);
	return 0;
}
