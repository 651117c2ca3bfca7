// SPDX-License-Identifier: GPL-2.0-or-later
/* Messages by level: which are printed, how, and the priorities of the journal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <fcntl.h>

#include "base/log.h"

static char text[4096];

static void print_all(void)
{
	log__error("e%d", 1);
	log__warning("two\nlines\n");
	log__info("i");
	log__progress("10 s");
	log__debug("d");
}

/* Puts what print_all prints into text; JOURNAL_STREAM names its file if journal is 1, and another if it is 2. */
static void catch (enum log_level most, int journal)
{
	FILE *to = tmpfile();
	int before = dup(STDERR_FILENO);
	struct stat status;
	char stream[64];
	size_t length;

	assert_non_null(to);
	assert_int_equal(fstat(fileno(to), &status), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)status.st_dev,
		 (unsigned long long)status.st_ino + (journal == 2));
	if (journal)
		setenv("JOURNAL_STREAM", stream, 1);
	else
		unsetenv("JOURNAL_STREAM");
	fflush(stderr);
	dup2(fileno(to), STDERR_FILENO);
	log__init("vaprod", most);
	print_all();
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(to);
	length = fread(text, 1, sizeof(text) - 1, to);
	text[length] = '\0';
	fclose(to);
}

static void levels(void **state)
{
	(void)state;
	catch (LOG_LEVEL_WARNING, 0);
	assert_string_equal(text, "vaprod: e1\nvaprod: two\nvaprod: lines\n");
	assert_false(log__prints(LOG_LEVEL_INFO));
	catch (LOG_LEVEL_INFO, 0); /* progress is for terminals only */
	assert_string_equal(text, "vaprod: e1\nvaprod: two\nvaprod: lines\nvaprod: i\n");
	catch (LOG_LEVEL_DEBUG, 0);
	assert_string_equal(text, "vaprod: e1\nvaprod: two\nvaprod: lines\nvaprod: i\nvaprod: d\n");
}

static void journal(void **state)
{
	(void)state;
	catch (LOG_LEVEL_DEBUG, 1);
	assert_string_equal(text, "<3>e1\n<4>two\n<4>lines\n<6>i\n<7>d\n");
	catch (LOG_LEVEL_ERROR, 2); /* inherited from a unit, but standard error is another file */
	assert_string_equal(text, "vaprod: e1\n");
}

/* On a terminal lines end between words; a word that is longer than a line is divided. */
static void words(void **state)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY), before = dup(STDERR_FILENO), side;
	char got[1024];
	size_t length = 0;
	ssize_t more;

	(void)state;
	assert_true(terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal));
	side = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(side >= 0);
	setenv("COLUMNS", "40", 1);
	unsetenv("JOURNAL_STREAM");
	log__init("vaprod", LOG_LEVEL_INFO);
	fflush(stderr);
	dup2(side, STDERR_FILENO);
	log__info("a word and another word and one more, %s behind it", "/a/path/that/is/longer/than/the/terminal/is");
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(side);
	while ((more = read(terminal, got + length, sizeof(got) - 1 - length)) > 0) /* -EIO: nothing is left */
		length += (size_t)more;
	got[length] = '\0';
	assert_string_equal(got, "vaprod: a word and another word and one\r\n"
				 "  more,\r\n"
				 "  /a/path/that/is/longer/than/the/termin\r\n"
				 "  al/is behind it\r\n");
	unsetenv("COLUMNS");
	close(before);
	close(terminal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(levels), cmocka_unit_test(journal),
					   cmocka_unit_test(words)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
