// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/check_node.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/exit_codes.h"
#include "base/terminal.h"
#include "cli/commands.h"
#include "node/generator.h"
#include "node/node_file.h"
#include "node/node_report.h"
#include "node/ranks_present.h"

enum { WIDTH_LEAST = 80, ERR_SIZE = 512 };

static volatile sig_atomic_t stopped_by;

static void note_signal(int number)
{
	stopped_by = number;
}

/* All that a check holds. */
struct held {
	struct machine_cpus machine;
	struct node_run *run, *profile;
	struct node_check check, known, compared;
};

static void free_held(struct held *held)
{
	machine_cpus__clear(&held->machine);
	node_run__free(held->run);
	node_run__free(held->profile);
	node_check__clear(&held->check);
	node_check__clear(&held->known);
	node_check__clear(&held->compared);
}

/* Returns 0, or an exit code where ranks run. */
static int look_for_ranks(bool force)
{
	char text[ERR_SIZE];
	int count = ranks_present__find(text, sizeof(text));

	if (!count)
		return 0;
	if (force) {
		command__fail(&check_command, 0, "it runs beside %d process%s of MPI: %s", count, count > 1 ? "es" : "",
			      text);
		return 0;
	}
	return command__fail(&check_command, EXIT_REFUSED,
			     "%d process%s of MPI run%s on this node, which a check would disturb: %s; --force runs it "
			     "all the same",
			     count, count > 1 ? "es" : "", count > 1 ? "" : "s", text);
}

/* Runs the kernels. Returns 0 or an exit code. */
static int generate(const struct check_node *choice, struct held *held)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = note_signal}, before[3];
	char err[ERR_SIZE];
	int error;

	for (size_t i = 0; i < 3; i++)
		sigaction(signals[i], &action, &before[i]);
	error = generator__run(&held->machine, choice->seconds, &stopped_by, &held->run, err, sizeof(err));
	for (size_t i = 0; i < 3; i++)
		sigaction(signals[i], &before[i], NULL);
	if (error == -EINTR)
		return command__fail(&check_command, EXIT_FAILED, "ended by a signal (%s) before it was complete",
				     strsignal(stopped_by));
	return error ? command__fail(&check_command, EXIT_FAILED, "%s", err) : 0;
}

/* Compares with the profile where it is of this class of node. Returns 0 or an exit code. */
static int compare(const struct check_node *choice, struct held *held, struct node_report *report, char *why,
		   size_t why_size)
{
	char err[ERR_SIZE];
	int error;

	report->profile = held->profile;
	report->profile_name = choice->profile;
	report->other_class = why;
	if (!machine_cpus__alike(node_run__machine(held->profile), node_run__machine(held->run), why, why_size))
		return 0;
	error = node_check__judge(&held->known, held->profile, err, sizeof(err));
	if (!error)
		error = node_check__compare(&held->compared, held->profile, &held->known, held->run, &held->check, err,
					    sizeof(err));
	if (error == -ENODATA) {
		snprintf(why, why_size, "%.200s", err);
		return 0;
	}
	report->compared = &held->compared;
	return error ? command__fail(&check_command, EXIT_FAILED, "%s", err) : 0;
}

/* Stores the run where it may stand for what is usual. Returns 0 or an exit code. */
static int store(const char *path, struct held *held)
{
	char err[ERR_SIZE];

	if (!node_run__count(held->run))
		return command__fail(&check_command, EXIT_FAILED, "%s is not written: no iteration of a kernel ended",
				     path);
	if (held->check.verdict > NODE_SLOWER)
		return command__fail(&check_command, 0, "%s is not written: the node is not what is usual", path);
	if (held->check.verdict == NODE_UNDECIDED)
		command__fail(&check_command, 0,
			      "%s is of a check that is undecided: its scatter bounds what a "
			      "comparison can show",
			      path);
	return node_file__write(path, held->run, err, sizeof(err))
		   ? command__fail(&check_command, EXIT_FAILED, "%s", err)
		   : 0;
}

static int code_of(enum node_verdict verdict)
{
	switch (verdict) {
	case NODE_GOOD:
		return EXIT_OK;
	case NODE_UNDECIDED:
		return EXIT_NOTHING_JUDGED;
	case NODE_SLOWER:
		return EXIT_SLOWER;
	default:
		return EXIT_ALARM;
	}
}

static int print(const struct check_node *choice, const struct node_report *report)
{
	unsigned width = terminal__width(fileno(stdout));

	if (!choice->json)
		node_report__text(report, stdout, width > WIDTH_LEAST ? width : WIDTH_LEAST);
	else if (node_report__json(report, stdout))
		return command__fail(&check_command, EXIT_FAILED, "out of memory");
	if (fflush(stdout) || ferror(stdout))
		return command__fail(&check_command, EXIT_FAILED, "the result could not be written: %s",
				     strerror(errno));
	return 0;
}

int check_node__run(const struct check_node *choice)
{
	struct held held = {.run = NULL};
	struct node_report report = {.check = &held.check};
	char err[ERR_SIZE], why[256] = "";
	int code = 0;

	/* what is wrong with files or memory is said before the kernels run */
	if (choice->profile && node_file__read(choice->profile, &held.profile, err, sizeof(err)))
		code = command__fail(&check_command, EXIT_FAILED, "%s", err);
	if (!code)
		code = look_for_ranks(choice->force);
	if (!code &&
	    machine_cpus__read(&held.machine, "/sys", "/proc/cpuinfo", machine_cpus__free_bytes(), err, sizeof(err)))
		code = command__fail(&check_command, EXIT_FAILED, "%s", err);
	if (!code)
		code = generate(choice, &held);
	if (!code && node_check__judge(&held.check, held.run, err, sizeof(err)))
		code = command__fail(&check_command, EXIT_FAILED, "%s", err);
	report.run = held.run;
	if (!code && held.profile)
		code = compare(choice, &held, &report, why, sizeof(why));
	if (!code)
		code = print(choice, &report);
	if (!code && choice->store)
		code = store(choice->store, &held);
	if (!code)
		code = code_of(node_report__verdict(&report));
	free_held(&held);
	return code;
}
