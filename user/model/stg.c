/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model/stg_private.h"

#include "base/grow.h"
#include "base/intern.h"
#include "base/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct stg_state unseen = {
    .about = {.id = STG_UNSEEN, .class = VAPRO_COMPUTATION, .to = STG_UNSEEN_TEXT, .labels = "", .common = ""},
    .kind = UINT32_MAX,
    .common = UINT32_MAX,
};

struct stg *stg__new(void)
{
	struct stg *stg = calloc(1, sizeof(*stg));

	if (!stg)
		return NULL;
	stg->texts = intern__new();
	if (!stg->texts || stg__new_index(stg)) {
		stg__free(stg);
		return NULL;
	}
	return stg;
}

void stg__free(struct stg *stg)
{
	if (!stg)
		return;
	for (size_t i = 0; i < stg->job_count; i++)
		stg__free_job(&stg->jobs[i]);
	free(stg->jobs);
	free(stg->threads);
	free(stg->states);
	stg__free_index(stg);
	intern__free(stg->texts);
	free(stg);
}

/* Interns a text; false when out of memory. */
static bool keep(struct stg *stg, const char **text, uint32_t *id)
{
	*id = intern__id(stg->texts, *text);
	if (*id == INTERN_NONE)
		return false;
	*text = intern__text(stg->texts, *id);
	return true;
}

/* Equal pairs get equal numbers. */
static int number_of(struct table *table, uint64_t a, uint64_t b, uint32_t *count, uint32_t *id)
{
	if (table__get(table, a, b, id))
		return 0;
	*id = *count;
	if (table__put(table, a, b, *id))
		return -ENOMEM;
	++*count;
	return 0;
}

/* The job name of a process counts within its user only: the same name of another user is another job. */
static int find_job(struct stg *stg, const struct vapro_thread *thread, uint32_t name_id, uint32_t *job)
{
	if (table__get(stg->jobs_by_name, name_id, thread->user, job))
		return 0;
	while (stg->free_job < stg->job_count && stg->jobs[stg->free_job].name)
		stg->free_job++;
	*job = (uint32_t)stg->free_job;
	if (grow(&stg->jobs, &stg->job_capacity, (size_t)*job + 1, sizeof(*stg->jobs)) ||
	    table__put(stg->jobs_by_name, name_id, thread->user, *job))
		return -ENOMEM;
	stg__free_job(&stg->jobs[*job]);
	stg->jobs[*job] = (struct stg_job){.name = thread->job, .announced = thread->id, .user = thread->user};
	if (*job == stg->job_count)
		stg->job_count++;
	return 0;
}

static int add_row(struct stg_job *job, const struct vapro_thread *thread, int32_t number, uint32_t leader,
		   uint32_t host)
{
	size_t count = job->row_count;

	if (grow(&job->rows, &job->row_capacity, count + 1, sizeof(*job->rows)) ||
	    grow(&job->order, &job->order_capacity, count + 1, sizeof(*job->order)) ||
	    grow(&job->place, &job->place_capacity, count + 1, sizeof(*job->place)) ||
	    grow(&job->neighbours, &job->neighbour_capacity, count + 1, sizeof(*job->neighbours)))
		return -ENOMEM;
	job->rows[count] = (struct stg_row){.rank = thread->rank,
					    .thread = number,
					    .leader = leader,
					    .pid = thread->pid,
					    .tid = number ? thread->tid : thread->pid,
					    .host = thread->host,
					    .host_number = host,
					    .socket = -1};
	job->order[count] = job->neighbours[count] = (uint32_t)count;
	job->row_count++;
	job->unordered = true;
	return 0;
}

/* Finds or makes the row of a thread. A rank is one row wherever its process runs; unknown ranks are distinguished
 * by host and pid. */
int stg__find_row(struct stg *stg, const struct stg_thread *thread, int32_t number, uint32_t *row)
{
	struct stg_job *job = &stg->jobs[thread->job];
	const struct vapro_thread *about = &thread->about;
	uint32_t is_new = (uint32_t)job->row_count, host = intern__id(stg->texts, about->host);
	uint64_t whose = thread->job | (uint64_t)number << 32, key = stg__row_key(about->rank, host, about->pid);

	if (table__get(stg->rows, whose, key, row))
		return 0;
	if (number_of(stg->hosts, thread->job, host, &job->host_count, &host) ||
	    add_row(job, about, number, number ? thread->row : is_new, host) ||
	    table__put(stg->rows, whose, key, is_new))
		return -ENOMEM;
	*row = is_new;
	return 0;
}

void stg__link_thread(struct stg *stg, uint32_t id)
{
	struct stg_thread *thread = &stg->threads[id];
	struct stg_row *row = &stg->jobs[thread->job].rows[thread->row];

	thread->next = row->first;
	row->first = id + 1;
}

void stg__unlink_thread(struct stg *stg, uint32_t id)
{
	struct stg_thread *thread = &stg->threads[id];
	uint32_t *at = &stg->jobs[thread->job].rows[thread->row].first;

	while (*at && *at != id + 1)
		at = &stg->threads[*at - 1].next;
	if (*at)
		*at = thread->next;
}

uint32_t stg__process(const struct stg *stg, const struct stg_thread *thread)
{
	uint64_t process = (uint64_t)thread->job << 32 | thread->about.pid;
	uint32_t first;

	return table__get(stg->processes, process, intern__id(stg->texts, thread->about.host), &first) ? first : 0;
}

int stg__join_process(struct stg *stg, uint32_t id)
{
	struct stg_thread *thread = &stg->threads[id];
	uint64_t process = (uint64_t)thread->job << 32 | thread->about.pid;

	if (!thread->about.pid)
		return 0;
	thread->sibling = stg__process(stg, thread);
	return table__put(stg->processes, process, intern__id(stg->texts, thread->about.host), id + 1);
}

int stg__add_thread(struct stg *stg, const struct vapro_thread *thread)
{
	struct stg_thread new = {.about = *thread};
	uint32_t id, job_text, host_text;
	struct stg_job *job;

	if (thread->id < stg->next_thread)
		return 0;
	if (thread->id > stg->next_thread)
		return -EINVAL;
	if (!new.about.job)
		new.about.job = "";
	if (!new.about.host)
		new.about.host = "";
	if (!keep(stg, &new.about.job, &job_text) || !keep(stg, &new.about.host, &host_text))
		return -ENOMEM;
	while (stg->free_thread < stg->thread_count && stg->threads[stg->free_thread].job != STG_NONE)
		stg->free_thread++;
	id = (uint32_t)stg->free_thread;
	if (grow(&stg->threads, &stg->thread_capacity, (size_t)id + 1, sizeof(*stg->threads)) ||
	    find_job(stg, &new.about, job_text, &new.job))
		return -ENOMEM;
	job = &stg->jobs[new.job];
	if (stg__find_row(stg, &new, 0, &new.row))
		return -ENOMEM;
	if (new.about.tid && table__put(stg->tasks, (uint64_t)thread->pid << 32 | thread->tid, host_text, id))
		return -ENOMEM;
	if (thread->world_size > job->world_size)
		job->world_size = thread->world_size;
	stg->threads[id] = new;
	if (numbers__set(&stg->thread_numbers, thread->id, id) || stg__join_process(stg, id))
		return -ENOMEM;
	stg->next_thread++;
	if (id == stg->thread_count)
		stg->thread_count++;
	stg__link_thread(stg, id);
	return 0;
}

void stg__label(const char *labels, const char *key, char *buf, size_t size)
{
	size_t length = strlen(key);

	*buf = 0;
	for (const char *at = labels; at && *at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL) {
		if (!strncmp(at, key, length) && at[length] == '=') {
			snprintf(buf, size, "%.*s", (int)strcspn(at + length + 1, " "), at + length + 1);
			return;
		}
	}
}

static bool waits_for_a_peer(const char *fd_kind)
{
	static const char *const kinds[] = {"pipe", "fifo", "socket", "char", "chr", "tty", "eventfd", "anon"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!strcmp(fd_kind, kinds[i]))
			return true;
	}
	return false;
}

static bool is_among(const char *function, const char *const *functions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(function, functions[i]))
			return true;
	}
	return false;
}

/* Whether all ranks leave a call together. In rooted and prefix collectives ranks leave on their own. */
static bool leaves_together(const char *function)
{
	static const char *const functions[] = {
	    "MPI_Barrier",   "MPI_Allreduce", "MPI_Allgather",	    "MPI_Allgatherv",		"MPI_Alltoall",
	    "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block",
	};

	return is_among(function, functions, sizeof(functions) / sizeof(*functions));
}

/* Whether a call needs no call of another rank: it reads or writes that one's memory, or completes such transfers. */
static bool is_one_sided(const char *function)
{
	static const char *const functions[] = {
	    "MPI_Put",
	    "MPI_Get",
	    "MPI_Accumulate",
	    "MPI_Get_accumulate",
	    "MPI_Fetch_and_op",
	    "MPI_Compare_and_swap",
	    "MPI_Win_flush",
	    "MPI_Win_flush_all",
	    "MPI_Win_flush_local",
	    "MPI_Win_flush_local_all",
	    "MPI_Win_unlock",
	    "MPI_Win_unlock_all",
	};

	return is_among(function, functions, sizeof(functions) / sizeof(*functions));
}

int stg__add_state(struct stg *stg, const struct vapro_state *state)
{
	struct stg_state new = {.about = *state};
	uint32_t id, from, to, labels, common, symbol;
	char value[64];

	if (state->id < stg->next_state)
		return 0;
	if (state->id > stg->next_state || state->class >= VAPRO_CLASSES)
		return -EINVAL;
	new.about.from_path = new.about.to_path = NULL; /* no part of the model, and not owned by it */
	if (!new.about.labels)
		new.about.labels = "";
	if (!new.about.common)
		new.about.common = new.about.labels;
	if (!keep(stg, &new.about.from, &from) || !keep(stg, &new.about.to, &to) ||
	    !keep(stg, &new.about.labels, &labels) || !keep(stg, &new.about.common, &common) ||
	    !keep(stg, &new.about.from_symbol, &symbol) || !keep(stg, &new.about.to_symbol, &symbol))
		return -ENOMEM;
	while (stg->free_state < stg->state_count && stg->states[stg->free_state].about.to)
		stg->free_state++;
	id = (uint32_t)stg->free_state;
	if (grow(&stg->states, &stg->state_capacity, (size_t)id + 1, sizeof(*stg->states)) ||
	    number_of(stg->kinds, (uint64_t)from << 32 | to, (uint64_t)common << 2 | state->class, &stg->kind_count,
		      &new.kind) ||
	    number_of(stg->commons, common, state->class, &stg->common_count, &new.common))
		return -ENOMEM;
	stg__label(new.about.labels, "comm", value, sizeof(value));
	if (*value && strcmp(value, "0")) {
		new.group = intern__id(stg->texts, value);
		if (new.group == INTERN_NONE)
			return -ENOMEM;
	}
	stg__label(new.about.labels, "scope", value, sizeof(value));
	if (!strcmp(value, "process"))
		new.group = STG_PROCESS;
	stg__label(new.about.labels, "function", value, sizeof(value));
	new.together = state->class == VAPRO_COMMUNICATION &&new.group != STG_PROCESS &&leaves_together(value);
	new.one_sided = state->class == VAPRO_COMMUNICATION &&is_one_sided(value);
	stg__label(new.about.labels, "fd_kind", value, sizeof(value));
	new.peer = waits_for_a_peer(value);
	stg__label(new.about.labels, "no_return", value, sizeof(value));
	new.no_return = *value != '\0';
	stg__label(new.about.labels, "bytes", value, sizeof(value));
	new.no_bytes = !strcmp(value, "unknown");
	if (numbers__set(&stg->state_numbers, state->id, id))
		return -ENOMEM;
	stg->states[id] = new;
	stg->next_state++;
	if (id == stg->state_count)
		stg->state_count++;
	return 0;
}

uint32_t stg__thread_number(const struct stg *stg, uint32_t announced)
{
	return numbers__get(&stg->thread_numbers, announced);
}

uint32_t stg__state_number(const struct stg *stg, uint32_t announced)
{
	return numbers__get(&stg->state_numbers, announced);
}

void stg__state_gone(struct stg *stg, uint32_t state, uint32_t window)
{
	stg->gone += !stg->states[state].gone;
	stg->states[state].gone = window + 1;
}

size_t stg__gone(const struct stg *stg)
{
	return stg->gone;
}

size_t stg__texts(const struct stg *stg)
{
	return intern__count(stg->texts);
}

size_t stg__threads(const struct stg *stg)
{
	return stg->thread_count;
}

size_t stg__states(const struct stg *stg)
{
	return stg->state_count;
}

size_t stg__jobs(const struct stg *stg)
{
	return stg->job_count;
}

const struct stg_thread *stg__thread(const struct stg *stg, uint32_t id)
{
	return &stg->threads[id];
}

const struct stg_state *stg__state(const struct stg *stg, uint32_t id)
{
	return id == STG_UNSEEN ? &unseen : &stg->states[id];
}

const struct stg_job *stg__job(const struct stg *stg, uint32_t id)
{
	if (stg->jobs[id].unordered)
		stg__order_rows(&stg->jobs[id]);
	return &stg->jobs[id];
}

uint32_t stg__hosts(const struct stg *stg, uint32_t job)
{
	return stg->jobs[job].host_count;
}

uint32_t stg__host_of(const struct stg *stg, uint32_t thread)
{
	return stg->jobs[stg->threads[thread].job].rows[stg->threads[thread].row].host_number;
}

const struct stg_thread *stg__task(const struct stg *stg, const char *host, uint32_t pid, uint32_t tid)
{
	uint32_t thread;

	if (!table__get(stg->tasks, (uint64_t)pid << 32 | tid, intern__id(stg->texts, host), &thread))
		return NULL;
	return &stg->threads[thread];
}

bool stg__job_over(const struct stg *stg, uint32_t id, uint64_t by_ns)
{
	const struct stg_job *job = &stg->jobs[id];

	for (size_t i = 0; i < job->row_count; i++) {
		if (!job->rows[i].to_ns || job->rows[i].to_ns > by_ns)
			return false;
	}
	return job->row_count > 0;
}

bool stg__job_goes_on(const struct stg *stg, uint32_t id, uint64_t now_ns)
{
	const struct stg_job *job = &stg->jobs[id];

	for (size_t i = 0; i < job->row_count; i++) {
		if (job->rows[i].to_ns > now_ns && job->rows[i].from_ns && job->rows[i].from_ns <= now_ns)
			return true;
	}
	return false;
}

uint32_t stg__find_job(const struct stg *stg, const char *name, uint32_t user)
{
	for (size_t i = 0; i < stg->job_count; i++) {
		const struct stg_job *job = &stg->jobs[i];

		if (job->name && job->user == user && !strcmp(job->name, name ? name : ""))
			return (uint32_t)i;
	}
	return UINT32_MAX;
}

size_t stg__bytes(const struct stg *stg)
{
	const struct table *tables[] = {stg->jobs_by_name, stg->rows,	   stg->kinds, stg->commons,
					stg->tasks,	   stg->processes, stg->hosts};
	size_t bytes = intern__bytes(stg->texts) + numbers__bytes(&stg->thread_numbers) +
		       numbers__bytes(&stg->state_numbers) + stg->thread_capacity * sizeof(*stg->threads) +
		       stg->state_capacity * sizeof(*stg->states) + stg->job_capacity * sizeof(*stg->jobs);

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		bytes += table__bytes(tables[i]);
	for (size_t i = 0; i < stg->job_count; i++)
		bytes += stg->jobs[i].row_capacity * sizeof(*stg->jobs[i].rows) +
			 (stg->jobs[i].order_capacity + stg->jobs[i].place_capacity + stg->jobs[i].neighbour_capacity) *
			     sizeof(uint32_t);
	return bytes;
}

int stg__set_place(struct stg *stg, const struct vapro_place *place)
{
	struct stg_thread *thread;
	struct stg_row *row;
	char text[256];
	uint32_t id;

	if (place->thread >= stg->thread_count)
		return -EINVAL;
	thread = &stg->threads[place->thread];
	row = &stg->jobs[thread->job].rows[thread->row];
	if (row->socket < 0 && place->socket >= 0 && row->thread == thread->about.thread) {
		row->socket = place->socket;
		stg->jobs[thread->job].unordered = true;
	}
	if (!place->cpu_model && !place->core_type)
		return 0;
	snprintf(text, sizeof(text), "processor %s/%s", place->cpu_model ? place->cpu_model : "",
		 place->core_type ? place->core_type : "");
	id = intern__id(stg->texts, text);
	if (id == INTERN_NONE)
		return -ENOMEM;
	thread->processor = id + 1;
	return 0;
}

static int compare_times(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Sorts values, and returns their median and maximum; 0 without any. */
static void middle_and_most(double *values, size_t count, double *middle, double *most)
{
	if (count)
		qsort(values, count, sizeof(*values), compare_times);
	*middle = count ? values[count / 2] : 0;
	*most = count ? values[count - 1] : 0;
}

int stg__set_computing(struct stg *stg, uint32_t job, const double *computing_ns, const double *calls)
{
	struct stg_job *about = &stg->jobs[job];
	double *sorted = malloc((about->row_count + 1) * sizeof(*sorted));
	size_t count = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t row = 0; row < about->row_count; row++) {
		about->rows[row].computing_ns = sorted[row] = computing_ns[row];
		about->rows[row].calls = calls ? calls[row] : 0;
	}
	middle_and_most(sorted, about->row_count, &about->typical_computing_ns, &about->most_computing_ns);
	for (size_t row = 0; row < about->row_count; row++) {
		if (about->rows[row].calls > 0)
			sorted[count++] = computing_ns[row] / about->rows[row].calls;
	}
	middle_and_most(sorted, count, &about->typical_per_call_ns, &about->most_per_call_ns);
	free(sorted);
	return 0;
}

/* The kind of the CPUs of a row. */
static uint32_t processor_of(const struct stg *stg, const struct stg_row *row)
{
	return row->first ? stg->threads[row->first - 1].processor : 0;
}

int stg__set_speed(struct stg *stg, uint32_t job, const double *on_cpu_ns, const double *saved_ns)
{
	struct kind {
		uint32_t processor;
		float full_speed;
	} *kinds = malloc((stg->jobs[job].row_count + 1) * sizeof(*kinds));
	size_t count = 0, kind;

	if (!kinds)
		return -ENOMEM;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t row = 0; row < stg->jobs[job].row_count; row++) {
			struct stg_row *own = &stg->jobs[job].rows[row];
			uint32_t processor = processor_of(stg, own);

			for (kind = 0; kind < count && kinds[kind].processor != processor; kind++)
				;
			if (kind == count)
				kinds[count++] = (struct kind){processor, 0};
			if (!pass && on_cpu_ns[row] > 0)
				own->full_speed = fmaxf(own->full_speed, (float)(1 - saved_ns[row] / on_cpu_ns[row]));
			kinds[kind].full_speed = fmaxf(kinds[kind].full_speed, own->full_speed);
			own->full_speed = kinds[kind].full_speed;
		}
	}
	free(kinds);
	return 0;
}

double stg__computes_less(const struct stg_job *job, uint32_t row, bool than_most)
{
	const struct stg_row *own = &job->rows[row];
	double less = (than_most ? job->most_computing_ns : job->typical_computing_ns) - own->computing_ns;
	double per_call = than_most ? job->most_per_call_ns : job->typical_per_call_ns;

	return own->calls > 0 ? fmin(less, per_call * own->calls - own->computing_ns) : less;
}
