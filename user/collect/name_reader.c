// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/name_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/intern.h"
#include "target/source.h"

#define PLACES_MAX 65536
#define GATHER_NS 300000000ULL	/* from a file's first place to its reader: others join meanwhile */
#define REST_RATIO 200		/* from a reader's begin to the next, in CPU times: readers take 0.5 % of one at most */
#define RETRY_NS 61000000000ULL /* the confined reader tries a file that broke it again after a minute */
#define BATCH_LEAST 8
#define POLL_NS 2000000L

struct place {
	char *site;
	uint64_t offset;
};

struct file {
	char *module, *path, *build_id; /* module: for people */
	int descriptor;			/* -1 while no place is left to be named */
	uid_t owner;
	bool urgent, interpreter, runtime, failed, reported;
	uint64_t due_ns;
	struct place *places; /* to be named */
	size_t count, room;
	size_t batch;  /* places in one request */
	char *trouble; /* a sentence until it is reported */
};

struct name_reader {
	struct stream_sink *sink;
	struct intern *sites, *names; /* all places ever noted; files as `module@build-id`, ids from 1 */
	size_t site_count;
	struct file *files; /* by id - 1 */
	size_t file_count, file_room;
	struct source_query *query;   /* or NULL */
	size_t queried_file, queried; /* whose first places are looked up */
	double cpu_before;	      /* of readers, when the query began */
	uint64_t begun_ns;
	uint64_t rest_until_ns;
	bool interpreter_reported;
};

struct name_reader *name_reader__new(struct stream_sink *sink)
{
	struct name_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	reader->sink = sink;
	reader->sites = intern__new();
	reader->names = intern__new();
	if (reader->sites && reader->names)
		return reader;
	name_reader__free(reader);
	return NULL;
}

/* Forgets places that were looked up, the first ones. */
static void drop_places(struct file *file, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(file->places[i].site);
	file->count -= count;
	memmove(file->places, file->places + count, file->count * sizeof(*file->places));
	if (file->count || file->descriptor < 0)
		return;
	close(file->descriptor);
	file->descriptor = -1;
}

void name_reader__free(struct name_reader *reader)
{
	if (!reader)
		return;
	source_query__abandon(reader->query);
	for (size_t i = 0; i < reader->file_count; i++) {
		struct file *file = &reader->files[i];

		drop_places(file, file->count);
		free(file->places);
		free(file->module);
		free(file->path);
		free(file->build_id);
		free(file->trouble);
	}
	free(reader->files);
	intern__free(reader->sites);
	intern__free(reader->names);
	free(reader);
}

/* Finds or adds a file by `module@build-id`; NULL when out of memory. */
static struct file *file_of(struct name_reader *reader, const char *site, const struct name_image *image)
{
	const char *plus = strrchr(site, '+'), *at = strrchr(site, '@');
	char *name = plus && at && at < plus ? strndup(site, (size_t)(plus - site)) : NULL;
	uint32_t id = name ? intern__id(reader->names, name) : INTERN_NONE;
	struct file *file;

	free(name);
	if (id == INTERN_NONE || grow(&reader->files, &reader->file_room, id, sizeof(*reader->files)))
		return NULL;
	file = &reader->files[id - 1];
	if (id <= reader->file_count)
		return file;
	*file = (struct file){.module = strndup(site, (size_t)(at - site)),
			      .path = strdup(image->path),
			      .build_id = strdup(image->build_id),
			      .descriptor = -1,
			      .owner = image->owner,
			      .batch = SOURCE_PLACES_MAX,
			      .interpreter = image->interpreter,
			      .runtime = image->runtime};
	reader->file_count++;
	file->failed = !file->module || !file->path || !file->build_id;
	return file;
}

void name_reader__want(struct name_reader *reader, const char *site, uint64_t offset, const struct name_image *image,
		       bool urgent)
{
	size_t most = urgent ? PLACES_MAX : PLACES_MAX / 2; /* calls of the program have room in any case */
	uint32_t id = reader->site_count < most ? intern__id(reader->sites, site) : INTERN_NONE;
	struct file *file = id != INTERN_NONE && image->file >= 0 ? file_of(reader, site, image) : NULL;

	if (!file)
		return;
	file->urgent |= urgent;
	if (id <= reader->site_count) /* it was noted before */
		return;
	reader->site_count = id;
	if (file->failed || grow(&file->places, &file->room, file->count + 1, sizeof(*file->places)))
		return;
	file->places[file->count] = (struct place){strdup(site), offset};
	if (!file->places[file->count].site)
		return;
	if (!file->count++ && file->due_ns < mono_now() + GATHER_NS)
		file->due_ns = mono_now() + GATHER_NS;
	if (file->descriptor < 0)
		file->descriptor = fcntl(image->file, F_DUPFD_CLOEXEC, 0);
}

/* Returns the CPU time of all confined readers so far, s. */
static double readers_cpu(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
	       1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Returns the file whose places are due, urgent ones first, or NULL. */
static struct file *next_file(struct name_reader *reader, uint64_t now_ns)
{
	struct file *next = NULL;

	for (size_t i = 0; i < reader->file_count; i++) {
		struct file *file = &reader->files[i];

		if (!file->count || file->due_ns > now_ns)
			continue;
		if (!next || file->urgent > next->urgent ||
		    (file->urgent == next->urgent && file->due_ns < next->due_ns))
			next = file;
	}
	return next;
}

static void set_trouble(struct file *file, const char *format, const char *why)
{
	if (file->reported || !file->urgent)
		return;
	file->reported = true;
	if (asprintf(&file->trouble, format, file->module, why) < 0)
		file->trouble = NULL;
}

/* Whether a file belongs to a distribution, whose debug information exists somewhere else. */
static bool is_packaged(const char *path)
{
	static const char *const places[] = {"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!strncmp(path, places[i], strlen(places[i])))
			return strncmp(path, "/usr/local/", strlen("/usr/local/")) != 0;
	return false;
}

/* Words what a file lacks, and what would help; of an interpreter's files the first only. */
static void judge(struct name_reader *reader, struct file *file, const struct source *source)
{
	bool first = file->interpreter && file->urgent && !reader->interpreter_reported;

	reader->interpreter_reported |= first;
	if (first)
		set_trouble(file,
			    "%s belongs to an interpreter, which makes all calls of a script from the same code: its "
			    "call-sites are named by module or function and offset%s",
			    ", and lines of the script are not known");
	else if (file->interpreter)
		return;
	else if (!source__has_dwarf(source) && is_packaged(file->path))
		set_trouble(
		    file,
		    source__has_symbols(source)
			? "%s has no debug information: its call-sites are named by function and offset; %s"
			: "%s is stripped: its call-sites are named by module and offset; %s",
		    "install the debug package of its distribution's package to see files and lines, or let `vapro "
		    "stg` ask the distribution's debuginfod server (DEBUGINFOD_URLS)");
	else if (!source__has_dwarf(source) && source__has_symbols(source))
		set_trouble(file,
			    "%s has no debug information: its call-sites are named by function and offset; %s to see "
			    "files and lines",
			    "compile it with -g or install its debug package");
	else if (!source__has_dwarf(source))
		set_trouble(file, "%s is stripped: its call-sites are named by module and offset; %s",
			    "compile it with -g and do not strip it, or install its debug package, to see functions, "
			    "files and lines");
}

static void emit(struct name_reader *reader, const struct place *place, const struct source_place *found)
{
	for (size_t i = 0; i < found->count; i++) {
		const struct source_frame *frame = &found->frames[i];

		stream__put(reader->sink, &(struct stream_event){.type = STREAM_NAME,
								 .name = {.site = place->site,
									  .depth = (uint32_t)i,
									  .function = frame->function,
									  .offset = frame->offset,
									  .file = frame->file,
									  .line = frame->line}});
	}
}

static void fail(struct file *file, const char *why)
{
	set_trouble(file, "%s: functions and lines of its call-sites are not known: %s", why);
	file->failed = true; /* it would fail again */
	drop_places(file, file->count);
}

/* Starts a reader for the first places of a file. */
static void begin(struct name_reader *reader, struct file *file)
{
	uint64_t offsets[SOURCE_PLACES_MAX];
	struct source_request request = {.file = file->descriptor,
					 .owner = file->owner,
					 .path = file->path,
					 .build_id = file->build_id,
					 .offsets = offsets,
					 .count = file->count < file->batch ? file->count : file->batch,
					 .background = true,
					 .image_only = file->runtime};
	char err[256];

	for (size_t i = 0; i < request.count; i++)
		offsets[i] = file->places[i].offset;
	reader->cpu_before = readers_cpu();
	reader->begun_ns = mono_now();
	reader->queried_file = (size_t)(file - reader->files);
	reader->queried = request.count;
	if (source_query__begin(&request, &reader->query, err, sizeof(err)))
		fail(file, err);
}

/* Takes a response where it has arrived. Returns whether the reader is idle now. */
static bool receive(struct name_reader *reader, uint64_t now_ns)
{
	struct file *file = &reader->files[reader->queried_file];
	const struct source_place *places;
	struct source *source;
	char err[256];
	size_t count;
	int status = source_query__step(reader->query, &source, err, sizeof(err));
	double cpu;

	if (status == -EAGAIN)
		return false;
	reader->query = NULL;
	cpu = readers_cpu() - reader->cpu_before;
	reader->rest_until_ns = reader->begun_ns + (uint64_t)(cpu * 1e9 * REST_RATIO);
	if (status == -EPROTO && reader->queried > BATCH_LEAST) { /* perhaps too much work for one reader */
		file->batch = reader->queried / BATCH_LEAST;
		file->due_ns = now_ns + RETRY_NS;
		return true;
	}
	if (status) {
		fail(file, err);
		return true;
	}
	judge(reader, file, source);
	places = source__places(source, &count);
	for (size_t i = 0; i < count; i++)
		emit(reader, &file->places[i], &places[i]);
	source__free(source);
	drop_places(file, count);
	return true;
}

void name_reader__step(struct name_reader *reader, uint64_t now_ns)
{
	struct file *file;

	if (reader->query && !receive(reader, now_ns))
		return;
	if (now_ns < reader->rest_until_ns)
		return;
	file = next_file(reader, now_ns);
	if (file)
		begin(reader, file);
}

void name_reader__finish(struct name_reader *reader, uint64_t limit_ns)
{
	const struct timespec rest = {.tv_nsec = POLL_NS};
	uint64_t end_ns = mono_now() + limit_ns;

	while (mono_now() < end_ns) {
		reader->rest_until_ns = 0;
		name_reader__step(reader, UINT64_MAX);
		if (!reader->query)
			break;
		source_query__end_idle(reader->query);
		nanosleep(&rest, NULL);
	}
}

bool name_reader__trouble(struct name_reader *reader, char *text, size_t size)
{
	for (size_t i = 0; i < reader->file_count; i++) {
		struct file *file = &reader->files[i];

		if (!file->trouble)
			continue;
		snprintf(text, size, "%s", file->trouble);
		free(file->trouble);
		file->trouble = NULL;
		return true;
	}
	return false;
}

size_t name_reader__bytes(const struct name_reader *reader)
{
	size_t bytes = sizeof(*reader) + intern__bytes(reader->sites) + intern__bytes(reader->names) +
		       reader->file_room * sizeof(*reader->files);

	for (size_t i = 0; i < reader->file_count; i++)
		bytes += reader->files[i].room * sizeof(*reader->files[i].places);
	return bytes;
}
