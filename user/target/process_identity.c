// SPDX-License-Identifier: GPL-2.0-or-later
/* Rank, world size, job and opt-out, from a process's environment. */
#include "target/process_private.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENVIRONMENT_MAX (1 << 20)
#define COMMAND_MAX (1 << 16)

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

/* The rank that a process has in its environment; -1: it has none, or cannot be read. */
static int rank_of_pid(pid_t pid)
{
	char path[64], *block;
	size_t length;
	int rank;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	block = process__read_file(path, ENVIRONMENT_MAX, &length);
	rank = block ? first_number(block, length, rank_variables) : -1;
	free(block);
	return rank;
}

bool process__is_launched(pid_t pid)
{
	return rank_of_pid(pid) >= 0;
}

/* Finds the nearest ancestor that is no rank: wrappers between launcher and rank inherit the rank's environment. */
static pid_t launcher_of(const struct process *process)
{
	struct process at = {.pid = process->parent};

	for (int depth = 0; at.pid > 1 && depth < 16; depth++) {
		if (rank_of_pid(at.pid) != process->rank || process__read_stat(&at))
			break;
		at = (struct process){.pid = at.parent};
	}
	return at.pid;
}

/* Sets the host of a job's launcher. What names a machine on that machine only becomes this machine's name. */
static void set_launcher(struct process *process, const char *host, size_t length)
{
	char text[sizeof(process->job_launcher)] = "";

	memcpy(text, host, length < sizeof(text) ? length : sizeof(text) - 1);
	if (!text[0] || !strcmp(text, "localhost") || !strncmp(text, "127.", 4)) {
		memset(text, 0, sizeof(text));
		gethostname(text, sizeof(text) - 1);
	}
	copy_identity(process->job_launcher, sizeof(process->job_launcher), text);
}

/*
 * Writes the id of the launcher of an MPICH job, and returns true where the job has one. MPICH starts a
 * hydra_pmi_proxy on each node, with "--control-port HOST:PORT" of the one mpiexec that they all serve, and with
 * "--pgid N" of the group of ranks: 0, or that of an MPI_Comm_spawn.
 */
static bool read_proxy(struct process *process, char *id, size_t size)
{
	const char *control = NULL, *colon;
	int group = 0, port = -1;
	char path[64], *line;
	size_t length;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", launcher_of(process));
	line = process__read_file(path, COMMAND_MAX, &length);
	for (char *at = line; at && at < line + length; at += strlen(at) + 1) {
		char *next = at + strlen(at) + 1; /* at the end of the block: an empty text */

		if (!strcmp(at, "--control-port"))
			control = next < line + length ? next : NULL;
		else if (!strcmp(at, "--pgid"))
			group = next < line + length ? process__number(next) : 0;
	}
	colon = control ? strrchr(control, ':') : NULL;
	port = colon ? process__number(colon + 1) : -1;
	if (port >= 0) {
		int used = snprintf(id, size, "launcher-%d", port);

		if (group > 0)
			snprintf(id + used, size - (size_t)used, ".%d", group);
		set_launcher(process, control, (size_t)(colon - control));
	}
	free(line);
	return port >= 0;
}

/* The host of Open MPI's mpirun, from "ID;tcp://ADDRESS[,ADDRESS...]:PORT[;...]" that all its ranks have. */
static void read_mpirun(struct process *process, const char *uri)
{
	const char *host = uri ? strstr(uri, "://") : NULL;

	if (host)
		set_launcher(process, host + 3, strcspn(host + 3, ",:;"));
}

static bool is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

/* Writes the id that an MPI launcher, and not the resource manager, gave the process's job. False: none did. */
static bool read_launched(struct process *process, const char *block, size_t length, char *id, size_t size)
{
	const char *space = variable(block, length, "PMIX_NAMESPACE");

	if (space) {
		copy_identity(id, size, space);
		/* Open MPI 4 draws a number of 16 bits from host and pid; later versions name both in the text */
		if (is_number(space))
			read_mpirun(process, variable(block, length, "OMPI_MCA_orte_hnp_uri"));
		return strncmp(space, "slurm", 5) != 0;
	}
	return process->rank >= 0 && variable(block, length, "PMI_RANK") && read_proxy(process, id, size);
}

/*
 * The job is that of the resource manager, with its step. An MPI launcher inside an allocation makes jobs of its own:
 * several may run at once, and their processes have the steps of the launcher's daemons, or none. Without a resource
 * manager the job is the launcher's, with the launcher's host: its number means something on that host only.
 */
static void find_job(struct process *process, const char *block, size_t length)
{
	const char *slurm = variable(block, length, "SLURM_JOB_ID"), *pmi = variable(block, length, "PMI_JOBID");
	const char *kind = variable(block, length, "PMIX_NAMESPACE") ? "pmix" : "mpi";
	char id[sizeof(process->job_id)] = "";
	bool launched = read_launched(process, block, length, id, sizeof(id));

	if (slurm) {
		kind = "slurm";
		copy_identity(process->job_id, sizeof(process->job_id), slurm);
		copy_identity(process->job_step, sizeof(process->job_step),
			      launched ? id : variable(block, length, "SLURM_STEP_ID"));
	} else if (launched || id[0]) {
		copy_identity(process->job_id, sizeof(process->job_id), id);
	} else if (pmi) {
		copy_identity(process->job_id, sizeof(process->job_id), pmi);
	} else if (process->rank >= 0) { /* a launcher that names no job: its pid stands for one */
		snprintf(process->job_id, sizeof(process->job_id), "launcher-%d", launcher_of(process));
		set_launcher(process, "", 0);
	} else {
		return;
	}
	snprintf(process->job_kind, sizeof(process->job_kind), "%s", kind);
}

/*
 * The environment is a user's text, yet it is read here and not in the confined reader: no format is
 * parsed, only a few names are searched in at most ENVIRONMENT_MAX bytes that end in a NUL. The results
 * are a number that must be whole and in range, one comparison, or an identity of which only harmless
 * characters are copied into a field of fixed size. The same holds for the command line of a launcher, and for
 * /proc/PID/stat, status and maps, which the kernel writes: a process chooses only its name and its paths.
 */
void process__read_environment(struct process *process)
{
	static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS",
					    NULL};
	const char *value;
	char path[64], *block;
	size_t length = 0;
	int world;

	snprintf(process->job_kind, sizeof(process->job_kind), "none");
	snprintf(path, sizeof(path), "/proc/%d/environ", process->pid);
	block = process__read_file(path, ENVIRONMENT_MAX, &length);
	process->rank = block ? first_number(block, length, rank_variables) : -1;
	process->launched = process->rank >= 0;
	world = block ? first_number(block, length, sizes) : 0;
	/* a size that has no such rank is another launcher's, such as an allocation's around an mpiexec */
	process->world_size = world > 0 && world > process->rank ? (uint32_t)world : 0;
	value = block ? variable(block, length, "VAPRO") : NULL;
	process->opted_out = value && !strcmp(value, "off");
	if (block)
		find_job(process, block, length);
	free(block);
	if (!process->job_id[0]) {
		snprintf(process->job_id, sizeof(process->job_id), "pid-%d", process->pid);
		set_launcher(process, "", 0);
	}
	snprintf(process->job, sizeof(process->job), "%s:%s%s%s%s%s", process->job_kind, process->job_id,
		 process->job_step[0] ? "." : "", process->job_step, process->job_launcher[0] ? "@" : "",
		 process->job_launcher);
}
