// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The confined reader: what it may not do, what becomes of one that breaks, that no answer is
 * believed unchecked, and that good answers say what parsing in-process says. Built twice: with
 * sanitizers as a unit test, without (and so with the limit on memory) for tests/live/confine.t.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "probe/survey.h"
#include "target/confine_private.h"
#include "target/image_tables.h"
#include "target/process.h"
#include "target/source.h"

#define CASES "build/test/site_cases.so"
#define FLIP "VAPRO_TEST_FLIP"
#define FLIPS 160
#define TABLE_FLIPS 4000
#ifndef DAMAGES /* a long run is made with -DDAMAGES=2000 */
#define DAMAGES 12
#endif

/* ---- what readers of this program can be asked to do */

enum deed {
	DEED_ECHO,
	DEED_REFUSE,
	DEED_CRASH,
	DEED_SLEEP,
	DEED_SPIN,
	DEED_EAT,
	DEED_SOCKET,
	DEED_FORK,
	DEED_KILL,
	DEED_EXECUTABLE,
	DEED_STDOUT,
	DEED_OPEN,
	DEED_SILENT,
	DEED_HALF_HEAD,
	DEED_HUGE,
	DEED_MORE,
};

static void say(const void *data, size_t size)
{
	if (write(CONFINE_PIPE, data, size) != (ssize_t)size)
		syscall(SYS_exit_group, 1);
}

static int break_down(enum deed deed)
{
	static volatile uint32_t word;
	volatile int *nowhere = NULL;
	struct confine_head head = {.size = 4};

	switch (deed) {
	case DEED_CRASH:
		*nowhere = 1;
		break;
	case DEED_SLEEP:
		for (;;)
			syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
	case DEED_SPIN:
		for (;;)
			word++;
	case DEED_EAT:
		for (size_t size = 1 << 20;; size *= 2) {
			char *more = malloc(size);

			if (!more)
				return -ENOMEM;
			memset(more, 1, size);
		}
	case DEED_SOCKET:
		return socket(AF_UNIX, SOCK_STREAM, 0);
	case DEED_FORK:
		return fork();
	case DEED_KILL:
		return (int)syscall(SYS_kill, 1, 0);
	case DEED_EXECUTABLE:
		return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != NULL;
	case DEED_STDOUT:
		return (int)syscall(SYS_write, 1, "x", 1);
	case DEED_SILENT:
		syscall(SYS_exit_group, 0);
		break;
	case DEED_HALF_HEAD:
		say(&head, sizeof(head) / 2);
		syscall(SYS_exit_group, 0);
		break;
	case DEED_HUGE:
		head.size = 1ULL << 40;
		say(&head, sizeof(head));
		syscall(SYS_exit_group, 0);
		break;
	case DEED_MORE:
		say(&head, sizeof(head));
		say("12345", 5);
		syscall(SYS_exit_group, 0);
	default:
		break;
	}
	return 0;
}

static int do_deed(struct flat_reader *about, struct confine_file *files, unsigned int file_count, struct flat *answer,
		   char *err, size_t err_size)
{
	enum deed deed = (enum deed)flat__get(about);

	if (deed == DEED_REFUSE) {
		snprintf(err, err_size, "refused: \x1b[31m%d", (int)deed);
		return -EINVAL;
	}
	if (deed == DEED_OPEN) {
		flat__put(answer, open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 ? (uint64_t)errno : 0);
		return 0;
	}
	if (deed != DEED_ECHO)
		return break_down(deed);
	flat__put(answer, flat__get(about));
	flat__put(answer, file_count ? files[0].size : 0);
	return 0;
}

/* A survey whose answer is spoilt on demand, as a reader might that its image has taken over. */
static int spoilt_survey(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
			 struct flat *answer, char *err, size_t err_size)
{
	const char *flip = getenv(FLIP);
	int status = survey__answer(about, files, file_count, answer, err, err_size);
	uint32_t state = flip ? (uint32_t)atoi(flip) : 0;

	for (int i = 0; state && !status && i < 3; i++) {
		uint8_t *at;

		state ^= state << 13;
		state ^= state >> 17;
		state ^= state << 5;
		at = &answer->data[state % answer->size];
		*at = i == 2 ? 0xff : (uint8_t)(state >> 24);
	}
	if (state && !status && state % 4 == 0)
		answer->size -= state % (answer->size / 2);
	return status;
}

static const struct confine_service services[] = {
    {"deed", do_deed},
    {SURVEY_SERVICE, spoilt_survey},
    {SOURCE_SERVICE, source__answer},
    {0},
};

/* ---- the tests */

static int ask(enum deed deed, int file, unsigned int limit_ms, struct confine_answer *answer, char *err,
	       size_t err_size)
{
	struct flat about = {0};
	struct confine_question question = {
	    .service = "deed", .about = &about, .files = {file}, .file_count = file >= 0, .limit_ms = limit_ms};
	int status;

	flat__put(&about, deed);
	flat__put(&about, 77);
	status = confine__ask(&question, answer, err, err_size);
	free(about.data);
	return status;
}

static void broken(enum deed deed, unsigned int limit_ms, const char *named)
{
	struct confine_answer answer;
	char err[256] = "";

	assert_int_equal(ask(deed, -1, limit_ms, &answer, err, sizeof(err)), -EPROTO);
	assert_null(answer.data);
	if (!strstr(err, named))
		fail_msg("deed %d: '%s' does not say '%s'", (int)deed, err, named);
}

static void test_answers(void **state)
{
	struct confine_answer answer;
	struct flat_reader reader;
	char err[256];
	int file = open(CASES, O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(ask(DEED_ECHO, file, 0, &answer, err, sizeof(err)), 0);
	reader = (struct flat_reader){.at = answer.data, .end = answer.data + answer.size};
	assert_int_equal(flat__get(&reader), 77);
	assert_int_equal(flat__get(&reader), lseek(file, 0, SEEK_END));
	assert_true(flat__done(&reader));
	free(answer.data);
	close(file);
	/* a refusal's own words, without what a terminal would obey */
	assert_int_equal(ask(DEED_REFUSE, -1, 0, &answer, err, sizeof(err)), -EINVAL);
	assert_string_equal(err, "refused: ?[31m1");
	/* opening is denied, and does not kill: libdw tries */
	assert_int_equal(ask(DEED_OPEN, -1, 0, &answer, err, sizeof(err)), 0);
	reader = (struct flat_reader){.at = answer.data, .end = answer.data + answer.size};
	assert_int_equal(flat__get(&reader), EACCES);
	free(answer.data);
}

static void test_files(void **state)
{
	struct confine_answer answer;
	char err[256];
	int file = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(ask(DEED_ECHO, file, 0, &answer, err, sizeof(err)), -EFBIG);
	assert_string_equal(err, "not a regular file");
	close(file);
	file = memfd_create("huge", MFD_CLOEXEC);
	assert_int_equal(ftruncate(file, (off_t)CONFINE_FILE_BYTES_MAX + 1), 0);
	assert_int_equal(ask(DEED_ECHO, file, 0, &answer, err, sizeof(err)), -EFBIG);
	assert_non_null(strstr(err, "out of range"));
	close(file);
}

static void test_broken(void **state)
{
	(void)state;
	broken(DEED_SLEEP, 500, "no answer within 500 ms");
	broken(DEED_SPIN, 500, "no answer within 500 ms");
	broken(DEED_SOCKET, 0, "forbidden");
	broken(DEED_FORK, 0, "forbidden");
	broken(DEED_KILL, 0, "forbidden");
	broken(DEED_EXECUTABLE, 0, "forbidden");
	broken(DEED_STDOUT, 0, "forbidden");
	broken(DEED_SILENT, 0, "makes no sense");
	broken(DEED_HALF_HEAD, 0, "makes no sense");
	broken(DEED_HUGE, 0, "makes no sense");
	broken(DEED_MORE, 0, "makes no sense");
#if defined(__SANITIZE_ADDRESS__) /* its handler of crashes opens files, and its heap has no limit */
	broken(DEED_CRASH, 0, "its confined reader");
#else
	broken(DEED_CRASH, 0, "crashed (signal 11)");
	broken(DEED_EAT, 0, "more memory than it may have");
#endif
}

static void rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

/* A file that breaks readers does so once a minute at most, and no other file suffers for it. */
static void test_not_tried_again(void **state)
{
	struct confine_answer answer;
	char err[256] = "";
	int bad = memfd_create("bad", MFD_CLOEXEC), good = memfd_create("good", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ask(DEED_SILENT, bad, 0, &answer, err, sizeof(err)), -EPROTO);
	assert_non_null(strstr(err, "makes no sense"));
	assert_int_equal(ask(DEED_ECHO, bad, 0, &answer, err, sizeof(err)), -EPROTO);
	assert_non_null(strstr(err, "not tried again yet"));
	assert_int_equal(ask(DEED_ECHO, good, 0, &answer, err, sizeof(err)), 0);
	free(answer.data);
	/* nor one that was mended; times of change are coarse */
	rest();
	rest();
	assert_int_equal(write(bad, "x", 1), 1);
	assert_int_equal(ask(DEED_ECHO, bad, 0, &answer, err, sizeof(err)), 0);
	free(answer.data);
	close(bad);
	close(good);
}

static void test_not_armed(void **state)
{
	struct confine_answer answer;
	char err[256];

	(void)state;
	confine__armed = false;
	assert_int_equal(ask(DEED_ECHO, -1, 0, &answer, err, sizeof(err)), -ENOSYS);
	confine__armed = true;
	assert_int_equal(ask(DEED_ECHO, -1, 0, &answer, err, sizeof(err)), 0);
	free(answer.data);
}

/* The text of a file of /proc/PID; false when it is gone. */
static bool look(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	FILE *file;
	size_t length;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	length = fread(text, 1, size - 1, file);
	text[length] = '\0';
	fclose(file);
	return length > 0;
}

/* An asker in a process of its own, whose reader sleeps; waits until that is confined. */
static pid_t start_asker(pid_t *reader)
{
	char name[64], text[4096];
	pid_t asker = fork();

	if (!asker) {
		struct confine_answer answer;
		char err[256] = "";
		int status = ask(DEED_SLEEP, -1, 20000, &answer, err, sizeof(err));

		_exit(status == -EPROTO && strstr(err, "crashed (signal 9)") ? 0 : 1);
	}
	assert_true(asker > 0);
	snprintf(name, sizeof(name), "task/%d/children", asker);
	for (int i = 0; i < 1000; i++, rest()) {
		*reader = look(asker, name, text, sizeof(text)) ? atoi(text) : 0;
		if (*reader && look(*reader, "status", text, sizeof(text)) && strstr(text, "\nSeccomp:\t2\n"))
			return asker;
	}
	kill(asker, SIGKILL);
	fail_msg("the reader was never confined: %s", text);
	return -1;
}

static void has(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("'%s' is not in:\n%s", line, text);
}

static void test_confined(void **state)
{
	char status[4096], limits[4096], path[64], oom[64];
	int how, kept = 0;
	pid_t reader, asker = start_asker(&reader);

	(void)state;
	assert_true(look(reader, "status", status, sizeof(status)));
	assert_true(look(reader, "limits", limits, sizeof(limits)));
	assert_true(look(reader, "oom_score_adj", oom, sizeof(oom)));
	for (int fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", reader, fd);
		kept += fd > 2 && readlink(path, status + sizeof(status) - 1, 1) > 0 ? fd : 0;
	}
	kill(reader, SIGKILL);
	waitpid(asker, &how, 0);
	assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0); /* it named the reader's end */
	has(status, "\nNoNewPrivs:\t1\n");
	assert_string_equal(oom, "1000\n");
	has(status, "\nSeccomp:\t2\n");
	has(limits, "Max core file size        0                    0 ");
	has(limits, "Max file size             0                    0 ");
	has(limits, "Max open files            0                    0 ");
	has(limits, "Max cpu time              5                    5 ");
#if !defined(__SANITIZE_ADDRESS__)
	has(limits, "Max address space         402653184            402653184 ");
#endif
	if (geteuid()) /* who is nobody in particular stays so */
		return;
	has(status, "\nUid:\t65534\t65534\t65534\t65534\n");
	has(status, "\nGid:\t65534\t65534\t65534\t65534\n");
	has(status, "\nGroups:\t \n");
	has(status, "\nCapPrm:\t0000000000000000\n");
	has(status, "\nCapEff:\t0000000000000000\n");
	assert_int_equal(kept, CONFINE_PIPE); /* the one descriptor left but the first three */
}

/* kill -9 of the daemon leaves no reader behind. */
static void test_asker_dies(void **state)
{
	char text[4096] = "";
	int how;
	pid_t reader, asker = start_asker(&reader);

	(void)state;
	kill(asker, SIGKILL);
	waitpid(asker, &how, 0);
	for (int i = 0; i < 1000; i++, rest())
		if (!look(reader, "status", text, sizeof(text)) || strstr(text, "State:\tZ"))
			return;
	kill(reader, SIGKILL);
	fail_msg("the reader lives on: %s", text);
}

struct truth {
	struct image *image;
	struct survey_wanted wanted[256];
	struct image_symbol symbols[256];
	size_t count;
};

static int collect(const struct image_symbol *symbol, void *ctx)
{
	struct truth *truth = ctx;

	assert_true(truth->count < 256);
	truth->symbols[truth->count] = *symbol;
	truth->wanted[truth->count++] = (struct survey_wanted){.symbol = symbol->name, .arguments = 0x3f};
	return 0;
}

static void same_text(const char *a, const char *b)
{
	assert_string_equal(a ? a : "", b ? b : "");
}

static void same_objects(struct image *told, struct image *image)
{
	uint64_t vaddr, size, other_vaddr, other_size;

	assert_int_equal(image__object(told, "object", &vaddr, &size), 0);
	assert_int_equal(image__object(image, "object", &other_vaddr, &other_size), 0);
	assert_int_equal(vaddr, other_vaddr);
	assert_int_equal(size, other_size);
	assert_int_equal(image__object(told, "push_first", &vaddr, &size), -ENOENT);
}

/* The survey says of each function what image.c and site.c say here. */
static void test_survey(void **state)
{
	static struct truth truth;
	char err[256] = "";
	const struct survey_function *functions;
	struct survey *survey;
	struct image *told;
	size_t count, matched = 0;
	int file = open(CASES, O_RDONLY | O_CLOEXEC);

	(void)state;
	truth.image = image__open(CASES, NULL, err, sizeof(err));
	assert_non_null(truth.image);
	image__functions(truth.image, false, collect, &truth);
	assert_true(truth.count > 10);
	survey = survey__ask(file, "/cases.so", SURVEY_NAMES, truth.wanted, truth.count, err, sizeof(err));
	if (!survey)
		fail_msg("%s", err);
	told = survey__image(survey);
	assert_string_equal(image__label(told), "/cases.so");
	assert_string_equal(image__build_id(told), image__build_id(truth.image));
	functions = survey__functions(survey, &count);
	for (size_t i = 0; i < count; i++) {
		const struct survey_function *function = &functions[i];
		uint64_t distance, offset;
		struct site site;

		for (size_t j = 0; j < truth.count; j++) {
			const struct image_symbol *symbol = &truth.symbols[j];

			if (strcmp(symbol->name, function->symbol.name) || symbol->vaddr != function->symbol.vaddr)
				continue;
			matched++;
			assert_int_equal(site__choose(truth.image, symbol, 0x3f, &site), 0);
			assert_int_equal(function->symbol.offset, symbol->offset);
			assert_int_equal(function->symbol.size, symbol->size);
			assert_int_equal(function->site.vaddr, site.vaddr);
			assert_int_equal(function->site.offset, site.offset);
			assert_int_equal(function->site.shift, site.shift);
			assert_int_equal(function->site.class, site.class);
			same_text(function->site.reason, site.reason);
			same_text(function->site.instruction, site.instruction);
		}
		assert_int_equal(image__offset_of(told, function->symbol.vaddr, &offset), 0);
		assert_int_equal(offset, function->symbol.offset);
		same_text(image__symbolise(told, function->symbol.vaddr, &distance),
			  image__symbolise(truth.image, function->symbol.vaddr, &distance));
	}
	assert_int_equal(matched, truth.count);
	same_objects(told, truth.image);
	/* and it has no bytes to be parsed here */
	assert_null(image__bytes(told, functions[0].symbol.vaddr, &count));
	survey__free(survey);
	image__free(truth.image);
	close(file);
}

static void test_survey_refuses(void **state)
{
	char err[256] = "";
	int file = open("tests/unit/site_cases.S", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_null(survey__ask(file, "/cases.S", SURVEY_NAMES, NULL, 0, err, sizeof(err)));
	assert_string_equal(err, "/cases.S: not an ELF file");
	close(file);
}

/* Spoilt answers are refused by name, or what is left of them is safe to use. */
static void test_survey_spoilt(void **state)
{
	static const struct survey_wanted wanted[] = {{"push_first", 0x3f}, {"no_frame", 0x3f}};
	int file = open(CASES, O_RDONLY | O_CLOEXEC), refused = 0;

	(void)state;
	for (int i = 1; i <= FLIPS; i++) {
		char err[256] = "", number[16];
		const struct survey_function *functions;
		struct survey *survey;
		uint64_t vaddr, size;
		size_t count;

		snprintf(number, sizeof(number), "%d", i);
		setenv(FLIP, number, 1);
		survey = survey__ask(file, CASES, i % 4 ? 0 : SURVEY_NAMES | SURVEY_IO, wanted, 2, err, sizeof(err));
		if (!survey) {
			assert_non_null(strstr(err, "makes no sense"));
			refused++;
			continue;
		}
		functions = survey__functions(survey, &count);
		for (size_t j = 0; j < count; j++) {
			assert_true(functions[j].wanted < 2);
			assert_true(functions[j].site.class < SITE_CLASSES);
			assert_true(functions[j].site.vaddr - functions[j].symbol.vaddr < 4096);
			image__symbolise(survey__image(survey), functions[j].symbol.vaddr, &size);
		}
		image__object(survey__image(survey), "object", &vaddr, &size);
		assert_true(strlen(image__build_id(survey__image(survey))) < IMAGE_BUILD_ID_MAX);
		survey__free(survey);
	}
	unsetenv(FLIP);
	assert_true(refused > 0 && refused < FLIPS);
	close(file);
}

/* The same without a reader, and many more of them: tables in which anything may stand. */
static void test_tables_spoilt(void **state)
{
	char err[256] = "";
	struct image *image = image__open(CASES, NULL, err, sizeof(err));
	uint32_t random = 12345;
	struct flat good = {0};
	int refused = 0;

	(void)state;
	assert_non_null(image);
	image_tables__put(image, true, &good);
	assert_false(good.failed);
	for (int i = 0; i < TABLE_FLIPS; i++) {
		uint8_t *bytes = malloc(good.size);
		size_t size = good.size;
		struct flat_reader reader;
		struct image *told;
		uint64_t vaddr, distance;
		bool memory;

		assert_non_null(bytes);
		memcpy(bytes, good.data, size);
		for (int j = 0; j < 3; j++) {
			random ^= random << 13;
			random ^= random >> 17;
			random ^= random << 5;
			bytes[random % size] = (uint8_t)(random >> 24);
		}
		if (i % 5 == 0)
			size = random % size;
		reader = (struct flat_reader){.at = bytes, .end = bytes + size};
		told = image_tables__get(&reader, 1 << 20, "spoilt", &memory);
		refused += !told;
		for (uint64_t at = 0; told && at < 0x4000; at += 256)
			if (!image__vaddr_of(told, at, &vaddr))
				image__symbolise(told, vaddr, &distance);
		image__free(told);
		free(bytes);
	}
	assert_true(refused > 0 && refused < TABLE_FLIPS);
	free(good.data);
	image__free(image);
}

/* The place that this call returns to, as an offset in the program's file. */
static __attribute__((noinline)) uint64_t called_from(void)
{
	uint64_t address = (uint64_t)__builtin_return_address(0);
	const struct process_mapping *mapping;
	struct process *self;
	char err[256];

	assert_int_equal(process__read(getpid(), &self, err, sizeof(err)), 0);
	mapping = process__mapping_at(self, address);
	assert_non_null(mapping);
	address += mapping->offset - mapping->start;
	process__free(self);
	return address;
}

static void test_source(void **state)
{
	const struct source_line *lines;
	struct source *source;
	uint64_t offsets[3];
	char err[256] = "";
	unsigned int first, second;

	(void)state;
	/* clang-format off */
	offsets[0] = called_from(); first = __LINE__;
	offsets[1] = called_from(); second = __LINE__;
	/* clang-format on */
	offsets[2] = UINT64_MAX;
	source = source__ask("/proc/self/exe", "", offsets, 3, err, sizeof(err));
	if (!source)
		fail_msg("%s", err);
	assert_true(source__has_dwarf(source));
	lines = source__lines(source);
	assert_non_null(lines[0].file);
	assert_non_null(strstr(lines[0].file, "test_confine.c"));
	assert_int_equal(lines[0].line, first);
	assert_int_equal(lines[1].line, second);
	assert_null(lines[2].file);
	source__free(source);
	assert_null(source__ask("/proc/self/exe", "0123456789ab", offsets, 3, err, sizeof(err)));
	assert_non_null(strstr(err, "another build"));
	assert_null(source__ask("/nonexistent/program", "", offsets, 3, err, sizeof(err)));
	assert_non_null(strstr(err, "No such file"));
	/* code without DWARF: an answer, without lines */
	source = source__ask(CASES, "", offsets, 1, err, sizeof(err));
	assert_non_null(source);
	assert_false(source__has_dwarf(source));
	assert_null(source__lines(source)[0].file);
	source__free(source);
}

/* Damaged files, DWARF and all: an answer or a sentence, whatever becomes of the reader. */
static void test_damaged(void **state)
{
	static const struct survey_wanted wanted[] = {{"main", 0}, {"called_from", 0}};
	uint64_t offsets[] = {called_from(), 0x1000};
	uint32_t random = 4711;
	int good = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	off_t size = lseek(good, 0, SEEK_END);
	char *bytes = malloc((size_t)size);

	(void)state;
	assert_non_null(bytes);
	assert_int_equal(pread(good, bytes, (size_t)size, 0), size);
	close(good);
	for (int i = 0; i < DAMAGES; i++) {
		char err[256] = "", path[64];
		int file = memfd_create("damaged", MFD_CLOEXEC);
		struct survey *survey;
		struct source *source;

		assert_int_equal(write(file, bytes, (size_t)size), size);
		for (int j = 0; j < 200; j++) {
			/* most of the damage goes where the tables and the DWARF are: the ends of the file */
			off_t at =
			    j % 4 ? size - 1 - (off_t)(random % (uint32_t)(size * 2 / 3)) : (off_t)(random % 4096);

			random ^= random << 13;
			random ^= random >> 17;
			random ^= random << 5;
			if (at >= 64) /* the head stays, or nothing is looked at */
				assert_int_equal(pwrite(file, &random, 1, at), 1);
		}
		snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
		survey = survey__ask(file, path, SURVEY_NAMES | SURVEY_IO, wanted, 2, err, sizeof(err));
		assert_true(survey || *err);
		survey__free(survey);
		err[0] = '\0';
		source = source__ask(path, "", offsets, 2, err, sizeof(err));
		assert_true(source || *err);
		source__free(source);
		close(file);
	}
	free(bytes);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_answers),	   cmocka_unit_test(test_files),
	    cmocka_unit_test(test_broken),	   cmocka_unit_test(test_not_tried_again),
	    cmocka_unit_test(test_not_armed),	   cmocka_unit_test(test_confined),
	    cmocka_unit_test(test_asker_dies),	   cmocka_unit_test(test_survey),
	    cmocka_unit_test(test_survey_refuses), cmocka_unit_test(test_survey_spoilt),
	    cmocka_unit_test(test_tables_spoilt),  cmocka_unit_test(test_source),
	    cmocka_unit_test(test_damaged),
	};

	confine__main(argc, argv, services);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
