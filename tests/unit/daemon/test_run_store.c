/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Profiles of jobs that are over: files of their users, bounded, compared with earlier ones; what fails is said. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

#include "capture/profile_file.h"
#include "daemon/run_store.h"

#define BEGIN_NS 1800000000000000000ULL
#define STRANGER 54321 /* a uid that has no processes */

enum { RANKS = 4, STEPS = 3000 };

static char directory[64], err[512];

/* Puts an event. */
static void put(struct run_store *store, const struct stream_event *event)
{
	assert_int_equal(run_store__put(store, event), 0);
}

/*
 * Puts a job of STEPS iterations of 4 ms at a speed, from a time on; its threads and states have numbers from `first`
 * and `state` on. All of it is over at the end.
 */
static void put_job(struct run_store *store, const char *name, uint32_t user, uint64_t begin_ns, double factor,
		    uint32_t first, uint32_t state)
{
	struct stream_event event = {.type = STREAM_CLOCK, .clock = {.mono_ns = 1000, .utc_ns = begin_ns}};
	uint64_t now = 1000;
	unsigned seed = (unsigned)(begin_ns / 1000000007);

	put(store, &event);
	event = (struct stream_event){.type = STREAM_STATE,
				      .state = {.id = state,
						.class = VAPRO_COMPUTATION,
						.from = "app@1234+0x10",
						.to = "app@1234+0x20",
						.labels = "",
						.common = ""}};
	put(store, &event);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		event = (struct stream_event){.type = STREAM_THREAD,
					      .thread = {.id = first + rank,
							 .rank = (int32_t)rank,
							 .world_size = RANKS,
							 .pid = 100 + rank,
							 .tid = 100 + rank,
							 .job = name,
							 .host = "n0",
							 .user = user}};
		put(store, &event);
	}
	for (int step = 0; step < STEPS; step++, now += 4000000) {
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			uint64_t ns = (uint64_t)(3000000 * factor * (1 + 0.01 * (rand_r(&seed) / (double)RAND_MAX)));

			event = (struct stream_event){.type = STREAM_BUNDLE,
						      .bundle = {.thread = first + rank,
								 .state = state,
								 .n = 1,
								 .start_ns = now,
								 .end_ns = now + ns,
								 .sum_ns = ns,
								 .min_ns = ns,
								 .max_ns = ns}};
			put(store, &event);
		}
	}
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		event = (struct stream_event){.type = STREAM_SEEN,
					      .seen = {.thread = first + rank, .from_ns = 1000, .to_ns = now}};
		put(store, &event);
	}
	/* a job is over once a window passed without a fragment of it */
	event = (struct stream_event){.type = STREAM_WINDOW};
	put(store, &event);
	put(store, &event);
}

/* Waits for all that is to be written. Returns the last thing that came back; NULL: nothing. */
static char *wait_for(struct run_store *store, bool *warning)
{
	char *last = NULL, *text;

	while (run_store__busy(store)) {
		if (run_store__step(store, &text, warning)) {
			free(last);
			last = text;
		}
		usleep(1000);
	}
	return last;
}

static struct run_store *open_store(const char *path)
{
	struct run_store *store = run_store__new(path, "n0", false, err, sizeof(err));

	if (!store)
		fail_msg("%s", err);
	return store;
}

static int make_directory(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/vapro-store-XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	return system(command);
}

/* Files of the user's alone, and from the fifth run on a record that compares; the last run is slower by a quarter. */
static void test_jobs(void **state)
{
	uint32_t uid = getuid();
	struct run_store *store;
	char path[256], **names, *text = NULL;
	struct stat status;
	bool warning = false;
	cJSON *record;

	(void)state;
	store = open_store(directory);
	for (uint32_t run = 0; run < 6; run++) {
		char name[16];

		free(text);
		snprintf(name, sizeof(name), "mpi:%u", run);
		put_job(store, name, uid + 1, BEGIN_NS + run * 60000000000ULL, run == 5 ? 1.24 : 1, run * RANKS, run);
		text = wait_for(store, &warning);
		if (run < 4)
			assert_null(text);
	}
	run_store__free(store);
	assert_false(warning);
	assert_non_null(text);
	record = cJSON_Parse(text);
	assert_non_null(record);
	assert_string_equal(cJSON_GetObjectItem(record, "type")->valuestring, "earlier");
	assert_string_equal(cJSON_GetObjectItem(record, "job")->valuestring, "mpi:5");
	assert_string_equal(cJSON_GetObjectItem(record, "program")->valuestring, "app");
	assert_int_equal(cJSON_GetObjectItem(record, "runs")->valueint, 5);
	assert_float_equal(cJSON_GetObjectItem(record, "work_ratio")->valuedouble, 1.24, 0.02);
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(record, "work_outlying")));
	assert_float_equal(cJSON_GetObjectItem(record, "time_ratio")->valuedouble, 1, 0.02);
	assert_null(cJSON_GetObjectItem(record, "alarm"));
	cJSON_Delete(record);
	free(text);
	snprintf(path, sizeof(path), "%s/%u", directory, uid);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	snprintf(path, sizeof(path), "%s/%u/app", directory, uid);
	assert_int_equal(profile_file__list(path, &names), 6);
	for (int i = 0; i < 6; i++) {
		char file[512];

		snprintf(file, sizeof(file), "%s/%s", path, names[i]);
		assert_int_equal(stat(file, &status), 0);
		assert_int_equal(status.st_mode & 07777, 0600);
		assert_int_equal(status.st_uid, uid);
		free(names[i]);
	}
	free(names);
}

/* A job of another user: root's daemon leaves a file that only that user can read, in a directory of that user. */
static void test_other_user(void **state)
{
	struct run_store *store;
	char path[256], **names, *text;
	struct stat status;
	bool warning = false;

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(chmod(directory, 0755), 0);
	store = open_store(directory);
	put_job(store, "mpi:1", STRANGER + 1, BEGIN_NS, 1, 0, 0);
	text = wait_for(store, &warning);
	assert_null(text);
	run_store__free(store);
	snprintf(path, sizeof(path), "%s/%u/app", directory, STRANGER);
	assert_int_equal(profile_file__list(path, &names), 1);
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%s", names[0]);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_uid, STRANGER);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(open(path, O_RDONLY), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(seteuid(0), 0);
	free(names[0]);
	free(names);
}

/* Places that others could have prepared are refused. */
static void test_places(void **state)
{
	struct run_store *store;
	char path[256], *text;
	bool warning = false;

	(void)state;
	assert_null(run_store__new("/nonexistent/profiles", "n0", false, err, sizeof(err)));
	assert_non_null(strstr(err, "has to be a directory that exists"));
	assert_int_equal(chmod(directory, 0777), 0);
	assert_null(run_store__new(directory, "n0", false, err, sizeof(err)));
	assert_non_null(strstr(err, "others than its owner can write it"));
	assert_int_equal(chmod(directory, 0755), 0);
	snprintf(path, sizeof(path), "%s/%u", directory, getuid());
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0755), 0);
	store = open_store(directory);
	put_job(store, "mpi:1", getuid() + 1, BEGIN_NS, 1, 0, 0);
	text = wait_for(store, &warning);
	assert_non_null(text);
	assert_true(warning);
	assert_non_null(strstr(text, "the profile of job mpi:1 cannot be stored: its directory"));
	free(text);
	run_store__free(store);
}

/* A full disk is a warning with its reason, and leaves no part of a file. */
static void test_full_disk(void **state)
{
	struct run_store *store;
	char path[256], **names, *text;
	bool warning = false;
	FILE *other;

	(void)state;
	if (geteuid() || unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", directory, "tmpfs", 0, "size=4k,mode=755"))
		skip();
	snprintf(path, sizeof(path), "%s/other", directory);
	other = fopen(path, "w");
	assert_non_null(other);
	for (int i = 0; i < 4096; i++)
		fputc('x', other);
	assert_int_equal(fclose(other), 0);
	store = open_store(directory);
	put_job(store, "mpi:1", 1, BEGIN_NS, 1, 0, 0);
	text = wait_for(store, &warning);
	run_store__free(store);
	assert_non_null(text);
	assert_true(warning);
	assert_non_null(strstr(text, "the profile of job mpi:1 cannot be stored"));
	assert_non_null(strstr(text, strerror(ENOSPC)));
	free(text);
	snprintf(path, sizeof(path), "%s/0/app", directory);
	assert_int_equal(profile_file__list(path, &names), 0);
	free(names);
	assert_int_equal(umount(directory), 0);
}

/* A job of which nothing was seen has no profile. */
static void test_ends(void **state)
{
	struct stream_event event = {.type = STREAM_WINDOW, .window = {.last = true}};
	struct run_store *store = open_store(directory);

	(void)state;
	put(store, &(struct stream_event){.type = STREAM_CLOCK, .clock = {1000, BEGIN_NS}});
	put(store, &(struct stream_event){.type = STREAM_THREAD,
					  .thread = {.id = 0, .rank = 0, .job = "mpi:2", .host = "n0", .user = 1}});
	put(store, &event);
	assert_false(run_store__busy(store));
	run_store__free(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_jobs, make_directory, remove_directory),
	    cmocka_unit_test_setup_teardown(test_other_user, make_directory, remove_directory),
	    cmocka_unit_test_setup_teardown(test_places, make_directory, remove_directory),
	    cmocka_unit_test_setup_teardown(test_ends, make_directory, remove_directory),
	    cmocka_unit_test_setup_teardown(test_full_disk, make_directory, remove_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
