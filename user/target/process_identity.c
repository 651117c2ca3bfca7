// SPDX-License-Identifier: GPL-2.0-or-later
/* Rank, world size, job and opt-out, from a process's environment. */
#include "target/process_names.h"
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

/* Set by launchers of MPI jobs and by resource managers: Open MPI, PMIx, PMI, MVAPICH2, PALS, Flux, jsrun, ALPS, Slurm.
 */
static const char *const rank_variables[] = {
    "OMPI_COMM_WORLD_RANK", "PMIX_RANK",	  "PMI_RANK",	 "MV2_COMM_WORLD_RANK", "PALS_RANKID",
    "FLUX_TASK_RANK",	    "JSM_NAMESPACE_RANK", "ALPS_APP_PE", "SLURM_PROCID",	NULL};
static const char *const size_variables[] = {
    "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "FLUX_JOB_SIZE", "JSM_NAMESPACE_SIZE",
    "SLURM_NTASKS",	    NULL};

/*
 * What launchers of distributed programs without MPI set (torchrun and others). Such a launcher may itself be a task
 * of a resource manager, whose variables its processes inherit: the address where they meet makes theirs the narrower.
 */
struct meeting {
	int rank, size; /* -1: none */
	const char *host, *port;
};

static struct meeting read_meeting(const char *block, size_t length)
{
	struct meeting meeting = {.rank = process__number(variable(block, length, "RANK")),
				  .size = process__number(variable(block, length, "WORLD_SIZE")),
				  .host = variable(block, length, "MASTER_ADDR"),
				  .port = variable(block, length, "MASTER_PORT")};

	if (meeting.rank < 0 || meeting.size <= meeting.rank)
		meeting.rank = meeting.size = -1;
	if (meeting.rank < 0 || !meeting.host || !*meeting.host || process__number(meeting.port) < 0)
		meeting.host = meeting.port = NULL;
	return meeting;
}

/* The rank of an environment; -1: none. */
static int rank_of(const char *block, size_t length)
{
	struct meeting meeting = read_meeting(block, length);
	int rank = meeting.host ? meeting.rank : first_number(block, length, rank_variables);

	return rank >= 0 ? rank : meeting.rank;
}

/* Reads the environment of a process, to be freed by the caller; NULL: it cannot be read. */
static char *read_block(pid_t pid, size_t *length)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	return process__read_file(path, ENVIRONMENT_MAX, length);
}

bool process__is_launched(pid_t pid)
{
	size_t length;
	char *block = read_block(pid, &length);
	bool launched = block && first_number(block, length, rank_variables) >= 0;

	free(block);
	return launched;
}

/* Finds the nearest ancestor that is no rank: wrappers between launcher and rank inherit the rank's environment. */
static pid_t launcher_of(const struct process *process)
{
	struct process at = {.pid = process->parent};

	for (int depth = 0; at.pid > 1 && depth < 16; depth++) {
		size_t length;
		char *block = read_block(at.pid, &length);
		int rank = block ? rank_of(block, length) : -1;

		free(block);
		if (rank != process->rank || process__read_stat(&at))
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

/* Resource managers; Flux may run inside of another one. */
static const struct manager {
	const char *kind, *id;
	const char *index; /* of a job in an array, where the id does not have it */
	const char *step;
	const char *sign;				       /* variable without which the id is another program's */
	const char *name, *account, *partition, *nodes, *user; /* what people call the job; NULL: no such variable */
} managers[] = {
    {.kind = "slurm",
     .id = "SLURM_JOB_ID",
     .step = "SLURM_STEP_ID",
     .name = "SLURM_JOB_NAME",
     .account = "SLURM_JOB_ACCOUNT",
     .partition = "SLURM_JOB_PARTITION",
     .nodes = "SLURM_JOB_NUM_NODES",
     .user = "SLURM_JOB_USER"},
    {.kind = "pbs",
     .id = "PBS_JOBID",
     .step = "PALS_APID",
     .name = "PBS_JOBNAME",
     .account = "PBS_ACCOUNT",
     .partition = "PBS_QUEUE",
     .nodes = "PBS_NUM_NODES",
     .user = "PBS_O_LOGNAME"},
    {.kind = "lsf",
     .id = "LSB_JOBID",
     .index = "LSB_JOBINDEX",
     .name = "LSB_JOBNAME",
     .account = "LSB_PROJECT_NAME",
     .partition = "LSB_QUEUE",
     .user = "LSFUSER"},
    {.kind = "cobalt",
     .id = "COBALT_JOBID",
     .step = "ALPS_APP_ID",
     .account = "COBALT_PROJECT",
     .partition = "COBALT_QUEUE",
     .nodes = "COBALT_JOBSIZE"},
    {.kind = "sge",
     .id = "JOB_ID",
     .index = "SGE_TASK_ID",
     .sign = "SGE_TASK_ID",
     .name = "JOB_NAME",
     .account = "SGE_ACCOUNT",
     .partition = "QUEUE",
     .nodes = "NHOSTS",
     .user = "SGE_O_LOGNAME"},
    {.kind = "flux", .id = "FLUX_JOB_ID", .name = "FLUX_JOB_NAME", .nodes = "FLUX_JOB_NNODES"},
};

static const struct manager *manager_of(const char *block, size_t length)
{
	for (size_t i = 0; i < sizeof(managers) / sizeof(managers[0]); i++) {
		const char *id = variable(block, length, managers[i].id);

		if (id && *id && (!managers[i].sign || variable(block, length, managers[i].sign)))
			return &managers[i];
	}
	return NULL;
}

/* Sets a resource manager's job. step: of a launcher inside of its allocation, or empty. */
static void set_managed(struct process *process, const struct manager *manager, const char *block, size_t length,
			const char *step)
{
	const char *index = manager->index ? variable(block, length, manager->index) : NULL;
	size_t used;

	copy_identity(process->job_id, sizeof(process->job_id), variable(block, length, manager->id));
	used = strlen(process->job_id);
	if (process__number(index) > 0)
		snprintf(process->job_id + used, sizeof(process->job_id) - used, "_%d", process__number(index));
	if (!*step && strcmp(manager->kind, "flux"))
		step = variable(block, length, "FLUX_JOB_ID");
	if ((!step || !*step) && manager->step)
		step = variable(block, length, manager->step);
	copy_identity(process->job_step, sizeof(process->job_step), step);
}

/* The value of a variable of which there may be none. */
static const char *optional(const char *block, size_t length, const char *name)
{
	return name ? variable(block, length, name) : NULL;
}

/* Sets what people call a resource manager's job: from the file of its prolog, else from the environment. */
static void name_job(struct process *process, const struct manager *manager, const char *block, size_t length)
{
	struct job_names *names = &process->names;

	if (process_names__read(PROCESS_NAMES_DIRECTORY, process->job_id, process->uid, names))
		return;
	*names = (struct job_names){.source = JOB_NAMES_ENVIRONMENT};
	job_names__copy(names->name, optional(block, length, manager->name));
	job_names__copy(names->account, optional(block, length, manager->account));
	job_names__copy(names->partition, optional(block, length, manager->partition));
	job_names__copy(names->user, optional(block, length, manager->user));
	names->nodes = job_names__nodes(optional(block, length, manager->nodes));
	if (!names->name[0] && !names->account[0] && !names->partition[0] && !names->user[0] && !names->nodes)
		names->source = JOB_NAMES_NONE;
}

/*
 * The job is that of the resource manager, with its step. A launcher inside an allocation makes jobs of its own:
 * several may run at once, and their processes have the steps of the launcher's daemons, or none. Without a resource
 * manager the job is the launcher's, with the launcher's host: its number means something on that host only.
 */
static void find_job(struct process *process, const char *block, size_t length)
{
	const struct manager *manager = manager_of(block, length);
	struct meeting meeting = read_meeting(block, length);
	const char *pmi = variable(block, length, "PMI_JOBID");
	const char *kind = variable(block, length, "PMIX_NAMESPACE") ? "pmix" : "mpi";
	char id[sizeof(process->job_id)] = "";
	bool launched = false;

	if (meeting.host) {
		kind = "distributed";
		launched = true;
		copy_identity(id, sizeof(id), meeting.port);
		set_launcher(process, meeting.host, strlen(meeting.host));
	} else {
		launched = read_launched(process, block, length, id, sizeof(id));
	}
	if (manager) {
		kind = manager->kind;
		set_managed(process, manager, block, length, launched ? id : "");
		name_job(process, manager, block, length);
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

/* Reads the rank and the number of ranks. */
static void read_rank(struct process *process, const char *block, size_t length)
{
	struct meeting meeting = read_meeting(block, length);
	int world;

	process->rank = rank_of(block, length);
	process->launched = first_number(block, length, rank_variables) >= 0;
	world = meeting.host || !process->launched ? meeting.size : first_number(block, length, size_variables);
	/* a size that has no such rank is another launcher's, such as an allocation's around an mpiexec */
	process->world_size = world > 0 && world > process->rank ? (uint32_t)world : 0;
}

/*
 * The environment is a user's text, yet it is read here and not in the confined reader: no format is
 * parsed, only a few names are searched in at most ENVIRONMENT_MAX bytes that end in a NUL. The results
 * are a number that must be whole and in range, one comparison, or a text of which only harmless
 * characters are copied into a field of fixed size. The same holds for the command line of a launcher, and for
 * /proc/PID/stat, status and maps, which the kernel writes: a process chooses only its name and its paths.
 */
void process__read_environment(struct process *process)
{
	const char *value;
	size_t length;
	char *block = read_block(process->pid, &length);

	snprintf(process->job_kind, sizeof(process->job_kind), "none");
	process->rank = -1;
	process->world_size = 0;
	process->launched = process->opted_out = false;
	process->names = (struct job_names){.source = JOB_NAMES_NONE};
	if (block) {
		read_rank(process, block, length);
		value = variable(block, length, "VAPRO");
		process->opted_out = value && !strcmp(value, "off");
		find_job(process, block, length);
	}
	free(block);
	if (!process->job_id[0]) {
		snprintf(process->job_id, sizeof(process->job_id), "pid-%d", process->pid);
		set_launcher(process, "", 0);
	}
	snprintf(process->job, sizeof(process->job), "%s:%s%s%s%s%s", process->job_kind, process->job_id,
		 process->job_step[0] ? "." : "", process->job_step, process->job_launcher[0] ? "@" : "",
		 process->job_launcher);
}
