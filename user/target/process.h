/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One process as /proc tells it: identity, what it maps, its place in a parallel job. Everything read
 * here is the process's own and may be nonsense; it is bounded and never trusted.
 */
#ifndef VAPRO_PROCESS_H
#define VAPRO_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process_mapping {
	uint64_t start, end, offset; /* addresses, and the file offset of start */
	uint64_t device, inode;
	bool executable;
	const char *path; /* as the process sees it; owned by the process object */
};

/* Which MPI a process has. */
enum process_mpi { PROCESS_NO_MPI, PROCESS_OPEN_MPI, PROCESS_MPICH };

struct process {
	pid_t pid, parent;
	uint64_t start_time; /* clock ticks since boot, as /proc/PID/stat has it */
	char exe[512];
	uid_t uid;
	bool traced;	     /* by ptrace: left alone */
	bool opted_out;	     /* VAPRO=off in its environment */
	bool filtered;	     /* by seccomp */
	int rank;	     /* -1 unknown */
	uint32_t world_size; /* 0 unknown */
	char job_kind[16];   /* slurm, pmix, mpi, none */
	char job_id[96];
	char job_step[32];
	char job[160];		 /* the three as one text: the job's identity within its user's */
	enum process_mpi linked; /* statically, into the executable: filled by static_mpi__look */
	struct process_mapping *mappings;
	size_t mapping_count;
	char *text; /* of the mappings' paths */
};

/*
 * Reads a process. Returns 0, -ESRCH where it does not exist (any more), -EACCES where it may not be
 * read, or -ENOMEM; a sentence goes to err.
 */
int process__read(pid_t pid, struct process **out, char *err, size_t err_size);
void process__free(struct process *process);

/*
 * The same in two steps, for those who look at many and want few: what it runs and maps, then the rest.
 * Errors as above.
 */
int process__glance(pid_t pid, struct process **out, char *err, size_t err_size);
int process__complete(struct process *process, char *err, size_t err_size);

/* Path of a process's executable, which may carry " (deleted)"; empty where it cannot be told. */
void process__read_exe(pid_t pid, char *buf, size_t size);

/* Reads the mappings again (dlopen). 0 or -errno. */
int process__reread_mappings(struct process *process);

/* The mapping that holds an address, or NULL. */
const struct process_mapping *process__mapping_at(const struct process *process, uint64_t address);

/* The first executable mapping whose base name matches a glob, or NULL. */
const struct process_mapping *process__mapping_named(const struct process *process, const char *glob);

/* The first executable mapping of its own executable, or NULL. */
const struct process_mapping *process__executable(const struct process *process);

/* Which MPI a library is by its path, if any. */
enum process_mpi process__mpi_of_path(const char *path);

/*
 * Which MPI a process has: by the name of a library it maps, else what is known to be linked into its
 * executable. *library (may be NULL) is the mapping of the one that defines it.
 */
enum process_mpi process__mpi(const struct process *process, const struct process_mapping **library);

/* Path through which the mapped file can be opened from here, whatever its name space: /proc/PID/map_files/... */
void process__map_file(const struct process *process, const struct process_mapping *mapping, char *buf, size_t size);

/* Whether two are one rank of one job: a user's job, since a process says itself which job it belongs to. */
bool process__same_rank(const struct process *a, const struct process *b);

/*
 * Whether a process is no rank but the child (or a helper) of one: it inherited the environment of a
 * parent that is the same rank and has an MPI of its own. A wrapper that only started the rank has none.
 */
bool process__child_of_rank(const struct process *process);

/* Threads of a process, at most max; returns how many there are. */
size_t process__threads(pid_t pid, pid_t *tids, size_t max);

/* The process that traces one (ptrace); 0: none, or it cannot be read. */
pid_t process__tracer(pid_t pid);

/* The state of a thread, as in struct process_doing; ? where it cannot be told. */
char process__thread_state(pid_t tid);

/* Whether pid descends from ancestor (or is it). */
bool process__descends(pid_t pid, pid_t ancestor);

/* Seconds since it began. */
double process__age(const struct process *process);

/* What the main thread of a process is at just now. */
struct process_doing {
	char state;	/* as ps(1) has it: R, S, D, T, ...; ? unknown */
	double cpu_s;	/* CPU time of all its threads since it began */
	char call[32];	/* the system call that it sleeps in; empty where it is in none, or runs */
	char file[256]; /* what that reads or writes, where it can be told */
};

/* 0, or -errno: -ESRCH where there is no such process (any more). What may not be read stays empty. */
int process__doing(pid_t pid, struct process_doing *doing);

/* read and write system calls so far (/proc/PID/io), or 0. */
uint64_t process__io_calls(pid_t pid);

#endif
