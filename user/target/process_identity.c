// SPDX-License-Identifier: GPL-2.0-or-later
/* Rank, world size, job and opt-out, from a process's environment. */
#include "target/process_private.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENVIRONMENT_MAX (1 << 20)

/* Value of NAME=value in an environment block, or NULL. */
static const char *variable(const char *block, size_t length, const char *name)
{
	size_t name_length = strlen(name);

	for (const char *at = block; at < block + length; at += strlen(at) + 1)
		if (!strncmp(at, name, name_length) && at[name_length] == '=')
			return at + name_length + 1;
	return NULL;
}

int process__number(const char *text)
{
	char *end;
	long value;

	if (!text || !isdigit((unsigned char)*text))
		return -1;
	errno = 0;
	value = strtol(text, &end, 10);
	return errno || *end || value > INT_MAX ? -1 : (int)value;
}

static int first_number(const char *block, size_t length, const char *const *names)
{
	for (; *names; names++) {
		int value = process__number(variable(block, length, *names));

		if (value >= 0)
			return value;
	}
	return -1;
}

/* Copies only what is safe in a report: no free text. */
static void copy_identity(char *to, size_t size, const char *from)
{
	size_t i = 0;

	for (; from && *from && i + 1 < size; from++)
		to[i++] = isalnum((unsigned char)*from) || strchr("._-@:", *from) ? *from : '_';
	to[i] = '\0';
}

static const char *const rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",    "PMI_RANK",
					     "MV2_COMM_WORLD_RANK",  "SLURM_PROCID", NULL};

/* Finds the nearest ancestor that is no rank: wrappers between launcher and rank inherit the rank's environment. */
static pid_t launcher_of(const struct process *process)
{
	struct process at = {.pid = process->parent};

	for (int depth = 0; at.pid > 1 && depth < 16; depth++) {
		char path[64], *block;
		size_t length;
		int rank;

		snprintf(path, sizeof(path), "/proc/%d/environ", at.pid);
		block = process__read_file(path, ENVIRONMENT_MAX, &length);
		rank = block ? first_number(block, length, rank_variables) : -1;
		free(block);
		if (rank != process->rank || process__read_stat(&at))
			break;
		at = (struct process){.pid = at.parent};
	}
	return at.pid;
}

/*
 * The environment is a user's text, yet it is read here and not in the confined reader: no format is
 * parsed, only a few names are searched in at most ENVIRONMENT_MAX bytes that end in a NUL. The results
 * are a number that must be whole and in range, one comparison, or an identity of which only harmless
 * characters are copied into a field of fixed size. The same holds for /proc/PID/stat, status and
 * maps, which the kernel writes: a process chooses only its name and its paths.
 */
void process__read_environment(struct process *process)
{
	static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS",
					    NULL};
	const char *value;
	char path[64], *block;
	size_t length;
	int world;

	process->rank = -1;
	snprintf(process->job_kind, sizeof(process->job_kind), "none");
	snprintf(path, sizeof(path), "/proc/%d/environ", process->pid);
	block = process__read_file(path, ENVIRONMENT_MAX, &length);
	if (!block)
		goto out;
	process->rank = first_number(block, length, rank_variables);
	world = first_number(block, length, sizes);
	process->world_size = world > 0 ? (uint32_t)world : 0;
	value = variable(block, length, "VAPRO");
	process->opted_out = value && !strcmp(value, "off");
	if ((value = variable(block, length, "SLURM_JOB_ID"))) {
		snprintf(process->job_kind, sizeof(process->job_kind), "slurm");
		copy_identity(process->job_id, sizeof(process->job_id), value);
		copy_identity(process->job_step, sizeof(process->job_step), variable(block, length, "SLURM_STEP_ID"));
	} else if ((value = variable(block, length, "PMIX_NAMESPACE"))) {
		snprintf(process->job_kind, sizeof(process->job_kind), "pmix");
		copy_identity(process->job_id, sizeof(process->job_id), value);
	} else if ((value = variable(block, length, "PMI_JOBID"))) {
		snprintf(process->job_kind, sizeof(process->job_kind), "mpi");
		copy_identity(process->job_id, sizeof(process->job_id), value);
	}
	free(block);
out:
	if (!process->job_id[0] && process->rank >= 0) { /* MPICH's launcher names no job: its pid stands for one */
		snprintf(process->job_kind, sizeof(process->job_kind), "mpi");
		snprintf(process->job_id, sizeof(process->job_id), "launcher-%d", launcher_of(process));
	}
	if (!process->job_id[0])
		snprintf(process->job_id, sizeof(process->job_id), "pid-%d", process->pid);
	snprintf(process->job, sizeof(process->job), "%s:%s%s%s", process->job_kind, process->job_id,
		 process->job_step[0] ? "." : "", process->job_step);
}
