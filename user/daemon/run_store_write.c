// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/run_store_write.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "capture/profile_file.h"
#include "compare/earlier.h"
#include "report/earlier_json.h"

enum {
	EARLIER_MOST = 30, /* earlier runs that a run is compared with: the latest */
	NO_GROUP = 65534,
	PROGRAM_SIZE = 80,
	NAME_SIZE = 160,
	PATIENCE_S = 60, /* processor time of the copy */
};

int run_store_write__directory(int store, uid_t uid, char *err, size_t err_size)
{
	struct stat status;
	char name[24];
	int fd;

	snprintf(name, sizeof(name), "%u", uid);
	if (!mkdirat(store, name, 0700) && fchownat(store, name, uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW)) {
		snprintf(err, err_size, "its directory cannot be given to user %u: %s", uid, strerror(errno));
		return -1;
	}
	fd = openat(store, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status)) {
		snprintf(err, err_size, "its directory %s: %s", name, strerror(errno));
	} else if (status.st_uid != uid || status.st_mode & 077) {
		snprintf(err, err_size, "its directory %s is not that of user %u alone", name, uid);
	} else {
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The directory of a program: its file name, of characters that need no quotes. */
static void name_program(const struct profile *profile, char name[PROGRAM_SIZE])
{
	const struct vapro_state *main = profile__main(profile);
	size_t length = main ? strcspn(main->to, "@") : 0;

	snprintf(name, PROGRAM_SIZE, "%.*s", (int)length, main ? main->to : "");
	for (char *at = name; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("._-+", *at))
			*at = '_';
	if (!*name || *name == '.')
		snprintf(name, PROGRAM_SIZE, "_unknown");
}

/* The name of a file: the time comes first, by which files are ordered; then the job and the host. */
static void name_file(const struct run_store_job *job, char name[NAME_SIZE])
{
	time_t seconds = (time_t)(job->begin_ns / 1000000000);
	char time_text[32], host[64];
	struct tm utc;

	gmtime_r(&seconds, &utc);
	strftime(time_text, sizeof(time_text), "%Y%m%dT%H%M%SZ", &utc);
	snprintf(host, sizeof(host), "%s", job->host);
	for (char *at = host; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("._-", *at))
			*at = '_';
	snprintf(name, NAME_SIZE, "%s-%08x-%s%s", time_text, (unsigned)text__hash(job->job, strlen(job->job)), host,
		 PROFILE_FILE_END);
}

/* Reads the latest profiles of the program but that of the job itself. Returns their number. */
static uint32_t read_earlier(const char *own, struct profile *earlier[EARLIER_MOST])
{
	char **names, err[256];
	int count = profile_file__list(".", &names);
	uint32_t read = 0;

	for (int i = count - 1; i >= 0; i--) {
		/* one that is damaged, or of a later version, is passed over */
		if (read < EARLIER_MOST && strcmp(names[i], own) != 0 &&
		    !profile_file__read(names[i], &earlier[read], err, sizeof(err)))
			read++;
		free(names[i]);
	}
	free(names);
	return read;
}

/* Writes what the comparison with earlier runs says; nothing where there are too few. */
static void compare(const struct run_store_job *job, const char *file, FILE *out)
{
	struct profile *earlier[EARLIER_MOST];
	uint32_t count = read_earlier(file, earlier);
	struct earlier found;
	char err[256], *line = NULL;
	const struct earlier_of of = {
	    .host = job->host, .job = job->job, .profile = file, .user = job->user, .utc_ns = job->end_ns};

	if (!earlier__compare(&found, job->profile, (const struct profile *const *)earlier, count, err, sizeof(err)))
		line = earlier_json__line(&found, &of);
	if (line)
		fputs(line, out);
	free(line);
	for (uint32_t i = 0; i < count; i++)
		profile__free(earlier[i]);
}

void run_store_write__job(const struct run_store_job *job, FILE *out)
{
	char program[PROGRAM_SIZE], name[NAME_SIZE], err[512];
	int error;

	name_program(job->profile, program);
	name_file(job, name);
	if ((mkdir(program, 0700) && errno != EEXIST) || chdir(program)) {
		fprintf(out, "!the profile of job %s cannot be stored: %s: %s", job->job, program, strerror(errno));
		return;
	}
	error = profile_file__write(name, job->profile, err, sizeof(err));
	if (!error)
		error = profile_file__bound(".", PROFILE_FILES_MOST, PROFILE_BYTES_MOST);
	if (error)
		fprintf(out, "!the profile of job %s cannot be stored: %s: %s", job->job, program, strerror(-error));
	else
		compare(job, name, out);
}

/* Closes all descriptors but two and the standard ones: probes last as long as any process holds their links. */
static bool close_others(int one, int other)
{
	unsigned low = (unsigned)(one < other ? one : other), high = (unsigned)(one < other ? other : one);

	return (low <= 3 || !close_range(3, low - 1, 0)) && (high <= low + 1 || !close_range(low + 1, high - 1, 0)) &&
	       !close_range(high + 1, ~0U, 0);
}

/* Gives up all that the daemon holds and may, for good. Returns whether it could. */
static bool become(uid_t uid, int directory, int result)
{
	const struct rlimit patience = {PATIENCE_S, PATIENCE_S}, no_core = {0, 0};
	const struct sched_param idle = {0};

	if (!close_others(directory, result) || fchdir(directory))
		return false;
	sched_setscheduler(0, SCHED_IDLE, &idle);
	setrlimit(RLIMIT_CPU, &patience);
	setrlimit(RLIMIT_CORE, &no_core);
	if (geteuid() == uid) /* also of a job of root's */
		return true;
	return !setgroups(0, NULL) && !setresgid(NO_GROUP, NO_GROUP, NO_GROUP) && !setresuid(uid, uid, uid);
}

/* The copy. Does not return. */
static void run(const struct run_store_job *job, uid_t uid, int directory, int result, pid_t daemon)
{
	FILE *out;

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != daemon || !become(uid, directory, result))
		_exit(1);
	out = fdopen(result, "w");
	if (!out)
		_exit(1);
	umask(077);
	run_store_write__job(job, out);
	_exit(fclose(out) ? 1 : 0);
}

pid_t run_store_write__start(const struct run_store_job *job, uid_t uid, int directory, int *result)
{
	pid_t daemon = getpid(), pid;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid)
		run(job, uid, directory, ends[1], daemon);
	close(ends[1]);
	if (pid < 0) {
		pid = -errno;
		close(ends[0]);
		return pid;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*result = ends[0];
	return pid;
}
