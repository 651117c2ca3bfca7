/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The confined reader (ARCHITECTURE section 2.5): only a child that can do nothing else parses what
 * users wrote - ELF, DWARF. Each request has its own child: a copy of the template, which is this program
 * again (an exec, so that it shares no memory with the daemon, neither its secrets nor its maps of the
 * kernel side) and has only loaded it. The child runs as uid 65534, without new privileges, with limits on memory and
 * processor time, and under a seccomp filter that leaves the child memory of its own and one pipe to write to; any
 * other system call kills it. The files are read into the child's memory before the filter closes and before a byte of
 * them is parsed. A child that crashes, hangs, exhausts memory or sends nonsense costs its one request a named error.
 *
 * A request and a response are flat bytes (flat.h); the caller checks every field of the response.
 */
#ifndef VAPRO_CONFINE_H
#define VAPRO_CONFINE_H

#include <errno.h>
#include <stdbool.h>

#include "sandbox/confine_query.h"

/* ---- the caller's side */

/*
 * Sends a request and waits. The same request about unchanged files recently is served from memory.
 * Returns 0, or a negative errno with a sentence in err:
 * -EINVAL  the service refused, in its own words: it cannot read the file
 * -EFBIG   a file's size is out of range, or it is no regular file
 * -EPROTO  the child broke: it crashed, hung, exceeded a limit, made a forbidden call, or sent no whole
 *          response; such a file is not tried again for a minute
 * -EPERM   the child could not be confined, and has read nothing
 * -ENOSYS  the program did not go through confine__main()
 */
int confine__query(const struct confine_query *query, struct confine_response *response, char *err, size_t err_size);

/*
 * From here on confine__query() waits 250 ms at most, and less where it has waited much for the query's owner
 * (confine_owner.h). What takes longer goes on in the background; the same query later has its response. Beside the
 * errors above it then returns, with a sentence in err:
 * -EINPROGRESS  the reader works, or waits for another one of the owner
 * -ETIMEDOUT    a file system does not answer a reader of the owner; no other file of the owner is read meanwhile
 * -EDQUOT       the owner's files have used the time of readers that they may use
 */
void confine__wait_for_none(void);

/* Whether a status says that the same query has another result later. */
static inline bool confine__is_later(int status)
{
	return status == -EINPROGRESS || status == -ETIMEDOUT || status == -EDQUOT;
}

/*
 * Whether a query about a file of a user would have to wait as it does: for a reader at work or, where it is known to
 * be held, for a file system or for the user's share of readers.
 */
bool confine__must_wait(uid_t owner, bool held);

/*
 * A request in the background: its reader runs on processor time that nothing else wants (SCHED_IDLE; 0.4 % of a busy
 * processor), after idle_ms at the least priority (nice 19; 1.6 %), and nothing waits for it.
 */
struct confine_request;

#define CONFINE_BACKGROUND_LIMIT_MS 120000 /* where limit_ms is 0 */
#define CONFINE_IDLE_MS 2000

/* The question, with what it refers to but its files, outlives the request. 0 or as confine__query(). */
int confine_request__begin(const struct confine_query *query, struct confine_request **request, char *err,
			   size_t err_size);

/* -EAGAIN while the reader works. Else, and once only, as confine__query(). */
int confine_request__poll(struct confine_request *request, struct confine_response *response, char *err,
			  size_t err_size);

/* Ends the time on idle processors only, for a response that is wanted soon. */
void confine_request__end_idle(struct confine_request *request);

/* Frees a request, and kills its reader if it still works. */
void confine_request__free(struct confine_request *request);

/* ---- the reader's side */

struct confine_file {
	char *data; /* to the end of the reader; a large file is mapped, privately */
	size_t size;
};

struct confine_service {
	const char *name;
	/* Returns 0 and fills answer, or a negative errno with a sentence in err. Runs confined. */
	int (*response)(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
			struct flat *response, char *err, size_t err_size);
};

/*
 * Must be the first call of main(): in the template it serves requests and does not return, in another
 * process it notes that readers can be started from here. services ends with a NULL name.
 */
void confine__main(int argc, char **argv, const struct confine_service *services);

#endif
