// SPDX-License-Identifier: GPL-2.0-or-later
/* What jobs are called in titles and sentences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/record.h"
#include "report/summary.h"
#include "report/summary_parts.h"

#define UNNAMED 4000123 /* a uid without a name */

static void program_and_name_come_first(void **state)
{
	static const struct {
		struct summary_title title;
		const char *text;
	} cases[] = {
	    {{.job = "slurm:2.0"}, "job slurm:2.0"},
	    {{.job = ""}, "job (no name)"},
	    {{.job = "slurm:2.0", .user = UNNAMED + 1}, "job slurm:2.0 (user 4000123)"},
	    {{.job = "slurm:2.0", .program = "/opt/heat"}, "heat (slurm 2.0)"},
	    {{.job = "slurm:2.0", .program = "/opt/heat", .others = true, .user = UNNAMED + 1},
	     "heat and others (slurm 2.0, user 4000123)"},
	    {{.job = "slurm:2.372310017@192.0.2.2", .program = "/opt/heat", .called = "my heat"},
	     "heat \"my heat\" (slurm 2)"},
	    {{.job = "slurm:2.372310017@192.0.2.2", .program = "/opt/heat", .whole = true},
	     "heat (slurm:2.372310017@192.0.2.2)"},
	    {{.job = "none:pid-7@vm", .program = "python3.11 train.py"}, "python3.11 train.py (process 7)"},
	    {{.job = "slurm:2", .called = "my heat"}, "job \"my heat\" (slurm 2)"},
	    {{.job = "slurm:2", .program = "/opt/\x1b[31mheat", .called = "a\nb"}, "?[31mheat \"a?b\" (slurm 2)"},
	};
	char buf[SUMMARY_JOB_NAME];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(summary__job_name(&cases[i].title, buf), cases[i].text);
}

static void add(struct summary *summary, const char *text)
{
	cJSON *record = cJSON_Parse(text);
	const char *why = "";

	assert_non_null(record);
	if (summary__add_record(summary, record, &why))
		fail_msg("%s", why);
	cJSON_Delete(record);
}

#define PROCESS(identity, names)                                                                                       \
	"{\"schema\":\"vapro/1\",\"type\":\"process\",\"host\":\"n\",\"pid\":7,\"exe\":\"/opt/"                        \
	"heat\",\"rank\":0,\"state\":"                                                                                 \
	"\"attached\",\"job\":{\"identity\":\"" identity "\",\"uid\":4000123" names "}}"

static void equal_titles_are_whole(void **state)
{
	struct summary *summary = summary__new();
	char buf[SUMMARY_JOB_NAME];

	(void)state;
	assert_non_null(summary);
	add(summary, PROCESS("slurm:2.11@a", ",\"names\":{\"name\":\"my heat\",\"source\":\"prolog\"}"));
	assert_string_equal(summary__job_title(summary, &summary->jobs[0], buf),
			    "heat \"my heat\" (slurm 2, user 4000123)");
	/* a second mpirun inside of the same allocation */
	add(summary, PROCESS("slurm:2.12@a", ""));
	assert_string_equal(summary__job_title(summary, &summary->jobs[0], buf),
			    "heat \"my heat\" (slurm:2.11@a, user 4000123)");
	assert_string_equal(summary__job_title(summary, &summary->jobs[1], buf), "heat (slurm:2.12@a, user 4000123)");
	summary__free(summary);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(program_and_name_come_first),
	    cmocka_unit_test(equal_titles_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
