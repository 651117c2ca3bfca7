// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/job_book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/record.h"

#define JOB_BOOK_IDENTITY 288 /* bytes of an identity */

struct job_book_entry {
	char job[JOB_BOOK_IDENTITY];
	uint32_t user; /* as in struct vapro_thread */
	uint32_t source;
	uint64_t used; /* number of the latest look-up */
	struct job_names names;
};

struct job_book {
	struct job_book_entry *entries;
	size_t count, capacity;
	uint64_t used;
};

struct job_book *job_book__new(void)
{
	return calloc(1, sizeof(struct job_book));
}

static struct job_book_entry *find(struct job_book *book, const char *job, uint32_t user)
{
	for (size_t i = 0; i < book->count; i++) {
		struct job_book_entry *entry = &book->entries[i];

		if (entry->user == user && !strcmp(entry->job, job)) {
			entry->used = ++book->used;
			return entry;
		}
	}
	return NULL;
}

/* Returns a place for one more job: that of the job that was not looked up for longest, where there are many. */
static struct job_book_entry *place(struct job_book *book)
{
	struct job_book_entry *oldest = book->entries;

	if (book->count < JOB_BOOK_MOST) {
		if (grow(&book->entries, &book->capacity, book->count + 1, sizeof(*book->entries)))
			return NULL;
		return &book->entries[book->count++];
	}
	for (size_t i = 1; i < book->count; i++) {
		if (book->entries[i].used < oldest->used)
			oldest = &book->entries[i];
	}
	return oldest;
}

int job_book__note(struct job_book *book, const char *job, uint32_t user, const struct job_names *names)
{
	struct job_book_entry *entry;

	if (names->source == JOB_NAMES_NONE || strlen(job) >= JOB_BOOK_IDENTITY)
		return 0;
	entry = find(book, job, user);
	if (!entry) {
		entry = place(book);
		if (!entry)
			return -ENOMEM;
		*entry = (struct job_book_entry){.user = user, .used = ++book->used};
		strcpy(entry->job, job);
	}
	/* root's file holds: a later process of the job cannot change it */
	if (entry->names.source > names->source)
		return 0;
	entry->names = *names;
	entry->source = names->source;
	return 0;
}

const struct job_names *job_book__find(struct job_book *book, const char *job, uint32_t user)
{
	const struct job_book_entry *entry = job ? find(book, job, user) : NULL;

	return entry ? &entry->names : NULL;
}

void job_book__free(struct job_book *book)
{
	if (!book)
		return;
	free(book->entries);
	free(book);
}

size_t job_book__count(const struct job_book *book)
{
	return book->count;
}

/* Returns the user of a record as in struct vapro_thread. */
static uint32_t user_of(const cJSON *job)
{
	double uid = record__number(job, KEY(process_job, uid), -1);

	return uid >= 0 && uid < UINT32_MAX ? (uint32_t)uid + 1 : 0;
}

int job_book__note_line(struct job_book *book, const char *line)
{
	struct job_names names;
	const cJSON *job;
	cJSON *record;
	int ret = 0;

	/* most processes have none: their records are not parsed */
	if (!strstr(line, "\"names\":"))
		return 0;
	record = cJSON_Parse(line);
	job = record__item(record, KEY(process, job));
	job_book__read(record__item(job, KEY(process_job, names)), &names);
	if (record__text(job, KEY(process_job, identity)))
		ret = job_book__note(book, record__text(job, KEY(process_job, identity)), user_of(job), &names);
	cJSON_Delete(record);
	return ret;
}

bool job_book__put(cJSON *object, enum record_row key, const struct job_names *names)
{
	cJSON *item;

	if (!names || names->source == JOB_NAMES_NONE)
		return true;
	item = record__put_object(object, key);
	return item && (!names->name[0] || record__put_text(item, KEY(job_names, name), names->name)) &&
	       (!names->account[0] || record__put_text(item, KEY(job_names, account), names->account)) &&
	       (!names->partition[0] || record__put_text(item, KEY(job_names, partition), names->partition)) &&
	       (!names->nodes || record__put_uint(item, KEY(job_names, nodes), names->nodes)) &&
	       (!names->user[0] || record__put_text(item, KEY(job_names, user), names->user)) &&
	       record__put_text(item, KEY(job_names, source), job_names_source_name[names->source]);
}

void job_book__read(const cJSON *object, struct job_names *names)
{
	uint64_t nodes = record__uint(object, KEY(job_names, nodes));
	int source =
	    record__word(record__text(object, KEY(job_names, source)), job_names_source_name, JOB_NAMES_SOURCES);

	*names =
	    (struct job_names){.source = source < JOB_NAMES_SOURCES ? (enum job_names_source)source : JOB_NAMES_NONE,
			       .nodes = nodes <= JOB_NODES_MOST ? (uint32_t)nodes : 0};
	job_names__copy(names->name, record__text(object, KEY(job_names, name)));
	job_names__copy(names->account, record__text(object, KEY(job_names, account)));
	job_names__copy(names->partition, record__text(object, KEY(job_names, partition)));
	job_names__copy(names->user, record__text(object, KEY(job_names, user)));
}

static const struct archive_column columns[] = {
    ARCHIVE_MANY(struct job_book_entry, job),
    ARCHIVE_ONE(struct job_book_entry, user),
    ARCHIVE_ONE(struct job_book_entry, source),
    ARCHIVE_ONE(struct job_book_entry, used),
    ARCHIVE_MANY(struct job_book_entry, names.name),
    ARCHIVE_MANY(struct job_book_entry, names.account),
    ARCHIVE_MANY(struct job_book_entry, names.partition),
    ARCHIVE_MANY(struct job_book_entry, names.user),
    ARCHIVE_ONE(struct job_book_entry, names.nodes),
};
static const struct archive_table table = ARCHIVE_TABLE("names of jobs", struct job_book_entry, columns);

void job_book__archive(struct archive *archive, struct job_book *book)
{
	archive__rows(archive, &table, &book->entries, &book->count, &book->capacity);
	archive__number(archive, &book->used);
	archive__check(archive, book->count <= JOB_BOOK_MOST, "there are too many names of jobs");
	for (size_t i = 0; archive__reads(archive) && i < book->count; i++) {
		struct job_book_entry *entry = &book->entries[i];

		if (archive__check(archive, entry->source && entry->source < JOB_NAMES_SOURCES,
				   "the source of a job's names is unknown"))
			entry->names.source = (enum job_names_source)entry->source;
	}
}
