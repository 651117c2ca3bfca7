/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One process as /proc shows it: identity, mappings, place in a parallel job. Everything read here is
 * the process's own and may be nonsense; all of it is bounded and never trusted.
 */
#ifndef VAPRO_PROCESS_H
#define VAPRO_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/job_names.h"

/* An executable mapping: no others are read. */
struct process_mapping {
	uint64_t start, end, offset; /* addresses, and the file offset of start */
	uint64_t device, inode;
	const char *path; /* as the process sees it; owned by the process object */
};

enum { PROCESS_MOVED_MOST = 4 };

/* Which ABI the MPI library of a process has; the standard one is that of MPI 5. */
enum process_mpi { PROCESS_NO_MPI, PROCESS_OPEN_MPI, PROCESS_MPICH, PROCESS_STANDARD_ABI };

/* The file that defines a process's MPI: a library, or the executable. */
struct process_library {
	enum process_mpi mpi;
	uint64_t device, inode; /* as mappings have them */
	uint32_t others;	/* further MPI libraries that the process maps, whose calls are not seen */
};

struct process {
	pid_t pid, parent;
	uint64_t start_time; /* clock ticks since boot, as /proc/PID/stat has it */
	uint64_t read_ns;    /* CLOCK_MONOTONIC when its reading began: a later exec made it another program */
	char exe[4096];	     /* path of the executable, as process__read_exe() has it */
	char name[128];	     /* the same, shortened in the middle: for messages */
	uid_t uid;
	uid_t owner;		/* whose costs and rooms are its own: see process__owner() */
	bool traced;		/* by ptrace: not a target */
	bool opted_out;		/* VAPRO=off in its environment */
	bool filtered;		/* by seccomp */
	const char *translator; /* binary translator that executes its code (translator.h), or NULL: no target then */
	int rank;		/* -1 unknown */
	bool launched;		/* its environment has the rank from an MPI launcher or a resource manager */
	uint32_t world_size;	/* 0 unknown */
	char job_kind[16];	/* of the resource manager or the launcher; none */
	char job_id[96];
	char job_step[96];
	char job_launcher[73]; /* host whose launcher chose the id; empty: a resource manager did, or it has the host */
	char job[288];	       /* kind, id, step and launcher as one text: the identity among the user's jobs */
	struct job_names names;		/* what people call the job */
	struct process_library library; /* filled by mpi_files__look(), from the mappings */
	struct process_mapping *mappings;
	size_t mapping_count;
	/* mappings of files whose code lies in memory of the process's own, as in huge pages: see process__is_moved()
	 */
	struct process_mapping moved[PROCESS_MOVED_MOST];
	size_t moved_count;
	char *text; /* holds the mappings' paths */
};

/*
 * Reads a process. Returns 0, -ESRCH where it does not exist (any more), -EACCES where it may not be
 * read, or -ENOMEM; a sentence goes to err.
 */
int process__read(pid_t pid, struct process **out, char *err, size_t err_size);
void process__free(struct process *process);

/*
 * process__read() in two steps, for callers that look at many and want few: mappings, then the rest. Errors are the
 * same.
 */
int process__glance(pid_t pid, struct process **out, char *err, size_t err_size);
int process__complete(struct process *process, char *err, size_t err_size);

/* Path of a process's executable, which may carry " (deleted)"; empty where it is unknown. */
void process__read_exe(pid_t pid, char *buf, size_t size);

/* Returns the name of the binary translator that a process executes, or NULL; target/translator.h. */
const char *process__translator(pid_t pid);

/* Returns whether an MPI launcher or a resource manager gave a process, or one that it descends from, a rank. */
bool process__is_launched(pid_t pid);

/* Writes a process's command line, its words joined by blanks, cut at size; empty where it is unknown. */
void process__read_command(pid_t pid, char *buf, size_t size);

/* Writes a user's name as this machine's own list of users has it; empty where it is not there. No server is contacted.
 */
void process__user_name(uid_t uid, char *buf, size_t size);

/* Reads the mappings again (dlopen). 0 or -errno. */
int process__reread_mappings(struct process *process);

/* The executable mapping that holds an address, or NULL. */
const struct process_mapping *process__mapping_at(const struct process *process, uint64_t address);

/* The first mapping whose base name matches a glob, or NULL. */
const struct process_mapping *process__mapping_named(const struct process *process, const char *glob);

/* The first mapping of the process's executable, or NULL. */
const struct process_mapping *process__executable(const struct process *process);

/* Returns a process's MPI, as process->library has it. *library (may be NULL) is the mapping that defines it. */
enum process_mpi process__mpi(const struct process *process, const struct process_mapping **library);

/*
 * Whether code of a file was replaced in a process by memory of its own, as tools do that move code into huge pages. A
 * probe is set in pages of the file only and takes no effect there.
 */
bool process__is_moved(const struct process *process, uint64_t device, uint64_t inode);

/* Returns the path of a process's MPI, as process->library has it, where its code was replaced; NULL: it was not. */
const char *process__moved_mpi(const struct process *process);

/* Gives a path that opens the mapped file from here, whatever its name space: /proc/PID/map_files/... */
void process__map_file(const struct process *process, const struct process_mapping *mapping, char *buf, size_t size);

/*
 * Returns whose costs and rooms a process's are: its user, or where it runs in a user namespace the owner of the
 * outermost one below vaprod's, since a user has many numbers in a namespace of that user's. uid: where that is
 * unknown.
 */
uid_t process__owner(pid_t pid, uid_t uid);

/* Whether two processes are one rank of one job of one user: a process itself says which job it belongs to. */
bool process__same_rank(const struct process *a, const struct process *b);

/*
 * Whether a process is no rank but the child (or a helper) of one: it inherited the environment of a
 * parent that is the same rank and has an MPI of its own, as has_mpi() says of a process with mappings. A mere wrapper
 * of a rank has no MPI.
 */
bool process__child_of_rank(const struct process *process, bool (*has_mpi)(void *ctx, struct process *above),
			    void *ctx);

/* Lists a process's threads, at most max; returns how many there are. */
size_t process__threads(pid_t pid, pid_t *tids, size_t max);

/* The process that traces pid (ptrace); 0: none, or unknown. */
pid_t process__tracer(pid_t pid);

/* The state of a thread, as in struct process_activity; ? where it is unknown. */
char process__thread_state(pid_t tid);

/* Whether pid descends from ancestor (or is it). */
bool process__descends(pid_t pid, pid_t ancestor);

/* Whether the process of this number is still the one that was read. */
bool process__is_same(const struct process *process);

/* A process's age in s. */
double process__age(const struct process *process);

/* Present activity of a process's main thread. */
struct process_activity {
	char state;	/* as ps(1) has it: R, S, D, T, ...; ? unknown */
	double cpu_s;	/* CPU time of all threads of the process */
	char call[32];	/* system call that the thread sleeps in; empty where none, or running */
	char file[256]; /* file that the call reads or writes, where known */
};

/* 0, or -errno: -ESRCH where there is no such process (any more). Unreadable members stay empty. */
int process__activity(pid_t pid, struct process_activity *activity);

/* read and write system calls so far (/proc/PID/io), or 0. */
uint64_t process__io_calls(pid_t pid);

/*
 * Calls visit for every readable process of the node whose mappings (process__glance()) wants() accepts, until visit
 * returns false.
 */
void process__each(bool (*wants)(void *ctx, const struct process *process),
		   bool (*visit)(void *ctx, const struct process *process), void *ctx);

#endif
