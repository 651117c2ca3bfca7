// SPDX-License-Identifier: GPL-2.0-or-later
/* Reports that jobs leave: from records to files, by the process that writes them. As root only. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "reports/reporter.h"

#define ANN 65533
#define BOB 65532
#define SECOND 1000000000ULL

static const char window[] =
    "{\"schema\":\"vapro/1\",\"type\":\"window\",\"time\":\"2026-01-01T00:00:10.000000000Z\",\"host\":\"n1\",\"job\":"
    "\"slurm:7.0\",\"uid\":65533,\"begin\":\"2026-01-01T00:00:00.000000000Z\",\"end\":\"2026-01-01T00:00:10."
    "000000000Z\","
    "\"ranks\":\"0-1\",\"world_size\":2,\"partial\":false,\"coverage\":{\"computation\":0.9,\"communication\":0.05,"
    "\"io\":0,\"total\":0.95},\"performance\":{\"computation\":1,\"communication\":1,\"io\":null,\"total\":1},"
    "\"bundles\":"
    "10,\"fragments\":10}";

static char directory[64];

static struct reporter_options options_of(void)
{
	return (struct reporter_options){
	    .directory = directory, .age_s = 3600, .bytes = 1 << 30, .version = "0", .host = "n1"};
}

static struct reporter *start(void)
{
	static struct reporter_options options;
	struct reporter *reporter;
	char err[256];

	options = options_of();
	reporter = reporter__start(&options, err, sizeof(err));
	if (!reporter)
		fail_msg("%s", err);
	return reporter;
}

/* Reads a file of a user's report; "": there is none. */
static char *contents(uid_t uid, const char *name, char *text, size_t size)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/jobs/%u/%s", directory, uid, name);
	file = fopen(path, "r");
	text[0] = '\0';
	if (file) {
		text[fread(text, 1, size - 1, file)] = '\0';
		fclose(file);
	}
	return text;
}

static void assert_owned(uid_t uid, const char *name, mode_t mode)
{
	struct stat status;
	char path[256];

	snprintf(path, sizeof(path), "%s/jobs/%u/%s", directory, uid, name);
	assert_false(lstat(path, &status));
	assert_int_equal(status.st_uid, uid);
	assert_int_equal(status.st_mode & 07777, mode);
}

static void step_until(struct reporter *reporter, uid_t uid, const char *name)
{
	char text[4096];

	for (int i = 0; i < 2000 && !*contents(uid, name, text, sizeof(text)); i++) {
		reporter__step(reporter, mono_now());
		usleep(10000);
	}
	assert_true(*text);
}

static size_t files_in(const char *folder)
{
	char path[256];
	size_t count = 0;
	DIR *list;

	snprintf(path, sizeof(path), "%s/%s", directory, folder);
	list = opendir(path);
	while (list && readdir(list))
		count++;
	if (list)
		closedir(list);
	return count > 2 ? count - 2 : 0;
}

static void a_job_leaves_three_files(void **state)
{
	const struct reporter_process running[] = {{"slurm:7.0", ANN + 1, false}};
	struct reporter *reporter = start();
	static char text[1 << 20];
	size_t lines = 0;

	(void)state;
	reporter__line(reporter, "slurm:7.0", ANN + 1, window, true);
	reporter__line(reporter, "slurm:6.0", ANN + 1, window, false); /* of a job that did not begin */
	reporter__see(reporter, running, 1, 100 * SECOND);
	reporter__window_ended(reporter, 101 * SECOND); /* it runs: nothing is due */
	reporter__see(reporter, NULL, 0, 105 * SECOND);
	reporter__window_ended(reporter, 104 * SECOND); /* its end is not in that window */
	reporter__window_ended(reporter, 111 * SECOND);
	step_until(reporter, ANN, "slurm-7.0.txt");
	assert_owned(ANN, ".", 0700);
	assert_owned(ANN, "slurm-7.0.ndjson", 0600);
	assert_owned(ANN, "slurm-7.0.html", 0600);
	assert_owned(ANN, "slurm-7.0.txt", 0600);
	contents(ANN, "slurm-7.0.ndjson", text, sizeof(text));
	assert_memory_equal(text, window, sizeof(window) - 1);
	assert_non_null(strstr(text, "\"type\":\"job_report\""));
	assert_non_null(strstr(text, "\"complete\":true"));
	contents(ANN, "slurm-7.0.txt", text, sizeof(text));
	for (const char *at = text; *at; at++)
		lines += *at == '\n';
	assert_true(lines >= 3 && lines <= 10);
	assert_non_null(strstr(text, "2 ranks"));
	assert_non_null(strstr(text, "95.0 % of the ranks' time could be evaluated"));
	assert_non_null(strstr(contents(ANN, "slurm-7.0.html", text, sizeof(text)), "<html"));
	assert_int_equal(files_in("spool"), 2);
	reporter__window_ended(reporter, 121 * SECOND); /* the last version */
	reporter__finish(reporter, 20 * SECOND);
	assert_int_equal(files_in("spool"), 0);
	assert_int_equal(files_in("jobs/65533"), 3);
}

static void a_report_is_not_late(void **state)
{
	struct reporter *reporter = start();

	(void)state;
	reporter__line(reporter, "slurm:8.0", ANN + 1, window, true);
	reporter__see(reporter, NULL, 0, 100 * SECOND);
	reporter__see(reporter, NULL, 0, 107 * SECOND); /* no window has ended since */
	step_until(reporter, ANN, "slurm-8.0.txt");
	reporter__finish(reporter, 20 * SECOND);
}

static void each_user_has_a_report(void **state)
{
	struct reporter *reporter = start();
	char text[4096];

	(void)state;
	reporter__line(reporter, "slurm:9.0", ANN + 1, window, true);
	reporter__line(reporter, "slurm:9.0", BOB + 1, window, true); /* a user who claims another user's job */
	reporter__line(reporter, "slurm:9.1", 0, window, true);	      /* of no known user */
	reporter__finish(reporter, 20 * SECOND);
	assert_owned(ANN, "slurm-9.0.txt", 0600);
	assert_owned(BOB, "slurm-9.0.txt", 0600);
	assert_int_equal(files_in("jobs"), 2);
	/* vaprod ended before these jobs */
	assert_non_null(strstr(contents(ANN, "slurm-9.0.ndjson", text, sizeof(text)), "\"complete\":false"));
	assert_non_null(strstr(text, "report_incomplete"));
	assert_non_null(strstr(contents(ANN, "slurm-9.0.txt", text, sizeof(text)), "incomplete: vaprod was ended"));
}

static void what_a_killed_vaprod_left_is_written(void **state)
{
	pid_t vaprod = fork();
	struct reporter *reporter;
	char text[4096];
	int status;

	(void)state;
	if (!vaprod) {
		reporter = start();
		reporter__line(reporter, "slurm:10.0", ANN + 1, window, true);
		for (int i = 0; i < 500 && files_in("spool") < 2; i++) {
			reporter__step(reporter, mono_now());
			usleep(10000);
		}
		kill(getpid(), SIGKILL);
	}
	waitpid(vaprod, &status, 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(files_in("spool"), 2);
	reporter = start();
	reporter__finish(reporter, 20 * SECOND);
	assert_int_equal(files_in("spool"), 0);
	assert_non_null(strstr(contents(ANN, "slurm-10.0.ndjson", text, sizeof(text)), "\"complete\":false"));
	assert_non_null(
	    strstr(contents(ANN, "slurm-10.0.txt", text, sizeof(text)), "incomplete: vaprod ended, without"));
	/* a later job of that name has a report of its own */
	reporter = start();
	reporter__line(reporter, "slurm:10.0", ANN + 1, window, true);
	reporter__finish(reporter, 20 * SECOND);
	assert_owned(ANN, "slurm-10.0~2.txt", 0600);
}

static void a_full_disk_is_counted(void **state)
{
	struct reporter *reporter;
	char command[256], text[512] = "";
	bool news = false;

	(void)state;
	snprintf(command, sizeof(command), "mount -t tmpfs -o size=16k,mode=755 none %s 2>/dev/null", directory);
	if (system(command))
		skip(); /* a container */
	reporter = start();
	for (int i = 0; i < 64; i++)
		reporter__line(reporter, "slurm:11.0", ANN + 1, window, true);
	reporter__see(reporter, NULL, 0, 100 * SECOND);
	reporter__window_ended(reporter, 110 * SECOND);
	for (int i = 0; i < 2000 && !news; i++) {
		reporter__step(reporter, mono_now());
		news = reporter__news(reporter, text, sizeof(text));
		usleep(10000);
	}
	reporter__finish(reporter, 20 * SECOND);
	snprintf(command, sizeof(command), "umount %s", directory);
	assert_int_equal(system(command), 0);
	assert_true(news);
	assert_true(strstr(text, "could not be written") || strstr(text, "were lost"));
}

/* Stops the process that writes reports. Returns it. */
static pid_t stop_child(void)
{
	char path[64];
	FILE *list;
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	list = fopen(path, "r");
	assert_non_null(list);
	assert_int_equal(fscanf(list, "%d", &pid), 1);
	fclose(list);
	assert_false(kill(pid, SIGSTOP));
	return pid;
}

static struct stat status_of(uid_t uid, const char *name)
{
	struct stat status;
	char path[256];

	snprintf(path, sizeof(path), "%s/jobs/%u/%s", directory, uid, name);
	assert_false(stat(path, &status));
	return status;
}

/* Where much is due, each job has a report before any has a later version of it. */
static void first_reports_come_first(void **state)
{
	struct reporter *reporter = start();
	struct stat early, later, first;
	pid_t pid;

	(void)state;
	reporter__line(reporter, "slurm:13.0", ANN + 1, window, true);
	reporter__see(reporter, NULL, 0, 100 * SECOND);
	reporter__window_ended(reporter, 101 * SECOND);
	step_until(reporter, ANN, "slurm-13.0.txt");
	early = status_of(ANN, "slurm-13.0.txt");
	pid = stop_child();
	reporter__window_ended(reporter, 111 * SECOND); /* the last version of the first */
	reporter__line(reporter, "slurm:14.0", BOB + 1, window, true);
	reporter__see(reporter, NULL, 0, 112 * SECOND);
	reporter__window_ended(reporter, 121 * SECOND);
	reporter__step(reporter, mono_now());
	assert_false(kill(pid, SIGCONT));
	reporter__finish(reporter, 20 * SECOND);
	later = status_of(ANN, "slurm-13.0.txt");
	first = status_of(BOB, "slurm-14.0.txt");
	assert_true(early.st_ino != later.st_ino || early.st_mtim.tv_nsec != later.st_mtim.tv_nsec);
	assert_true(first.st_mtim.tv_sec < later.st_mtim.tv_sec ||
		    (first.st_mtim.tv_sec == later.st_mtim.tv_sec && first.st_mtim.tv_nsec <= later.st_mtim.tv_nsec));
}

/* A job of a number whose last report is still due may begin again: it has a report of its own. */
static void a_job_begins_again(void **state)
{
	struct reporter *reporter = start();
	pid_t pid = stop_child();

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint64_t at = (100 + 100 * (uint64_t)i) * SECOND;

		reporter__line(reporter, "slurm:15.0", ANN + 1, window, true);
		reporter__see(reporter, NULL, 0, at);
		reporter__window_ended(reporter, at + SECOND);
		reporter__window_ended(reporter, at + 11 * SECOND);
		reporter__step(reporter, mono_now());
	}
	assert_false(kill(pid, SIGCONT));
	reporter__finish(reporter, 20 * SECOND);
	assert_owned(ANN, "slurm-15.0.txt", 0600);
	assert_owned(ANN, "slurm-15.0~2.txt", 0600);
	assert_int_equal(files_in("jobs/65533"), 6);
	assert_int_equal(files_in("spool"), 0);
}

/* The loop never waits: a process that does not read costs lines, which are counted. */
static void a_process_that_stands_still_costs_lines(void **state)
{
	static char large[1 << 20];
	struct reporter *reporter = start();
	char text[512];
	pid_t pid;

	(void)state;
	pid = stop_child();
	memset(large, 'x', sizeof(large) - 1);
	for (int i = 0; i < 64; i++) {
		reporter__line(reporter, "slurm:12.0", ANN + 1, large, true);
		reporter__step(reporter, mono_now());
	}
	assert_true(reporter__news(reporter, text, sizeof(text)));
	assert_non_null(strstr(text, "lines of job reports were lost"));
	assert_false(kill(pid, SIGCONT));
	reporter__finish(reporter, 20 * SECOND);
}

static int begin(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/vapro-reporter-XXXXXX");
	return !mkdtemp(directory) || chmod(directory, 0755);
}

static int end(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(a_job_leaves_three_files, begin, end),
	    cmocka_unit_test_setup_teardown(a_report_is_not_late, begin, end),
	    cmocka_unit_test_setup_teardown(each_user_has_a_report, begin, end),
	    cmocka_unit_test_setup_teardown(what_a_killed_vaprod_left_is_written, begin, end),
	    cmocka_unit_test_setup_teardown(a_full_disk_is_counted, begin, end),
	    cmocka_unit_test_setup_teardown(first_reports_come_first, begin, end),
	    cmocka_unit_test_setup_teardown(a_job_begins_again, begin, end),
	    cmocka_unit_test_setup_teardown(a_process_that_stands_still_costs_lines, begin, end),
	};

	if (geteuid() != 0)
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
