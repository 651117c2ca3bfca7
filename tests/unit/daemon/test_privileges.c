/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capabilities by name: those that include others, and those of this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/privileges.h"

#define SYS_PTRACE 19
#define SYS_ADMIN 21

/* Returns the names of missing capabilities, each followed by a space. */
static const char *missing_of(uint64_t held, const char *release)
{
	static char names[512];

	names[0] = 0;
	for (size_t i = 0; i < privilege_count; i++) {
		if (privileges__missing(&privileges[i], held, release))
			strcat(strcat(names, privileges[i].name), " ");
	}
	return names;
}

static const char *missing(uint64_t held)
{
	return missing_of(held, "6.12.0");
}

static void test_names(void **state)
{
	uint64_t least =
	    1ULL << 39 | 1ULL << 38 | 1ULL << SYS_PTRACE | 1ULL << 2 | 1ULL << 40 | 1ULL << 6 | 1ULL << 7 | 1ULL << 5;

	(void)state;
	assert_string_equal(missing(UINT64_MAX), "");
	assert_string_equal(missing(least), "");
	assert_string_equal(missing(least & ~(1ULL << SYS_PTRACE)), "CAP_SYS_PTRACE ");
	assert_string_equal(missing(least & ~(1ULL << 40)), "CAP_CHECKPOINT_RESTORE ");
	/* capabilities that SYS_ADMIN and DAC_OVERRIDE include */
	assert_string_equal(missing((least & ~(1ULL << 38 | 1ULL << 39 | 1ULL << 40)) | 1ULL << SYS_ADMIN), "");
	assert_string_equal(missing((least & ~(1ULL << 2)) | 1ULL << 1), "");
	assert_string_equal(missing(1ULL << SYS_ADMIN),
			    "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_SETUID CAP_SETGID CAP_KILL ");
	/* capabilities that older kernels need */
	assert_string_equal(missing_of(least, "6.5.3"), "CAP_SYS_ADMIN ");
	assert_string_equal(missing_of(least, "5.10.0-9-amd64"), "CAP_SYS_ADMIN CAP_SYS_RESOURCE ");
	assert_string_equal(missing_of(UINT64_MAX, "5.10.0"), "");
}

static void test_held(void **state)
{
	unsigned long long wanted = 1;
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && sscanf(line, "CapEff: %llx", &wanted) != 1)
		;
	fclose(file);
	assert_true(privileges__held() == wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
