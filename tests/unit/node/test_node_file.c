// SPDX-License-Identifier: GPL-2.0-or-later
/* Profiles of nodes in files: what is written is read again, and what others may have made of it is refused. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/node_runs.h"

static char folder[] = "/tmp/vapro-node-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static struct node_run *some_run(void)
{
	struct node_scenario scenario = {.cpus = 4, .seed = 3, .seconds = 3, .scatter = 0.03, .slow = NOBODY};

	return simulate_run(&scenario);
}

static void test_round_trip(void **state)
{
	struct node_run *run = some_run(), *again;
	const struct machine_cpus *before = node_run__machine(run), *after;
	struct stat status;
	char err[256], why[256];

	(void)state;
	assert_int_equal(node_file__write(path_of("a"), run, err, sizeof(err)), 0);
	assert_int_equal(stat(path_of("a"), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	/* over what is there, also where that was readable by all */
	assert_int_equal(chmod(path_of("a"), 0644), 0);
	assert_int_equal(node_file__write(path_of("a"), run, err, sizeof(err)), 0);
	assert_int_equal(stat(path_of("a"), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(node_file__read(path_of("a"), &again, err, sizeof(err)), 0);
	after = node_run__machine(again);
	assert_int_equal(node_run__count(again), node_run__count(run));
	assert_true(machine_cpus__alike(before, after, why, sizeof(why)));
	assert_string_equal(after->host, "n1");
	for (int kernel = 0; kernel < NODE_KERNELS; kernel++)
		assert_true(node_run__mean_ns(run, (enum node_kernel)kernel) ==
			    node_run__mean_ns(again, (enum node_kernel)kernel));
	assert_true(node_run__begin_ns(run) == node_run__begin_ns(again));
	node_run__free(run);
	node_run__free(again);
}

static void refuse_file(const char *path, const char *expected)
{
	struct node_run *run;
	char err[512] = "";

	assert_true(node_file__read(path, &run, err, sizeof(err)) < 0);
	assert_null(run);
	if (!strstr(err, expected) || !strstr(err, path))
		fail_msg("%s", err);
}

static void write_bytes(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fchmod(fileno(file), 0600), 0);
	fclose(file);
}

static void test_no_profile(void **state)
{
	(void)state;
	refuse_file(path_of("none"), "No such file");
	refuse_file(folder, "no regular file");
	refuse_file("/dev/null", "no regular file");
	assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
	refuse_file(path_of("fifo"), "no regular file");
	write_bytes(path_of("empty"), "", 0);
	refuse_file(path_of("empty"), "0 bytes");
	write_bytes(path_of("text"), "{\"schema\":\"vapro/1\"}\n", 21);
	refuse_file(path_of("text"), "no checkpoint");
	write_bytes(path_of("large"), "x", 1);
	assert_int_equal(truncate(path_of("large"), 1L << 30), 0);
	refuse_file(path_of("large"), "at most");
	write_bytes(path_of("open"), "x", 1);
	assert_int_equal(chmod(path_of("open"), 0602), 0);
	refuse_file(path_of("open"), "others than its owner");
}

/* Where it cannot be written, what was there remains, and nothing lies beside it. */
static void test_not_written(void **state)
{
	struct node_run *run = some_run();
	char err[256] = "";

	(void)state;
	assert_true(node_file__write("/proc/none/a", run, err, sizeof(err)) < 0);
	assert_non_null(strstr(err, "/proc/none/a"));
	assert_int_equal(mkdir(path_of("directory"), 0700), 0);
	assert_true(node_file__write(path_of("directory"), run, err, sizeof(err)) < 0);
	assert_int_equal(rmdir(path_of("directory")), 0);
	/* a device or a link stays what it is */
	assert_true(node_file__write("/dev/null", run, err, sizeof(err)) < 0);
	assert_non_null(strstr(err, "no regular file"));
	assert_int_equal(symlink("elsewhere", path_of("link")), 0);
	assert_true(node_file__write(path_of("link"), run, err, sizeof(err)) < 0);
	assert_int_equal(unlink(path_of("link")), 0);
	node_run__free(run);
}

static bool parses(const uint8_t *data, size_t size)
{
	struct node_run *run;
	char err[256] = "";
	bool good = !node_file__parse(data, size, &run, err, sizeof(err));

	if (!good && !*err)
		fail_msg("no reason");
	node_run__free(run);
	return good;
}

/* A file that is cut anywhere, or of which a bit is another one. */
static void test_damage(void **state)
{
	struct node_run *run = some_run();
	size_t size;
	uint8_t *data = bytes_of(run, &size);

	(void)state;
	assert_true(parses(data, size));
	for (size_t cut = 0; cut < size; cut += cut < 100 ? 1 : 37)
		assert_false(parses(data, cut));
	for (size_t at = 0; at < size; at += at < 200 ? 1 : 23) {
		data[at] ^= 1 << (at % 8);
		assert_false(parses(data, size));
		data[at] ^= 1 << (at % 8);
	}
	free(data);
	node_run__free(run);
}

/* A file that is made on purpose has a right checksum: any byte is changed, then the file is sealed again. */
static void test_hostile(void **state)
{
	enum { CHECKSUM = 4, TRIES = 20000 };
	struct node_run *run = some_run();
	struct archive *archive = archive__new();
	uint64_t seed = 5;
	size_t size, sealed, refused = 0;
	uint8_t *bytes;

	(void)state;
	node_run__archive(archive, run);
	bytes = malloc(archive__data(archive, &size) ? size : 0);
	assert_non_null(bytes);
	for (int i = 0; i < TRIES; i++) {
		size_t at = (size_t)(sim_random(&seed) * (double)size);
		struct node_run *hostile = node_run__empty();
		struct archive *read;

		memcpy(bytes, archive__data(archive, &sealed), size);
		bytes[at] = (uint8_t)(256 * sim_random(&seed));
		bytes[(at + 1) % size] ^= (uint8_t)(256 * sim_random(&seed));
		read = archive__open(bytes, size, 64UL << 20);
		assert_non_null(read);
		assert_non_null(hostile);
		node_run__archive(read, hostile);
		archive__end(read);
		refused += archive__error(read) != 0;
		if (!archive__error(read)) {
			assert_true(node_run__machine(hostile)->count > 0);
			assert_true(node_run__seconds(hostile) < 86400);
		}
		archive__free(read);
		node_run__free(hostile);
	}
	assert_true(refused > TRIES / 2);
	free(bytes);
	archive__free(archive);
	node_run__free(run);
}

/* What a sealed file may claim. */
static void test_claims(void **state)
{
	struct node_scenario scenario = {.cpus = 2, .seed = 3, .seconds = 3, .scatter = 0.03, .slow = NOBODY};
	struct node_bundle good = {.n = 2, .start_ns = 100, .end_ns = 300, .sum_ns = 200, .min_ns = 90, .max_ns = 110};
	struct node_run *run = simulate_run(&scenario);
	struct node_bundle bundle;

	(void)state;
	bundle = good;
	assert_int_equal(node_run__add(run, &bundle), 0);
	bundle.instance = 2;
	assert_int_equal(node_run__add(run, &bundle), -EINVAL);
	bundle = good;
	bundle.kernel = NODE_KERNELS;
	assert_int_equal(node_run__add(run, &bundle), -EINVAL);
	bundle = good;
	bundle.n = 0;
	assert_int_equal(node_run__add(run, &bundle), -EINVAL);
	bundle = good;
	bundle.end_ns = 50;
	assert_int_equal(node_run__add(run, &bundle), -EINVAL);
	bundle = good;
	bundle.sum_ns = 1000;
	assert_int_equal(node_run__add(run, &bundle), -EINVAL);
	bundle = good;
	bundle.waited_ns = 201;
	assert_int_equal(node_run__add(run, &bundle), -EINVAL);
	bundle = good;
	bundle.min_ns = 120;
	assert_int_equal(node_run__add(run, &bundle), -EINVAL);
	bundle = good;
	bundle.end_ns = UINT64_MAX;
	assert_int_equal(node_run__add(run, &bundle), -EINVAL);
	node_run__free(run);
}

/* A control character of a file would reach the terminal. */
static void test_texts(void **state)
{
	struct machine_cpus machine = {.host = "n1\033[2J", .array_bytes = 4096};
	struct machine_cpu cpu = {.cpu = 0};
	struct node_bundle bundle = {
	    .n = 2, .start_ns = 100, .end_ns = 300, .sum_ns = 200, .min_ns = 90, .max_ns = 110};
	struct node_run *run, *again;
	uint8_t *data;
	char err[256];
	size_t size;

	(void)state;
	machine.cpus = &cpu;
	machine.count = machine.capacity = 1;
	run = node_run__new(&machine);
	assert_non_null(run);
	assert_int_equal(node_run__add(run, &bundle), 0);
	data = bytes_of(run, &size);
	assert_int_equal(node_file__parse(data, size, &again, err, sizeof(err)), -EBADMSG);
	assert_null(again);
	assert_non_null(strstr(err, "texts"));
	free(data);
	node_run__free(run);
}

static void test_classes(void **state)
{
	struct node_scenario scenario = {.cpus = 4, .seed = 3, .seconds = 3, .scatter = 0.03, .slow = NOBODY};
	struct machine_cpus a, b;
	char why[256];

	(void)state;
	make_machine(&a, &scenario);
	make_machine(&b, &scenario);
	snprintf(b.host, sizeof(b.host), "n2");
	assert_true(machine_cpus__alike(&a, &b, why, sizeof(why)));
	b.cpus[3].cpu = 9;
	assert_false(machine_cpus__alike(&a, &b, why, sizeof(why)));
	assert_non_null(strstr(why, "other CPUs"));
	b.cpus[3].cpu = 3;
	b.count = 3;
	assert_false(machine_cpus__alike(&a, &b, why, sizeof(why)));
	assert_non_null(strstr(why, "4 CPUs, not 3"));
	b.count = 4;
	b.array_bytes /= 2;
	assert_false(machine_cpus__alike(&a, &b, why, sizeof(why)));
	assert_non_null(strstr(why, "arrays"));
	b.array_bytes *= 2;
	snprintf(b.build, sizeof(b.build), "another");
	assert_false(machine_cpus__alike(&a, &b, why, sizeof(why)));
	assert_non_null(strstr(why, "built by"));
	snprintf(b.model, sizeof(b.model), "another");
	assert_false(machine_cpus__alike(&a, &b, why, sizeof(why)));
	assert_non_null(strstr(why, "of the CPU"));
	machine_cpus__clear(&a);
	machine_cpus__clear(&b);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = {"a", "fifo", "empty", "text", "large", "open"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(path_of(names[i]));
	return rmdir(folder); /* fails where something was left beside them */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_round_trip), cmocka_unit_test(test_no_profile), cmocka_unit_test(test_not_written),
	    cmocka_unit_test(test_damage),     cmocka_unit_test(test_hostile),	  cmocka_unit_test(test_claims),
	    cmocka_unit_test(test_texts),      cmocka_unit_test(test_classes),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
