/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vapro runs: sets of synthetic runs, of which what is outlying is known. Each set is compared in both modes. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "../../tools/accuracy/job.h"
#include "capture/profile_file.h"
#include "cli/diff_run.h"
#include "compare/earlier.h"
#include "compare/runs.h"
#include "compare/shift.h"

#define RANKS 8
#define RUNS 10
#define MODES 2
#define THRESHOLD 0.03

static const enum vapro_workload_source modes[MODES] = {VAPRO_BY_ARGUMENTS, VAPRO_BY_INSTRUCTIONS};
static const char *const names[] = {"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9"};
static char err[512];

/* Fills a profile as the command does, with the second host and the call-sites of another name. */
struct renaming {
	struct stream_sink sink;
	struct diff_sink own;
	const char *second_host; /* NULL: n1 */
	unsigned build;		 /* 0: as simulated; else call-sites of another build, and moved */
	const char *program;	 /* NULL: app */
};

/* Writes a call-site with another build-id, program and offset. */
static void move_site(const struct renaming *own, const char *site, char *text, size_t size)
{
	unsigned long offset = strtoul(strrchr(site, '+') + 1, NULL, 16);

	snprintf(text, size, "%s@%012x+0x%lx", own->program ? own->program : "app", own->build,
		 offset + own->build * (offset - 0x0f00));
}

static int put(struct stream_sink *sink, const struct stream_event *event)
{
	struct renaming *own = (struct renaming *)sink;
	struct stream_event other = *event;
	char from[64], to[64], from_symbol[64], to_symbol[64];

	if (event->type == STREAM_THREAD && own->second_host && !strcmp(event->thread.host, "n1"))
		other.thread.host = own->second_host;
	if (event->type == STREAM_STATE && own->build) {
		move_site(own, event->state.to, to, sizeof(to));
		snprintf(to_symbol, sizeof(to_symbol), "step%s+0x%x", strrchr(event->state.to, '+') + 1, own->build);
		other.state.to = to;
		other.state.to_symbol = to_symbol;
	}
	if (event->type == STREAM_STATE && own->build && event->state.from) {
		move_site(own, event->state.from, from, sizeof(from));
		snprintf(from_symbol, sizeof(from_symbol), "step%s+0x%x", strrchr(event->state.from, '+') + 1,
			 own->build);
		other.state.from = from;
		other.state.from_symbol = from_symbol;
	}
	return stream__put(&own->own.sink, &other);
}

/* A run that is usual: 20 s of iterations of some 11 ms. */
static struct job usual(uint64_t seed)
{
	struct job job = {.seed = seed, .ranks = RANKS, .hosts = 2, .seconds = 20, .jitter = 0.02};

	job__program(&job, 5e6, 0.1, 0.05);
	return job;
}

static struct job_effect *slow(struct job *job, int first, int last, double factor)
{
	struct job_effect *effect = job__effect(job, EFFECT_SLOW, 0, 0, factor);

	effect->ranks = (struct job_ranks){.of = RANKS_RANGE, .first = first, .last = last};
	return effect;
}

struct set {
	struct job jobs[RUNS];
	struct renaming renamed[RUNS];
	struct profile *profiles[RUNS];
	struct runs found;
};

static void begin(struct set *set, uint64_t seed)
{
	*set = (struct set){0};
	for (int i = 0; i < RUNS; i++)
		set->jobs[i] = usual(seed + (uint64_t)i);
}

/* Simulates the runs and compares them. Returns what runs__compare() does. */
static int compare(struct set *set, enum vapro_workload_source source, uint32_t count)
{
	struct runs_input inputs[RUNS];

	for (uint32_t i = 0; i < count; i++) {
		struct job_totals totals = {0};
		struct truths truths = {0};

		set->profiles[i] = profile__new(source == VAPRO_BY_INSTRUCTIONS);
		assert_non_null(set->profiles[i]);
		diff_run__init_sink(&set->renamed[i].own, set->profiles[i]);
		set->renamed[i].sink.put = put;
		assert_int_equal(job__run(&set->jobs[i], source, 15, &set->renamed[i].sink, &truths, &totals), 0);
		assert_int_equal(profile__end(set->profiles[i]), 0);
		truths__free(&truths);
		inputs[i] = (struct runs_input){.name = names[i], .profile = set->profiles[i]};
	}
	return runs__compare(&set->found, inputs, count, THRESHOLD, NULL, err, sizeof(err));
}

static void end(struct set *set)
{
	runs__clear(&set->found);
	for (int i = 0; i < RUNS; i++)
		profile__free(set->profiles[i]);
}

static void print(const struct runs *found)
{
	for (uint32_t i = 0; i < found->count; i++) {
		const struct runs_run *run = &found->runs[i];

		print_message("%s use %d %s %.2f s time %.4f p %.2g %s work %.4f p %.2g %s calls %.4f\n", run->name,
			      run->use, run->program, run->seconds, run->time_ratio, run->time_p,
			      run->time_outlying ? "OUT" : "", run->work_ratio, run->work_p,
			      run->work_outlying ? "OUT" : "", run->calls_ratio);
	}
	for (size_t i = 0; i < found->row_count; i++) {
		const struct runs_row *row = &found->rows[i];

		print_message("what %d run %u in %u of %u host %s rank %d state %s %u of %u ratio %.4f p %.2g s %.2f\n",
			      row->what, row->run, row->in_runs, row->of_runs, row->host ? row->host : "-", row->rank,
			      row->state->to, row->states, row->of_states, row->ratio, row->p, row->seconds);
	}
}

/* Fails with all that was found. */
#define expect(set, condition)                                                                                         \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			print(&(set)->found);                                                                          \
			fail_msg("%s", #condition);                                                                    \
		}                                                                                                      \
	} while (0)

static unsigned rows_of(const struct runs *found, enum runs_what what)
{
	unsigned count = 0;

	for (size_t i = 0; i < found->row_count; i++)
		count += found->rows[i].what == what;
	return count;
}

static const struct runs_row *row_of(const struct runs *found, enum runs_what what)
{
	for (size_t i = 0; i < found->row_count; i++)
		if (found->rows[i].what == what)
			return &found->rows[i];
	return NULL;
}

/* How many runs are outlying by their time or their work, beside one. */
static unsigned outlying_beside(const struct runs *found, uint32_t one)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < found->count; i++)
		count += i != one && (found->runs[i].time_outlying || found->runs[i].work_outlying);
	return count;
}

static bool near(double value, double wanted)
{
	return fabs(value / wanted - 1) < 0.02;
}

static void one_on_a_slow_host(void **state)
{
	struct set set;

	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		for (uint32_t slow_run = 0; slow_run < RUNS; slow_run += 7) {
			const struct runs_row *row;

			begin(&set, 100 * (slow_run + 1));
			slow(&set.jobs[slow_run], 4, 7, 1.15);
			set.jobs[slow_run].seconds *= 1.13; /* for about the same number of iterations */
			set.renamed[slow_run].second_host = slow_run % 2 ? "n9" : NULL;
			assert_int_equal(compare(&set, modes[mode], RUNS), 0);
			row = row_of(&set.found, RUNS_HOST);
			expect(&set, rows_of(&set.found, RUNS_HOST) == 1 && rows_of(&set.found, RUNS_RANK) == 0);
			expect(&set, row->run == slow_run && row->in_runs == 1 && near(row->ratio, 1.15));
			assert_string_equal(row->host, slow_run % 2 ? "n9" : "n1");
			expect(&set, rows_of(&set.found, RUNS_STATE) == 0 && row->states == 2 &&
					 row->of_runs == (slow_run % 2 ? 1 : RUNS));
			expect(&set, set.found.runs[slow_run].time_outlying && set.found.runs[slow_run].work_outlying);
			expect(&set, near(set.found.runs[slow_run].time_ratio, 1.13));
			expect(&set, near(set.found.runs[slow_run].calls_ratio, 1));
			expect(&set, near(set.found.runs[slow_run].work_ratio, 1.075));
			expect(&set, outlying_beside(&set.found, slow_run) == 0);
			end(&set);
		}
	}
}

/* Of a fault in what waits for memory, that state is named, with its own ratio. */
static void memory_of_a_host(void **state)
{
	struct set set;

	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		const struct runs_row *row;

		begin(&set, 7);
		slow(&set.jobs[3], 4, 7, 1.15)->steps = 1U << JOB_MEMORY;
		assert_int_equal(compare(&set, modes[mode], RUNS), 0);
		row = row_of(&set.found, RUNS_HOST);
		expect(&set, rows_of(&set.found, RUNS_HOST) == 1 && rows_of(&set.found, RUNS_RANK) == 0);
		expect(&set, row->run == 3 && row->states == 1 && near(row->state_ratio, 1.15));
		assert_string_equal(row->state->from, "app@0123456789ab+0x1020");
		expect(&set, outlying_beside(&set.found, 3) == 0);
		end(&set);
	}
}

static void equal_runs(void **state)
{
	static const double jitters[] = {0.005, 0.02, 0.05, 0.15};
	struct set set;

	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		for (uint32_t i = 0; i < 8; i++) {
			begin(&set, 1000 + 100 * i);
			for (int k = 0; k < RUNS; k++) {
				set.jobs[k].jitter = jitters[i % 4];
				/* speeds that differ from run to run, by 2 % for each rank */
				for (int rank = 0; i >= 4 && rank < 2; rank++)
					slow(&set.jobs[k], 4 * rank, 4 * rank + 3,
					     1 + 0.002 * ((k * 7 + rank * 3) % RUNS));
			}
			assert_int_equal(compare(&set, modes[mode], RUNS), 0);
			expect(&set, set.found.row_count == 0 && outlying_beside(&set.found, UINT32_MAX) == 0);
			expect(&set, set.found.compared == RUNS);
			end(&set);
		}
	}
}

/* A run that is slow as a whole is that run, and no host or rank of it. */
static void whole_run(void **state)
{
	struct set set;

	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		begin(&set, 11);
		slow(&set.jobs[4], 0, RANKS - 1, 1.15);
		assert_int_equal(compare(&set, modes[mode], RUNS), 0);
		expect(&set, rows_of(&set.found, RUNS_HOST) == 0 && rows_of(&set.found, RUNS_RANK) == 0);
		expect(&set, rows_of(&set.found, RUNS_STATE) == 2);
		expect(&set, set.found.runs[4].work_outlying && near(set.found.runs[4].work_ratio, 1.15));
		expect(&set, !set.found.runs[4].time_outlying && near(set.found.runs[4].calls_ratio, 1 / 1.15));
		expect(&set, outlying_beside(&set.found, 4) == 0);
		end(&set);
	}
}

static void one_rank(void **state)
{
	struct set set;

	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		const struct runs_row *row;

		begin(&set, 13);
		slow(&set.jobs[8], 5, 5, 1.15);
		assert_int_equal(compare(&set, modes[mode], RUNS), 0);
		row = row_of(&set.found, RUNS_RANK);
		expect(&set, rows_of(&set.found, RUNS_HOST) == 0 && rows_of(&set.found, RUNS_RANK) == 1);
		expect(&set, row->rank == 5 && row->run == 8 && near(row->ratio, 1.15) && row->states == 2);
		end(&set);
	}
}

/* A host that is slow whenever it is used, in some of the runs or in most of them, the others being on as many hosts.
 */
static void host_of_several_runs(void **state)
{
	static const char *const others[] = {"n2", "n3", "n4", "n5"};
	struct set set;

	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		for (uint32_t on = 4; on <= 6; on += 2) {
			const struct runs_row *row;

			begin(&set, 17);
			for (uint32_t i = 0; i < on; i++) {
				slow(&set.jobs[i], 4, 7, 1.15);
				set.renamed[i].second_host = "n9";
			}
			for (uint32_t i = on; on > 4 && i < RUNS; i++)
				set.renamed[i].second_host = others[i - on];
			assert_int_equal(compare(&set, modes[mode], RUNS), 0);
			row = row_of(&set.found, RUNS_HOST);
			expect(&set, rows_of(&set.found, RUNS_HOST) == 1 && rows_of(&set.found, RUNS_RANK) == 0);
			expect(&set, row->in_runs == on && row->of_runs == on && near(row->ratio, 1.15));
			assert_string_equal(row->host, "n9");
			end(&set);
		}
	}
}

/* Builds whose call-sites have moved are compared; another program, or other ranks, are left out and said. */
static void other_builds(void **state)
{
	struct set set;

	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		begin(&set, 19);
		for (unsigned i = 0; i < RUNS; i++)
			set.renamed[i].build = i + 1;
		slow(&set.jobs[6], 4, 7, 1.15);
		assert_int_equal(compare(&set, modes[mode], RUNS), 0);
		expect(&set, set.found.compared == RUNS && set.found.rebuilt);
		expect(&set, rows_of(&set.found, RUNS_HOST) == 1 && row_of(&set.found, RUNS_HOST)->run == 6);
		expect(&set, near(row_of(&set.found, RUNS_HOST)->ratio, 1.15));
		end(&set);

		begin(&set, 23);
		set.renamed[1].build = 1;
		set.renamed[1].program = "other";
		set.jobs[2].ranks = 4;
		assert_int_equal(compare(&set, modes[mode], RUNS), 0);
		expect(&set, set.found.compared == RUNS - 2 && set.found.row_count == 0);
		expect(&set, set.found.runs[1].use == RUNS_OTHER_PROGRAM && set.found.runs[2].use == RUNS_OTHER_RANKS);
		assert_string_equal(set.found.runs[1].program, "other");
		end(&set);
	}
}

/* Of fewer than five runs none is called outlying, but how they compare is known. */
static void few_runs(void **state)
{
	struct set set;

	(void)state;
	begin(&set, 29);
	slow(&set.jobs[1], 0, RANKS - 1, 1.15);
	assert_int_equal(compare(&set, VAPRO_BY_ARGUMENTS, 4), 0);
	expect(&set, set.found.row_count == 0 && outlying_beside(&set.found, UINT32_MAX) == 0);
	expect(&set, near(set.found.runs[1].work_ratio, 1.15));
	end(&set);
	begin(&set, 31);
	assert_int_equal(compare(&set, VAPRO_BY_ARGUMENTS, 1), -ENODATA);
	end(&set);
}

/* Sets of equal normal values rarely have one that is called outlying, however few they are. */
static void chances(void **state)
{
	(void)state;
	for (uint32_t count = 5; count <= 40; count += 7) {
		unsigned seed = 1, found = 0;

		for (int set = 0; set < 2000; set++) {
			double values[40] = {0}, sorted[40], middle, spread, least = 1;

			for (uint32_t i = 0; i < count; i++) {
				values[i] = -6;
				for (int k = 0; k < 12; k++)
					values[i] += rand_r(&seed) / (double)RAND_MAX;
			}
			memcpy(sorted, values, sizeof(sorted));
			middle = shift__median(sorted, count);
			spread = runs__spread(values, count);
			assert_true(spread > 0);
			for (uint32_t i = 0; i < count; i++)
				least = fmin(least, runs__chance(values[i] - middle, spread, count));
			found += least * count < 0.01;
		}
		if (found >= 60)
			print_message("%u values: %u of 2000 sets\n", count, found);
		assert_true(found < 60); /* 1 % are meant, of 2,000 sets */
	}
}

/* Profiles that were written to files and read again say the same of their runs. */
static void profiles_in_files(void **state)
{
	char directory[] = "/tmp/vapro-runs-XXXXXX", path[64];
	struct set set;

	(void)state;
	assert_non_null(mkdtemp(directory));
	for (int mode = 0; mode < MODES; mode++) {
		struct runs_input inputs[RUNS];
		struct runs found = {.count = 0};
		const struct runs_row *row;
		struct stat status;

		begin(&set, 37);
		slow(&set.jobs[7], 4, 7, 1.15);
		for (unsigned i = 0; i < RUNS; i++)
			set.renamed[i].build = i + 1;
		assert_int_equal(compare(&set, modes[mode], RUNS), 0);
		runs__clear(&set.found);
		for (int i = 0; i < RUNS; i++) {
			double length_s = profile__length_s(set.profiles[i]);

			snprintf(path, sizeof(path), "%s/%d.profile", directory, i);
			assert_int_equal(profile_file__write(path, set.profiles[i], err, sizeof(err)), 0);
			assert_int_equal(stat(path, &status), 0);
			assert_int_equal(status.st_mode & 07777, 0600);
			assert_true(status.st_size < 1 << 20);
			profile__free(set.profiles[i]);
			if (profile_file__read(path, &set.profiles[i], err, sizeof(err)))
				fail_msg("%s", err);
			assert_true(profile_file__is(path));
			assert_float_equal(profile__length_s(set.profiles[i]), length_s, 1e-9);
			inputs[i] = (struct runs_input){.name = names[i], .profile = set.profiles[i]};
			assert_int_equal(unlink(path), 0);
		}
		assert_int_equal(runs__compare(&found, inputs, RUNS, THRESHOLD, NULL, err, sizeof(err)), 0);
		set.found = found;
		row = row_of(&set.found, RUNS_HOST);
		expect(&set, rows_of(&set.found, RUNS_HOST) == 1 && rows_of(&set.found, RUNS_RANK) == 0);
		expect(&set, row->run == 7 && near(row->ratio, 1.15) && set.found.rebuilt);
		expect(&set, outlying_beside(&set.found, 7) == 0);
		end(&set);
	}
	assert_int_equal(rmdir(directory), 0);
}

/* A file that is cut or changed, or that others may write, is refused; so is what another user owns. */
static void damaged_files(void **state)
{
	char directory[] = "/tmp/vapro-runs-XXXXXX", path[64];
	struct profile *read;
	struct set set;
	struct stat status;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/a.profile", directory);
	begin(&set, 41);
	assert_int_equal(compare(&set, VAPRO_BY_INSTRUCTIONS, 2), 0);
	assert_int_equal(profile_file__write(path, set.profiles[0], err, sizeof(err)), 0);
	assert_int_equal(stat(path, &status), 0);
	for (long at = 0; at < status.st_size; at += status.st_size / 23 + 1) {
		int byte;

		file = fopen(path, "r+");
		assert_non_null(file);
		assert_int_equal(fseek(file, at, SEEK_SET), 0);
		byte = fgetc(file);
		assert_int_equal(fseek(file, at, SEEK_SET), 0);
		fputc(byte ^ 0x20, file);
		assert_int_equal(fclose(file), 0);
		assert_int_not_equal(profile_file__read(path, &read, err, sizeof(err)), 0);
		assert_null(read);
		file = fopen(path, "r+");
		assert_int_equal(fseek(file, at, SEEK_SET), 0);
		fputc(byte, file);
		assert_int_equal(fclose(file), 0);
	}
	assert_int_equal(profile_file__read(path, &read, err, sizeof(err)), 0);
	profile__free(read);
	assert_int_equal(chmod(path, 0620), 0);
	assert_int_not_equal(profile_file__read(path, &read, err, sizeof(err)), 0);
	assert_non_null(strstr(err, "others than its owner can write it"));
	assert_int_equal(chmod(path, 0600), 0);
	if (!geteuid()) {
		assert_int_equal(chmod(directory, 0755), 0);
		assert_int_equal(seteuid(65534), 0);
		assert_int_not_equal(profile_file__read(path, &read, err, sizeof(err)), 0);
		assert_int_equal(seteuid(0), 0);
		assert_non_null(strstr(err, "Permission denied"));
	}
	assert_int_equal(truncate(path, status.st_size / 2), 0);
	assert_int_not_equal(profile_file__read(path, &read, err, sizeof(err)), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0);
	end(&set);
}

/* The oldest files of a directory go first, until those that stay are few and small enough. */
static void bounded_directory(void **state)
{
	char directory[] = "/tmp/vapro-runs-XXXXXX", path[64], **left;

	(void)state;
	assert_non_null(mkdtemp(directory));
	for (int i = 0; i < 6; i++) {
		FILE *file;

		snprintf(path, sizeof(path), "%s/%d%s", directory, i, i == 2 ? ".other" : PROFILE_FILE_END);
		file = fopen(path, "w");
		assert_non_null(file);
		for (int k = 0; k < 100; k++)
			fputc('x', file);
		assert_int_equal(fclose(file), 0);
	}
	assert_int_equal(profile_file__bound(directory, 4, 1000), 0);
	assert_int_equal(profile_file__list(directory, &left), 4);
	assert_string_equal(left[0], "1.profile");
	for (int i = 0; i < 4; i++)
		free(left[i]);
	free(left);
	assert_int_equal(profile_file__bound(directory, 4, 250), 0);
	assert_int_equal(profile_file__list(directory, &left), 2);
	assert_string_equal(left[0], "4.profile");
	assert_string_equal(left[1], "5.profile");
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, left[i]);
		assert_int_equal(unlink(path), 0);
		free(left[i]);
	}
	free(left);
	snprintf(path, sizeof(path), "%s/2.other", directory);
	assert_int_equal(unlink(path), 0); /* what is no profile stays */
	assert_int_equal(rmdir(directory), 0);
}

/* A run beside earlier ones: how slow its work is, and whether that is more than these differ. */
static void earlier_runs(void **state)
{
	struct earlier found;
	struct set set;
	char text[512];

	(void)state;
	for (int mode = 0; mode < MODES; mode++) {
		const struct profile *const *former = (const struct profile *const *)set.profiles + 1;

		begin(&set, 43);
		slow(&set.jobs[0], 0, RANKS - 1, 1.24);
		assert_int_equal(compare(&set, modes[mode], RUNS), 0);
		assert_int_equal(earlier__compare(&found, set.profiles[0], former, RUNS - 1, err, sizeof(err)), 0);
		assert_int_equal(found.runs, RUNS - 1);
		expect(&set, near(found.work_ratio, 1.24) && found.work_outlying);
		expect(&set, near(found.time_ratio, 1) && !found.time_outlying);
		assert_string_equal(found.program, "app");
		earlier__text(&found, text, sizeof(text));
		assert_non_null(strstr(text, "times the median of 9 earlier runs; equal work took 1.2"));
		assert_int_equal(earlier__compare(&found, set.profiles[1], former + 1, RUNS - 2, err, sizeof(err)), 0);
		expect(&set, near(found.work_ratio, 1) && !found.work_outlying && !found.time_outlying);
		assert_int_equal(earlier__compare(&found, set.profiles[0], former, 3, err, sizeof(err)), -ENODATA);
		end(&set);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_on_a_slow_host),
	    cmocka_unit_test(memory_of_a_host),
	    cmocka_unit_test(equal_runs),
	    cmocka_unit_test(whole_run),
	    cmocka_unit_test(one_rank),
	    cmocka_unit_test(host_of_several_runs),
	    cmocka_unit_test(other_builds),
	    cmocka_unit_test(few_runs),
	    cmocka_unit_test(chances),
	    cmocka_unit_test(profiles_in_files),
	    cmocka_unit_test(damaged_files),
	    cmocka_unit_test(bounded_directory),
	    cmocka_unit_test(earlier_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
