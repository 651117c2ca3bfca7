// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/job_book.h"
#include "report/lines.h"
#include "report/record.h"

static struct job_names names_of(const char *name, enum job_names_source source)
{
	struct job_names names = {.nodes = 2, .source = source};

	job_names__copy(names.name, name);
	job_names__copy(names.account, "phys");
	return names;
}

/* Returns a process record of a job, malloc'ed. */
static char *process_line(const char *job, uint32_t user, const struct job_names *names)
{
	const struct line_process process = {.utc_ns = 1000000000,
					     .host = "n1",
					     .pid = 7,
					     .rank = 0,
					     .job_kind = "slurm",
					     .job_id = "77",
					     .job = job,
					     .user = user,
					     .names = names,
					     .state = LINE_ATTACHED};

	return lines__process(&process);
}

static void names_come_from_process_records(void **state)
{
	struct job_names names = names_of("heat \"1\"", JOB_NAMES_ENVIRONMENT), none = {.nodes = 0};
	char *line = process_line("slurm:77.0", 1002, &names), *without = process_line("slurm:78.0", 1002, &none);
	const struct job_names *found;
	struct job_book *book = job_book__new();

	(void)state;
	assert_null(strstr(without, "names"));
	assert_int_equal(job_book__note_line(book, line), 0);
	assert_int_equal(job_book__note_line(book, without), 0);
	found = job_book__find(book, "slurm:77.0", 1002);
	assert_non_null(found);
	assert_string_equal(found->name, "heat \"1\"");
	assert_string_equal(found->account, "phys");
	assert_int_equal(found->nodes, 2);
	assert_int_equal(found->source, JOB_NAMES_ENVIRONMENT);
	assert_null(job_book__find(book, "slurm:77.0", 1003)); /* another user's job */
	assert_null(job_book__find(book, "slurm:78.0", 1002));
	assert_null(job_book__find(book, NULL, 1002));
	job_book__free(book);
	free(line);
	free(without);
}

static void a_process_cannot_replace_what_root_wrote(void **state)
{
	struct job_names root = names_of("heat", JOB_NAMES_PROLOG), forged = names_of("forged", JOB_NAMES_ENVIRONMENT);
	struct job_book *book = job_book__new();

	(void)state;
	assert_int_equal(job_book__note(book, "slurm:77", 1, &forged), 0);
	assert_int_equal(job_book__note(book, "slurm:77", 1, &root), 0);
	assert_int_equal(job_book__note(book, "slurm:77", 1, &forged), 0);
	assert_string_equal(job_book__find(book, "slurm:77", 1)->name, "heat");
	assert_int_equal(job_book__count(book), 1);
	job_book__free(book);
}

static void jobs_that_are_in_use_stay(void **state)
{
	struct job_names names = names_of("heat", JOB_NAMES_PROLOG);
	struct job_book *book = job_book__new();
	char job[32];

	(void)state;
	for (int i = 0; i < 3 * JOB_BOOK_MOST; i++) {
		snprintf(job, sizeof(job), "slurm:%d", i);
		assert_int_equal(job_book__note(book, job, 1, &names), 0);
		assert_non_null(job_book__find(book, "slurm:0", 1)); /* as each of its windows does */
	}
	assert_int_equal(job_book__count(book), JOB_BOOK_MOST);
	assert_null(job_book__find(book, "slurm:1", 1));
	assert_non_null(job_book__find(book, job, 1));
	job_book__free(book);
}

static void the_book_survives_a_checkpoint(void **state)
{
	struct job_names names = names_of("heat", JOB_NAMES_PROLOG);
	struct job_book *book = job_book__new(), *loaded = job_book__new();
	struct archive *out = archive__new(), *in;
	const uint8_t *data;
	size_t size;

	(void)state;
	assert_int_equal(job_book__note(book, "slurm:77.0", 1002, &names), 0);
	job_book__archive(out, book);
	data = archive__data(out, &size);
	in = archive__open(data, size, 1 << 20);
	job_book__archive(in, loaded);
	archive__end(in);
	assert_int_equal(archive__error(in), 0);
	assert_memory_equal(job_book__find(loaded, "slurm:77.0", 1002), job_book__find(book, "slurm:77.0", 1002),
			    sizeof(names));
	archive__free(in);
	archive__free(out);
	job_book__free(book);
	job_book__free(loaded);
}

static void hostile_records_are_read(void **state)
{
	static const char *const texts[] = {"null",
					    "{}",
					    "{\"names\":7}",
					    "{\"source\":\"root\",\"name\":\"x\"}",
					    "{\"source\":7,\"nodes\":-3}",
					    "{\"source\":\"prolog\",\"nodes\":1e300,\"name\":[\"x\"]}"};
	struct job_names names;
	char *line;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		cJSON *object = cJSON_Parse(texts[i]);
		struct job_book *book = job_book__new();

		job_book__read(object, &names);
		assert_true(names.nodes <= JOB_NODES_MOST);
		assert_true(asprintf(&line, "{\"job\":{\"identity\":7,\"names\":%s}}", texts[i]) > 0);
		assert_int_equal(job_book__note_line(book, line), 0);
		assert_int_equal(job_book__count(book), 0);
		free(line);
		cJSON_Delete(object);
		job_book__free(book);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_come_from_process_records),
	    cmocka_unit_test(a_process_cannot_replace_what_root_wrote),
	    cmocka_unit_test(jobs_that_are_in_use_stay),
	    cmocka_unit_test(the_book_survives_a_checkpoint),
	    cmocka_unit_test(hostile_records_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
