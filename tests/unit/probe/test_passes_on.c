// SPDX-License-Identifier: GPL-2.0-or-later
/* Libraries between a program and MPI are recognised by their symbols, whatever their names; libraries are compiled
 * here. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "compiled.h"
#include "probe/elf/survey.h"
#include "sandbox/confine.h"

#define LIBRARY "-O1 -shared -fPIC"
#define PROFILER                                                                                                       \
	"int PMPI_Send(void); int PMPI_Init(void); "                                                                   \
	"int MPI_Send(void){return PMPI_Send() + 1;} int MPI_Init(void){return PMPI_Init() + 1;} "

static const struct confine_service services[] = {{SURVEY_SERVICE, survey__respond}, {0}};

static bool passes_on(const char *text, const char *options)
{
	char path[128], err[256] = "";
	struct image *image;
	bool result;

	compile(text, "image", options);
	path_of("image", path, sizeof(path));
	image = image__open(path, err, sizeof(err));
	if (!image)
		fail_msg("%s", err);
	result = transparent__passes_on(image);
	image__free(image);
	return result;
}

static void profilers_are_recognised(void **state)
{
	(void)state;
	assert_true(passes_on(PROFILER, LIBRARY));
	/* what else they ask of MPI is no communication, or by the other name as well */
	assert_true(passes_on(PROFILER "int PMPI_Allreduce(void); int MPI_Get_processor_name(void); "
				       "int MPI_Finalize(void){return PMPI_Allreduce() + MPI_Get_processor_name();}",
			      LIBRARY));
	/* by names that they look up while they run, as Darshan's */
	assert_true(passes_on("void *dlsym(void *, const char *); int MPI_File_open(void)"
			      "{return ((int (*)(void))dlsym((void *)-1L, \"MPI_File_open\"))();}",
			      LIBRARY));
}

static void bindings_of_fortran_are_recognised(void **state)
{
	static const char *const names[] = {"mpi_send", "mpi_send_", "mpi_send__", "MPI_SEND", "MPI_SEND_"};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(text, sizeof(text), "int PMPI_Send(void); int %s(void){return PMPI_Send() + 1;}", names[i]);
		assert_true(passes_on(text, LIBRARY));
	}
	assert_true(passes_on("int MPI_Send(void); int mpi_send_(void){return MPI_Send() + 1;}", LIBRARY));
	assert_true(passes_on("int pmpi_send_(void); int mpi_send_(void){return pmpi_send_() + 1;}", LIBRARY));
}

/* Call-sites of the library itself would be lost. */
static void libraries_with_calls_of_their_own_are_not(void **state)
{
	(void)state;
	assert_false(
	    passes_on(PROFILER "int MPI_Allreduce(void); int solve(void){return MPI_Allreduce() + 1;}", LIBRARY));
	assert_false(passes_on("int MPI_Send(void); int solve(void){return MPI_Send() + 1;}", LIBRARY));
	assert_false(passes_on("int PMPI_Send(void); int solve(void){return PMPI_Send() + 1;}", LIBRARY));
	assert_false(passes_on("int mpi_bcast_(void); int pmpi_send_(void); "
			       "int mpi_send_(void){return pmpi_send_() + mpi_bcast_();}",
			       LIBRARY));
	assert_false(passes_on("int nothing(void){return 0;}", LIBRARY));
}

static void programs_and_mpi_libraries_are_not(void **state)
{
	(void)state;
	assert_false(passes_on("void *dlsym(void *, const char *); int MPI_Send(void){return dlsym(0, \"\") != 0;} "
			       "int PMPI_Send(void){return 0;}",
			       LIBRARY));
	assert_false(passes_on("int MPI_Send(void){return 0;} int mpi_send_(void){return MPI_Send();}", LIBRARY));
	assert_false(passes_on("int PMPI_Send(void){return 0;} int MPI_Send(void){return PMPI_Send() + 1;} "
			       "int main(void){return MPI_Send();}",
			       "-O1 -rdynamic"));
	assert_false(passes_on("int PMPI_Send(void) __attribute__((weak)); "
			       "int MPI_Send(void){return PMPI_Send ? PMPI_Send() + 1 : 0;} "
			       "int main(void){return MPI_Send();}",
			       "-O1 -rdynamic"));
}

/* One look at the file gives the table of its calls, too. */
static void a_survey_has_the_calls(void **state)
{
	char path[128], err[256] = "";
	struct survey *survey;
	size_t count = 0;
	int file;

	(void)state;
	for (int recognised = 0; recognised < 2; recognised++) {
		compile(recognised ? PROFILER : "int other(void); int solve(void){return other() + 1;}", "image",
			LIBRARY);
		path_of("image", path, sizeof(path));
		file = open(path, O_RDONLY | O_CLOEXEC);
		survey = survey__query(file, 0, path, SURVEY_NAMES, NULL, 0, err, sizeof(err));
		if (!survey)
			fail_msg("%s", err);
		assert_int_equal(survey__passes_on(survey), recognised);
		survey__calls(survey, &count);
		assert_true(recognised ? count >= 2 : !count);
		survey__free(survey);
		close(file);
	}
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(profilers_are_recognised),
	    cmocka_unit_test(bindings_of_fortran_are_recognised),
	    cmocka_unit_test(libraries_with_calls_of_their_own_are_not),
	    cmocka_unit_test(programs_and_mpi_libraries_are_not),
	    cmocka_unit_test(a_survey_has_the_calls),
	};

	confine__main(argc, argv, services);
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
