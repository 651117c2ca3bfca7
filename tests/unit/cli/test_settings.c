// SPDX-License-Identifier: GPL-2.0-or-later
/* The places of the configuration: which files are read, in which order, and what they are refused for. */
#include <errno.h>
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

#include "cli/command_line.h"
#include "cli/settings.h"

static char root[] = "/tmp/vapro-test-settings-XXXXXX", err[512];
static struct vapro_config config;

static void put(const char *path, const char *text)
{
	char name[256];
	FILE *file;

	snprintf(name, sizeof(name), "%s%s", root, path);
	file = fopen(name, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make(void **state)
{
	static const char *const folders[] = {"/etc", "/etc/vapro", "/etc/vapro/vapro.conf.d"};
	char name[256];

	(void)state;
	if (!mkdtemp(root))
		return -1;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(name, sizeof(name), "%s%s", root, folders[i]);
		if (mkdir(name, 0700))
			return -1;
	}
	return 0;
}

static int clean(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static int read_places(const struct config_others *others)
{
	config__init(&config);
	return settings__read(&config, NULL, root, others, NULL, err, sizeof(err));
}

static void places(void **state)
{
	(void)state;
	assert_int_equal(read_places(NULL), 0); /* no file: the defaults */
	assert_true(config.window_s == 15);
	put("/etc/vapro.conf", "window = 20\n");
	assert_int_equal(read_places(NULL), 1);
	assert_true(config.window_s == 20);
	put("/etc/vapro/vapro.conf", "[analysis]\nwindow = 30\nthreshold = 80%\n");
	put("/etc/vapro/vapro.conf.d/20-late.conf", "[analysis]\nwindow = 50\n");
	put("/etc/vapro/vapro.conf.d/10-early.conf", "[analysis]\nwindow = 40\nmin-lost = 1s\n");
	put("/etc/vapro/vapro.conf.d/README", "this is no configuration\n");
	assert_int_equal(read_places(NULL), 3);
	assert_true(config.window_s == 50 && config.threshold == 0.8 && config.min_lost_s == 1);
	put("/etc/vapro/vapro.conf.d/20-late.conf", "[analysis]\nwindow = 1d\n");
	assert_int_equal(read_places(NULL), -EINVAL);
	assert_non_null(strstr(err, "20-late.conf:2: window: invalid duration '1d'"));
	put("/etc/vapro/vapro.conf.d/20-late.conf", "");
}

/* What is vaprod's alone is known to all, and belongs to a section. */
static void settings_of_the_daemon(void **state)
{
	(void)state;
	put("/etc/vapro/vapro.conf.d/30.conf", "[output]\noutput = /tmp/x\nquiet = yes\n[overhead]\ncpus = 0\n");
	assert_int_equal(read_places(NULL), -ENOENT);
	assert_int_equal(read_places(&settings_of_vaprod), 4);
	put("/etc/vapro/vapro.conf.d/30.conf", "[output]\ncpus = 0\n");
	assert_int_equal(read_places(&settings_of_vaprod), -EINVAL);
	assert_non_null(strstr(err, "cpus belongs to [overhead], not to [output]"));
	put("/etc/vapro/vapro.conf.d/30.conf", "outptu = 0\n");
	assert_int_equal(read_places(&settings_of_vaprod), -ENOENT);
	assert_non_null(strstr(err, "did you mean 'output'?"));
	put("/etc/vapro/vapro.conf.d/30.conf", "[publishing]\npublish = nats://b\npublish-ca = x\n"); /* older names */
	assert_int_equal(read_places(&settings_of_vaprod), 4);
	put("/etc/vapro/vapro.conf.d/30.conf", "version = 1\n"); /* an option, but no setting */
	assert_int_equal(read_places(&settings_of_vaprod), -ENOENT);
}

/* What is printed reads as the same configuration. */
static void round_trip(void **state)
{
	static const char *globs[] = {"a*", "b*"};
	const struct command_line line = {.globs = {.items = globs, .count = 2}};
	struct vapro_config again;
	char name[256];
	FILE *file;

	(void)state;
	config__init(&config);
	assert_int_equal(config__set(&config, "threshold", "70%", err, sizeof(err)), 0);
	assert_int_equal(config__set(&config, "function", "exe:a; exe:b", err, sizeof(err)), 0);
	assert_int_equal(config__set(&config, "no-return", "yes", err, sizeof(err)), 0);
	assert_int_equal(config__set(&config, "event FOO", "cpu/event=0xc0/", err, sizeof(err)), 0);
	snprintf(name, sizeof(name), "%s/printed.conf", root);
	file = fopen(name, "w+");
	assert_non_null(file);
	settings__print(&config, &line, &(struct command_line){0}, file);
	fclose(file);
	config__init(&again);
	assert_int_equal(settings__read(&again, name, "", &settings_of_vaprod, NULL, err, sizeof(err)), 1);
	assert_memory_equal(&again, &config, sizeof(config));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(places),
	    cmocka_unit_test(settings_of_the_daemon),
	    cmocka_unit_test(round_trip),
	};

	return cmocka_run_group_tests(tests, make, clean);
}
