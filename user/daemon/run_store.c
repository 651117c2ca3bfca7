// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/run_store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/grow.h"
#include "daemon/run_store_write.h"

enum {
	CELLS_MOST = 1 << 18, /* of a job: one with more has no profile */
	RESULT_MOST = 8192,   /* bytes that the copy may write */
};

#define LEAST_S 2.0 /* shorter runs have no profile */

/* A thread of the node, by its number. */
struct own_thread {
	uint32_t job; /* its place, + 1; 0: not known */
	uint32_t number;
	bool ended;
};

/* A state of the node, by its number; texts are its own. to NULL: not known. */
struct own_state {
	struct vapro_state about;
};

struct job {
	char *name;
	uint32_t user;
	struct profile *profile;
	uint32_t *states; /* number in the profile, + 1, by number of the node */
	size_t state_capacity;
	uint32_t state_count, threads, ended;
	uint64_t begin_ns, end_ns; /* UTC of its fragments; 0: none yet */
	bool active;		   /* a fragment came since the last window */
	bool over, failed;
};

struct run_store {
	int directory;
	const char *host;
	bool by_instructions;
	struct stream_clock clock;
	struct own_thread *threads;
	size_t thread_capacity;
	struct own_state *states;
	size_t state_capacity;
	struct job *jobs; /* those that are over and written have no name */
	size_t job_count, job_capacity;
	size_t writing; /* place of the job that is being written, + 1; 0: none */
	pid_t pid;
	int result;
	char text[RESULT_MOST];
	size_t length;
};

struct run_store *run_store__new(const char *directory, const char *host, bool by_instructions, char *err,
				 size_t err_size)
{
	struct run_store *store = calloc(1, sizeof(*store));
	struct stat status;

	if (!store) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	*store = (struct run_store){.host = host, .by_instructions = by_instructions, .result = -1};
	store->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->directory < 0 || fstat(store->directory, &status)) {
		snprintf(err, err_size, "%s: %s; it has to be a directory that exists", directory, strerror(errno));
	} else if (status.st_mode & (S_IWGRP | S_IWOTH)) {
		snprintf(err, err_size, "%s: others than its owner can write it", directory);
	} else {
		return store;
	}
	run_store__free(store);
	return NULL;
}

static void clear_job(struct job *job)
{
	profile__free(job->profile);
	free(job->states);
	free(job->name);
	*job = (struct job){.name = NULL};
}

static void clear_state(struct own_state *state)
{
	const char *const texts[] = {state->about.from,	  state->about.to,	    state->about.labels,
				     state->about.common, state->about.from_symbol, state->about.to_symbol};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		free((char *)texts[i]);
	*state = (struct own_state){.about = {.to = NULL}};
}

void run_store__free(struct run_store *store)
{
	if (!store)
		return;
	if (store->pid > 0) {
		kill(store->pid, SIGKILL);
		waitpid(store->pid, NULL, 0);
	}
	if (store->result >= 0)
		close(store->result);
	if (store->directory >= 0)
		close(store->directory);
	for (size_t i = 0; i < store->job_count; i++)
		clear_job(&store->jobs[i]);
	for (size_t i = 0; i < store->state_capacity; i++)
		clear_state(&store->states[i]);
	free(store->jobs);
	free(store->states);
	free(store->threads);
	free(store);
}

/* Makes a job at a place. Returns the place, or SIZE_MAX. */
static size_t make_job(struct run_store *store, size_t place, const char *name, uint32_t user)
{
	if (grow(&store->jobs, &store->job_capacity, place + 1, sizeof(*store->jobs)))
		return SIZE_MAX;
	store->jobs[place] =
	    (struct job){.name = strdup(name), .user = user, .profile = profile__new(store->by_instructions)};
	if (place == store->job_count)
		store->job_count++;
	if (store->jobs[place].name && store->jobs[place].profile)
		return place;
	clear_job(&store->jobs[place]);
	return SIZE_MAX;
}

/* Returns the place of a job, which is made where it is new, or SIZE_MAX. */
static size_t place_of(struct run_store *store, const char *name, uint32_t user)
{
	size_t free_place = store->job_count;

	for (size_t i = 0; i < store->job_count; i++) {
		const struct job *job = &store->jobs[i];

		if (!job->name)
			free_place = i;
		else if (!job->over && job->user == user && !strcmp(job->name, name))
			return i;
	}
	return make_job(store, free_place, name, user);
}

static int add_thread(struct run_store *store, const struct vapro_thread *thread)
{
	struct vapro_thread own = *thread;
	struct own_thread *at;
	size_t place;

	if (grow(&store->threads, &store->thread_capacity, (size_t)thread->id + 1, sizeof(*store->threads)))
		return -ENOMEM;
	at = &store->threads[thread->id];
	if (at->job)
		return 0;
	place = place_of(store, thread->job ? thread->job : "", thread->user);
	if (place == SIZE_MAX)
		return -ENOMEM;
	*at = (struct own_thread){.job = (uint32_t)place + 1, .number = store->jobs[place].threads++};
	own.id = at->number;
	return profile__add_thread(store->jobs[place].profile, &own);
}

/* Copies a text; NULL of NULL. Returns false when out of memory. */
static bool copy(const char *text, const char **own)
{
	*own = text ? strdup(text) : NULL;
	return !text || *own;
}

static int add_state(struct run_store *store, const struct vapro_state *state)
{
	struct own_state *own;

	if (grow(&store->states, &store->state_capacity, (size_t)state->id + 1, sizeof(*store->states)))
		return -ENOMEM;
	own = &store->states[state->id];
	clear_state(own);
	own->about.class = state->class;
	return copy(state->from, &own->about.from) && copy(state->to, &own->about.to) &&
		       copy(state->labels, &own->about.labels) && copy(state->common, &own->about.common) &&
		       copy(state->from_symbol, &own->about.from_symbol) &&
		       copy(state->to_symbol, &own->about.to_symbol)
		   ? 0
		   : -ENOMEM;
}

/* Finds the number of a state in the profile of a job, which gets it at its first fragment. 0 or -ENOMEM. */
static int state_of(const struct run_store *store, struct job *job, uint32_t state, uint32_t *number)
{
	int error = grow(&job->states, &job->state_capacity, (size_t)state + 1, sizeof(*job->states));

	if (!error && !job->states[state]) {
		struct vapro_state own = store->states[state].about;

		own.id = job->state_count;
		error = profile__add_state(job->profile, &own);
		if (!error)
			job->states[state] = ++job->state_count;
	}
	if (!error)
		*number = job->states[state] - 1;
	return error;
}

/* Returns the job of a bundle that a profile takes, or NULL. */
static struct job *job_of(const struct run_store *store, const struct vapro_bundle *bundle)
{
	struct job *job;

	if (bundle->thread >= store->thread_capacity || !store->threads[bundle->thread].job ||
	    bundle->state >= store->state_capacity || !store->states[bundle->state].about.to ||
	    bundle->flags & VAPRO_BUNDLE_OPEN)
		return NULL;
	job = &store->jobs[store->threads[bundle->thread].job - 1];
	return job->over || job->failed ? NULL : job;
}

/* Notes that a job goes on, from when to when it was seen, and whether there is room for more of it. */
static void note_time(struct job *job, const struct vapro_bundle *bundle)
{
	if (!job->begin_ns || bundle->start_ns < job->begin_ns)
		job->begin_ns = bundle->start_ns;
	if (bundle->end_ns > job->end_ns)
		job->end_ns = bundle->end_ns;
	job->active = true;
	job->failed |= job->profile->cell_count > CELLS_MOST;
}

static int add_bundle(struct run_store *store, const struct vapro_bundle *bundle)
{
	uint64_t offset = store->clock.utc_ns - store->clock.mono_ns;
	struct job *job = job_of(store, bundle);
	struct vapro_bundle own = *bundle;
	int error;

	if (!job)
		return 0;
	own.thread = store->threads[bundle->thread].number;
	own.start_ns += offset;
	own.end_ns += offset;
	error = state_of(store, job, bundle->state, &own.state);
	if (!error)
		error = profile__add_bundle(job->profile, &own);
	note_time(job, &own);
	return error == -EINVAL ? 0 : error;
}

static void note_seen(struct run_store *store, const struct stream_seen *seen)
{
	struct own_thread *thread = seen->thread < store->thread_capacity ? &store->threads[seen->thread] : NULL;

	if (!thread || !thread->job || thread->ended || !seen->to_ns)
		return;
	thread->ended = true;
	store->jobs[thread->job - 1].ended++;
}

/* Ends a job: numbers of its threads are not used any more, and a short one has no profile. */
static void end_job(struct run_store *store, size_t place)
{
	struct job *job = &store->jobs[place];

	job->over = true;
	for (size_t i = 0; i < store->thread_capacity; i++)
		if (store->threads[i].job == place + 1)
			store->threads[i].job = 0;
	if (job->failed || profile__end(job->profile) || profile__length_s(job->profile) < LEAST_S)
		clear_job(job);
}

/* A job is over when all its threads have ended, and a window passed without a fragment of it; or the run is. */
static void end_window(struct run_store *store, bool last)
{
	for (size_t i = 0; i < store->job_count; i++) {
		struct job *job = &store->jobs[i];

		if (!job->name || job->over)
			continue;
		if (last || (job->ended >= job->threads && !job->active))
			end_job(store, i);
		else
			job->active = false;
	}
}

int run_store__put(struct run_store *store, const struct stream_event *event)
{
	switch (event->type) {
	case STREAM_CLOCK:
		store->clock = event->clock;
		return 0;
	case STREAM_THREAD:
		return add_thread(store, &event->thread);
	case STREAM_STATE:
		return add_state(store, &event->state);
	case STREAM_BUNDLE:
		return add_bundle(store, &event->bundle);
	case STREAM_SEEN:
		note_seen(store, &event->seen);
		return 0;
	case STREAM_GONE:
		if (event->gone.state < store->state_capacity)
			clear_state(&store->states[event->gone.state]);
		return 0;
	case STREAM_WINDOW:
		end_window(store, event->window.last);
		return 0;
	default:
		return 0;
	}
}

/* Starts to write the next job that is over. Returns whether it could; if not, text is a sentence. */
static bool start(struct run_store *store, size_t place, char *text, size_t size)
{
	const struct job *job = &store->jobs[place];
	const struct run_store_job of = {.job = job->name,
					 .host = store->host,
					 .user = job->user,
					 .begin_ns = job->begin_ns,
					 .end_ns = job->end_ns,
					 .profile = job->profile};
	uid_t uid = job->user ? job->user - 1 : getuid();
	char err[256] = "";
	int directory = run_store_write__directory(store->directory, uid, err, sizeof(err));
	pid_t pid = directory < 0 ? -1 : run_store_write__start(&of, uid, directory, &store->result);

	if (directory >= 0)
		close(directory);
	if (pid < 0) {
		snprintf(text, size, "the profile of job %s cannot be stored: %s", job->name,
			 directory < 0 ? err : strerror(-pid));
		return false;
	}
	store->pid = pid;
	store->writing = place + 1;
	store->length = 0;
	return true;
}

/* Ends the copy that is writing. Returns what it wrote, malloc'ed; NULL: nothing. */
static char *finish(struct run_store *store, bool *warning)
{
	struct job *job = &store->jobs[store->writing - 1];
	char *text = NULL;
	int status = 0;

	waitpid(store->pid, &status, 0);
	close(store->result);
	store->text[store->length] = '\0';
	*warning = store->text[0] == '!' || status;
	if (status && asprintf(&text, "the profile of job %s was not stored: the writer ended early", job->name) < 0)
		text = NULL;
	else if (!status && store->length)
		text = strdup(*warning ? store->text + 1 : store->text);
	store->pid = 0;
	store->result = -1;
	store->writing = 0;
	clear_job(job);
	return text;
}

/* Reads what the copy has written. Returns whether it has ended. */
static bool read_result(struct run_store *store)
{
	ssize_t got;

	while ((got = read(store->result, store->text + store->length, sizeof(store->text) - 1 - store->length)) > 0)
		store->length += (size_t)got;
	/* what writes more than there is room for is read no further, and is ended by the closed pipe */
	return !got || store->length == sizeof(store->text) - 1 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

/* Returns the place of the first job that is to be written; that of none: their number. */
static size_t next_job(const struct run_store *store)
{
	size_t place = 0;

	while (place < store->job_count && (!store->jobs[place].name || !store->jobs[place].over))
		place++;
	return place;
}

bool run_store__step(struct run_store *store, char **text, bool *warning)
{
	size_t place = next_job(store);
	char err[512];

	*text = NULL;
	if (store->writing && read_result(store)) {
		*text = finish(store, warning);
	} else if (!store->writing && place < store->job_count && !start(store, place, err, sizeof(err))) {
		clear_job(&store->jobs[place]);
		*warning = true;
		*text = strdup(err);
	}
	return *text;
}

bool run_store__busy(const struct run_store *store)
{
	return next_job(store) < store->job_count;
}
