// SPDX-License-Identifier: GPL-2.0-or-later

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "page/page.h"
#include "page/report_input.h"
#include "page/report_text.h"
#include "report/lines.h"
#include "report/record.h"
#include "report/run_option.h"
#include "reports/report_store.h"
#include "reports/reporter_private.h"

#define NUMBERS_MOST 99	 /* reports of one name */
#define USERS_MOST 10000 /* whose reports are looked at */
#define COPY_BYTES 65536

/* What a process says of its work. */
struct work_result {
	int error;
	unsigned count;
};

/* ---- in the process */

/* Records that end a report: what it is of, and where it is not of the whole job a warning. malloc'ed, or NULL. */
static char *last_records(const struct write_request *request, const struct spool_job *job)
{
	cJSON *object = record__begin(RECORD_OBJECT_job_report, utc_now(), request->options->host);
	uint64_t lost = request->lost + job->dropped;
	struct line_warning warning = {.utc_ns = utc_now(),
				       .host = request->options->host,
				       .code = "report_incomplete",
				       .text = request->incomplete};
	char *text = NULL, *line = NULL, *warned = NULL;

	if (object && record__put_job(object, job->identity, job->uid + 1) &&
	    record__put_bool(object, KEY(job_report, complete), !request->incomplete) &&
	    record__put_text(object, KEY(job_report, reason), request->incomplete) &&
	    record__put_uint(object, KEY(job_report, lost_lines), lost))
		line = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	warned = request->incomplete ? lines__warning(&warning) : NULL;
	if (line && asprintf(&text, "%s%s%s\n", warned ? warned : "", warned ? "\n" : "", line) < 0)
		text = NULL;
	free(warned);
	free(line);
	return text;
}

static int copy(FILE *from, FILE *to)
{
	static char bytes[COPY_BYTES];
	size_t got;

	while ((got = fread(bytes, 1, sizeof(bytes), from)) > 0) {
		if (fwrite(bytes, 1, got, to) != got)
			return errno ? -errno : -EIO;
	}
	return ferror(from) ? -EIO : 0;
}

/* Begins a file, writes it by put() and ends it. Returns 0 or -errno. */
static int write_file(int directory, const char *name, enum store_file file, int (*put)(void *ctx, FILE *out),
		      void *ctx)
{
	FILE *out = report_store__begin(directory, name, file);

	errno = out ? 0 : errno;
	return out ? report_store__end(directory, name, file, out, put(ctx, out)) : -errno;
}

/* What the files are made of. */
struct parts {
	const struct write_request *request;
	const struct spool_job *job;
	const char *name;
	FILE *records; /* of the spool; NULL: there are none */
	char *last;
	struct run_report report;
};

static int put_records(void *ctx, FILE *out)
{
	struct parts *parts = ctx;
	int error = 0;

	if (parts->records) {
		rewind(parts->records);
		error = copy(parts->records, out);
	}
	if (!error && fputs(parts->last, out) < 0)
		error = errno ? -errno : -EIO;
	return error;
}

static int put_page(void *ctx, FILE *out)
{
	const struct parts *parts = ctx;
	struct report_input input = {
	    .files = &parts->name, .count = 1, .kind = FILE_KIND_RECORDS, .run_read = 1, .runs = 1};

	return page__write(&parts->report, &input, parts->request->options->version, out);
}

static int put_text(void *ctx, FILE *out)
{
	const struct parts *parts = ctx;
	char more[STORE_NAME_SIZE + 256], identity[STORE_NAME_SIZE];

	snprintf(more, sizeof(more), "%s%s%s.html, %s.ndjson (vapro report --job %s)",
		 parts->request->incomplete ? parts->request->incomplete : "", parts->request->incomplete ? "; " : "",
		 parts->name, parts->name, report_store__identity(parts->name, identity));
	return report_text__write(&parts->report, more, out);
}

/* Reads the records into the report. Returns 0 or -errno. */
static int read_records(struct parts *parts)
{
	FILE *last = fmemopen(parts->last, strlen(parts->last), "r");
	int error = run_report__init(&parts->report);

	if (!error && parts->records)
		error = run_report__add_file(&parts->report, parts->records, RUN_OPTION_LAST, parts->name);
	if (!error && last)
		error = run_report__add_file(&parts->report, last, RUN_OPTION_LAST, parts->name);
	if (!error)
		error = run_report__finish(&parts->report);
	if (last)
		fclose(last);
	return error;
}

/* Chooses the name of a report that was not written before. Returns its number; 0: there are too many. */
static unsigned choose_number(int directory, const struct spool_job *job, char *name)
{
	unsigned number = job->number ? job->number : 1;

	report_store__name(job->identity, number, name);
	while (!job->number && report_store__has(directory, name)) {
		if (++number > NUMBERS_MOST)
			return 0;
		report_store__name(job->identity, number, name);
	}
	return number;
}

/* Writes all files as the job's user. */
static struct work_result write_files(const struct write_request *request, const struct spool_job *job)
{
	static int (*const put[STORE_FILES])(void *ctx, FILE *out) = {
	    [STORE_RECORDS] = put_records, [STORE_PAGE] = put_page, [STORE_TEXT] = put_text};
	struct parts parts = {.request = request, .job = job, .records = spool__read(request->spool, job)};
	char name[STORE_NAME_SIZE];
	struct work_result result = {.error = -ENOMEM};
	int directory = report_store__enter(request->jobs, job->uid), error;

	if (directory < 0)
		return (struct work_result){.error = directory};
	parts.name = name;
	parts.last = last_records(request, job);
	result.count = choose_number(directory, job, name);
	if (!result.count)
		return (struct work_result){.error = -EEXIST};
	if (!parts.last)
		return result;
	result.error = read_records(&parts);
	for (int file = 0; file < STORE_FILES; file++) {
		if (file != STORE_RECORDS && result.error)
			break; /* the page and the text need all records; these are stored in any case */
		error = write_file(directory, name, (enum store_file)file, put[file], &parts);
		result.error = result.error ? result.error : error;
	}
	return result;
}

/* Removes the chosen reports of a user. */
static struct work_result remove_files(int jobs, const struct store_report *reports, const bool *removed, size_t count,
				       uid_t uid)
{
	struct work_result result = {.error = 0};
	int directory = report_store__enter(jobs, uid);

	for (size_t i = 0; directory >= 0 && i < count; i++) {
		if (removed[i] && reports[i].uid == uid)
			result.count += report_store__remove(directory, reports[i].name);
	}
	return result;
}

/* ---- in the process that starts it */

/* Where memory is short it is this process that the kernel ends. */
static void be_first_to_go(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "1000", 4) < 0)
		errno = 0;
	if (fd >= 0)
		close(fd);
}

/* Begins a process; returns 0 in it, and *out is where its result goes. -errno. */
static pid_t begin(int *in, int *out)
{
	struct rlimit cpu = {WRITE_SECONDS, WRITE_SECONDS};
	pid_t parent = getpid(), pid;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	*in = ends[0];
	*out = ends[1];
	if (pid) {
		close(ends[1]);
		if (pid < 0)
			close(ends[0]);
		return pid < 0 ? -errno : pid;
	}
	close(ends[0]);
	setrlimit(RLIMIT_CPU, &cpu);
	setpriority(PRIO_PROCESS, 0, 10);
	be_first_to_go();
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(1);
	return 0;
}

/* Ends the process with its result. */
__attribute__((noreturn)) static void finish(int out, struct work_result result)
{
	_exit(write(out, &result, sizeof(result)) != sizeof(result));
}

/* Waits for the result of a process, and ends it where it takes too long. */
static struct work_result wait_for(pid_t pid, int in)
{
	struct work_result result = {.error = -ETIMEDOUT};
	struct pollfd ready = {.fd = in, .events = POLLIN};
	uint64_t until_ns = mono_now() + WRITE_SECONDS * 1000000000ULL;
	int got = 0;

	while (!got && mono_now() < until_ns)
		got = poll(&ready, 1, 1000) > 0;
	if (got && read(in, &result, sizeof(result)) != sizeof(result))
		result = (struct work_result){.error = -EIO}; /* it was killed: for lack of memory, or by its limit */
	close(in);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return result;
}

int reporter__write_report(const struct write_request *request, struct spool_job *job)
{
	struct work_result result;
	int in, out;
	pid_t pid = begin(&in, &out);

	if (!pid)
		finish(out, write_files(request, job));
	if (pid < 0)
		return (int)pid;
	result = wait_for(pid, in);
	if (result.count)
		job->number = result.count;
	return result.error;
}

/* Lists the reports of all users, the latest first. */
static void list_all(int jobs, struct store_report **reports, size_t *count, size_t *capacity)
{
	int fd = openat(jobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	size_t users = 0;
	struct dirent *entry;

	if (!list && fd >= 0)
		close(fd);
	while (list && users++ < USERS_MOST && (entry = readdir(list))) {
		int directory;
		char *end;
		unsigned long uid = strtoul(entry->d_name, &end, 10);

		if (end == entry->d_name || *end || uid >= UINT32_MAX)
			continue;
		directory = report_store__look(jobs, (uid_t)uid);
		if (directory < 0)
			continue;
		report_store__list(directory, (uid_t)uid, reports, count, capacity);
		close(directory);
	}
	if (list)
		closedir(list);
	report_store__sort(*reports, *count);
}

unsigned reporter__remove_old(const struct reporter_options *options, int jobs)
{
	uint64_t now_s = (uint64_t)time(NULL), age_s = (uint64_t)options->age_s;
	uint64_t old_s = age_s && age_s < now_s ? now_s - age_s : 0;
	struct store_report *reports = NULL;
	size_t count = 0, capacity = 0;
	unsigned files = 0;
	bool *removed;

	list_all(jobs, &reports, &count, &capacity);
	removed = calloc(count + 1, sizeof(*removed));
	if (removed && report_store__choose(reports, count, old_s, options->bytes, removed)) {
		for (size_t i = 0; i < count; i++) {
			int in, out;
			pid_t pid = removed[i] ? begin(&in, &out) : -1;

			if (!pid)
				finish(out, remove_files(jobs, reports, removed, count, reports[i].uid));
			if (pid < 0)
				continue;
			files += wait_for(pid, in).count;
			for (size_t k = i + 1; k < count; k++)
				removed[k] = removed[k] && reports[k].uid != reports[i].uid;
		}
	}
	free(removed);
	free(reports);
	return files;
}
