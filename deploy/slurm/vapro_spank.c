// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plugin for Slurm (spank(8)) with one option, --vapro=off of srun, sbatch and salloc: the job is not watched. It
 * sets VAPRO=off in the environment of the job's tasks, which vaprod honours. In plugstack.conf:
 *
 *   optional /usr/local/lib/vapro/vapro_spank.so [comment=/usr/share/vapro/slurm/comment.sh]
 *
 * With comment=PROGRAM the program is run as root on the node of the batch script, with the number of the job, when the
 * script has ended and before slurmctld learns of it: slurmctld changes the AdminComment of a job that runs, and
 * refuses that of one that has ended. The end of the job waits for it for COMMENT_SECONDS at most.
 *
 * `make slurm` builds it where Slurm's headers are installed.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>

#define COMMENT_SECONDS 5
#define COMMENT "comment="

SPANK_PLUGIN(vapro, 1)

static bool is_off;

/* Takes the value of the option: on the host of the command, and on each node of the job. */
static int take_value(int value, const char *text, int remote)
{
	(void)value;
	(void)remote;
	if (!text || (strcmp(text, "off") != 0 && strcmp(text, "on") != 0)) {
		slurm_error("--vapro: on or off is expected");
		return ESPANK_BAD_ARG;
	}
	is_off = !strcmp(text, "off");
	return ESPANK_SUCCESS;
}

static struct spank_option option = {
    .name = "vapro",
    .arginfo = "on|off",
    .usage = "off: vaprod does not watch the job",
    .has_arg = 1,
    .cb = take_value,
};

int slurm_spank_init(spank_t spank, int count, char **arguments)
{
	(void)count;
	(void)arguments;
	switch (spank_context()) {
	case S_CTX_LOCAL:
	case S_CTX_ALLOCATOR:
	case S_CTX_REMOTE:
		return spank_option_register(spank, &option);
	default: /* slurmd and its scripts */
		return ESPANK_SUCCESS;
	}
}

/* Called on a node of the job, before its tasks start. */
int slurm_spank_user_init(spank_t spank, int count, char **arguments)
{
	(void)count;
	(void)arguments;
	return is_off ? spank_setenv(spank, "VAPRO", "off", 1) : ESPANK_SUCCESS;
}

/* Returns the program that the arguments name, or NULL. */
static const char *comment_program(int count, char **arguments)
{
	for (int i = 0; i < count; i++) {
		if (!strncmp(arguments[i], COMMENT, strlen(COMMENT)))
			return arguments[i] + strlen(COMMENT);
	}
	return NULL;
}

/* In a process of its own: runs the program, in a group that can be ended. */
static void run_comment(const char *program, uint32_t job)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", job);
	setpgid(0, 0);
	execl(program, program, number, (char *)NULL);
	_exit(127);
}

/* Waits for the end of the process, and ends its group after a while. */
static void wait_for(pid_t pid)
{
	for (int i = 0; i < COMMENT_SECONDS * 50; i++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
		usleep(20000);
	}
	slurm_error("vapro: the comment of the job is not there within %d s", COMMENT_SECONDS);
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Called by slurmstepd, after the tasks of a step have ended. */
int slurm_spank_exit(spank_t spank, int count, char **arguments)
{
	const char *program = comment_program(count, arguments);
	uint32_t job, step;
	pid_t pid;

	if (!program || is_off || spank_context() != S_CTX_REMOTE ||
	    spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS || step != SLURM_BATCH_SCRIPT ||
	    spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
		return ESPANK_SUCCESS;
	pid = fork();
	if (!pid)
		run_comment(program, job);
	if (pid > 0)
		wait_for(pid);
	return ESPANK_SUCCESS; /* a job does not fail for the sake of a comment */
}
