// SPDX-License-Identifier: GPL-2.0-or-later
/* MPI libraries are recognised by what they define, whatever their names; libraries are compiled here. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "compiled.h"
#include "probe/elf/mpi_files.h"
#include "probe/elf/reader.h"
#include "probe/elf/survey.h"

#define INIT "int MPI_Init(void){return 0;} int PMPI_Init(void){return 0;} "
#define OPEN_MPI INIT "long ompi_mpi_comm_world[64]; "
#define MPICH INIT "int MPIR_Err_init(void){return 0;} "

#ifndef DAMAGES
#define DAMAGES 3000
#endif

struct mapped {
	void *at;
	size_t size;
};

/* Maps a file of the directory as code into this process. */
static struct mapped map(const char *name)
{
	struct mapped mapped = {MAP_FAILED, 0};
	struct stat st;
	char path[128];
	int fd;

	path_of(name, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	mapped.size = (size_t)st.st_size;
	mapped.at = mmap(NULL, mapped.size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(mapped.at, MAP_FAILED);
	close(fd);
	return mapped;
}

/* Looks at a process; base is the name of the library's file, "" where there is none. */
static enum process_mpi look(pid_t pid, bool all, char *base, size_t size, uint32_t *others)
{
	struct mpi_files *files = mpi_files__new();
	const struct process_mapping *library;
	struct process *process;
	enum process_mpi mpi;
	char err[256] = "";
	int status;

	assert_non_null(files);
	assert_int_equal(process__read(pid, &process, err, sizeof(err)), 0);
	while ((status = mpi_files__look(files, process, all, err, sizeof(err))) == -EINPROGRESS)
		; /* the next files */
	assert_int_equal(status, 0);
	mpi = process__mpi(process, &library);
	snprintf(base, size, "%s", library ? strrchr(library->path, '/') + 1 : "");
	*others = process->library.others;
	process__free(process);
	mpi_files__free(files);
	return mpi;
}

static void assert_kind(const char *name, bool all, enum process_mpi expected)
{
	struct mapped mapped = map(name);
	uint32_t others;
	char base[128];

	assert_int_equal(look(getpid(), all, base, sizeof(base), &others), expected);
	assert_string_equal(base, expected == PROCESS_NO_MPI ? "" : name);
	assert_int_equal(others, 0);
	munmap(mapped.at, mapped.size);
}

static void test_by_symbols(void **state)
{
	(void)state;
	compile(OPEN_MPI, "libmpi-1c2e33d1.so.40", "-shared -fPIC");
	assert_kind("libmpi-1c2e33d1.so.40", false, PROCESS_OPEN_MPI);
	compile(OPEN_MPI, "libmpi_ibm.so.3", "-shared -fPIC");
	assert_kind("libmpi_ibm.so.3", false, PROCESS_OPEN_MPI);
	compile(MPICH, "libmpi_gnu_123.so.12", "-shared -fPIC");
	assert_kind("libmpi_gnu_123.so.12", false, PROCESS_MPICH);
	compile("int MPI_Init_thread(void){return 0;} int PMPI_Init_thread(void){return 0;}", "libMPI_threads.so",
		"-shared -fPIC");
	assert_kind("libMPI_threads.so", false, PROCESS_MPICH);
	/* the name for the linker is that of the standard ABI, whatever the file's */
	compile(MPICH, "libmpi_abi-77.so", "-shared -fPIC -Wl,-soname,libmpi_abi.so.1");
	assert_kind("libmpi_abi-77.so", false, PROCESS_STANDARD_ABI);
	compile(INIT "int MPI_Abi_get_version(void){return 0;}", "libfront_mpi.so", "-shared -fPIC");
	assert_kind("libfront_mpi.so", false, PROCESS_STANDARD_ABI);
	/* MPI 5 in an ABI of its own */
	compile(OPEN_MPI "int MPI_Abi_get_version(void){return 0;}", "libmpi.so.50", "-shared -fPIC");
	assert_kind("libmpi.so.50", false, PROCESS_OPEN_MPI);
	compile(MPICH "int MPI_Abi_get_version(void){return 0;}", "libmpich.so.20", "-shared -fPIC");
	assert_kind("libmpich.so.20", false, PROCESS_MPICH);
}

/* Without a process, as a tool that lists libraries has them. */
static void test_files(void **state)
{
	char path[128];

	(void)state;
	compile(OPEN_MPI, "libmpi_vendor.so.3", "-shared -fPIC");
	path_of("libmpi_vendor.so.3", path, sizeof(path));
	assert_int_equal(mpi_files__of(path), PROCESS_OPEN_MPI);
	compile("int PMPI_Init(void); int MPI_Init(void){return PMPI_Init();}", "libmpi.so.40", "-shared -fPIC");
	path_of("libmpi.so.40", path, sizeof(path));
	assert_int_equal(mpi_files__of(path), PROCESS_NO_MPI);
	path_of("libmpich.so.none", path, sizeof(path)); /* cannot be read */
	assert_int_equal(mpi_files__of(path), PROCESS_MPICH);
}

static void test_any_name(void **state)
{
	(void)state;
	compile(OPEN_MPI, "libvendor.so", "-shared -fPIC");
	assert_kind("libvendor.so", false, PROCESS_NO_MPI); /* it is looked at where more is known of the process */
	assert_kind("libvendor.so", true, PROCESS_OPEN_MPI);
}

static void test_no_library(void **state)
{
	(void)state;
	/* a profiling library defines MPI_Init and calls PMPI_Init, which another defines */
	compile("int PMPI_Init(void); int MPI_Init(void){return PMPI_Init();}", "libmpiprofile.so", "-shared -fPIC");
	assert_kind("libmpiprofile.so", true, PROCESS_NO_MPI);
	compile("static int MPI_Init(void){return 0;} static int PMPI_Init(void){return MPI_Init();} "
		"int call(void){return PMPI_Init();}",
		"libmpi_hidden.so", "-shared -fPIC -O0");
	assert_kind("libmpi_hidden.so", true, PROCESS_NO_MPI);
	/* one that defines both, and looks the others' up */
	compile("void *dlsym(void *, const char *); int MPI_Init(void){return dlsym((void *)-1L, \"MPI_Init\") != 0;} "
		"int PMPI_Init(void){return MPI_Init();} int MPI_File_open(void){return 1;}",
		"libmpi_io_profile.so", "-shared -fPIC");
	assert_kind("libmpi_io_profile.so", true, PROCESS_NO_MPI);
	compile("void *dlsym(void *, const char *); int MPI_Init(void){return dlsym((void *)-1L, \"MPI_Init\") != 0;} "
		"int PMPI_Init(void){return MPI_Init();} int MPI_Send(void){return 1;}",
		"libmpi_shim.so", "-shared -fPIC");
	assert_kind("libmpi_shim.so", true, PROCESS_MPICH);
	compile("int nothing;", "libmpi_empty.so", "-shared -fPIC");
	assert_kind("libmpi_empty.so", true, PROCESS_NO_MPI);
}

/* What cannot be read counts by its name: the attachment that fails names the reason. */
static void test_unreadable(void **state)
{
	char path[128], text[8192];
	FILE *file;

	(void)state;
	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 2; i++) {
		path_of(i ? "libmpi_noise.so" : "libmpi.so.40.30", path, sizeof(path));
		file = fopen(path, "w");
		assert_non_null(file);
		assert_int_equal(fwrite(text, 1, sizeof(text), file), sizeof(text));
		assert_int_equal(fclose(file), 0);
	}
	assert_kind("libmpi.so.40.30", false, PROCESS_OPEN_MPI);
	assert_kind("libmpi_noise.so", true, PROCESS_NO_MPI);
}

/* Starts a program of the directory, which has begun when it writes a byte. */
static pid_t begin(const char *name, const char *argument)
{
	char path[128], byte;
	int ends[2];
	pid_t pid;

	path_of(name, path, sizeof(path));
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		dup2(ends[1], 1);
		execl(path, name, argument, NULL);
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	return pid;
}

#define PROGRAM                                                                                                        \
	"#include <dlfcn.h>\n#include <unistd.h>\nint MPI_Init(void);\n"                                               \
	"int main(int argc, char **argv){ void *back = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : 0; "        \
	"return !back || MPI_Init() || write(1, \"x\", 1) != 1 || pause(); }"

static void assert_front(const char *front_text, const char *soname, const char *back_text, enum process_mpi expected)
{
	char options[128], back[128], base[128];
	uint32_t others;
	pid_t pid;

	snprintf(options, sizeof(options), "-shared -fPIC -Wl,-soname,%s", soname);
	compile(front_text, soname, options);
	compile(back_text, "libmpi_back.so.12", "-shared -fPIC");
	snprintf(options, sizeof(options), "./%s -Wl,-rpath,%s -ldl", soname, directory);
	compile(PROGRAM, "program", options);
	path_of("libmpi_back.so.12", back, sizeof(back));
	pid = begin("program", back);
	assert_int_equal(look(pid, true, base, sizeof(base), &others), expected);
	assert_string_equal(base, soname);
	assert_int_equal(others, 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Of a library in front of another one, the one that the program is linked to counts, whatever lies behind it. */
static void test_in_front(void **state)
{
	(void)state;
	assert_front(OPEN_MPI, "libmpi_shim.so.40", MPICH, PROCESS_OPEN_MPI);
	assert_front(MPICH, "libmpi_abi.so.1", OPEN_MPI, PROCESS_STANDARD_ABI);
}

/* Nothing is linked to either: the standard ABI lies in front, else MPICH counts. */
static void test_both_loaded(void **state)
{
	struct mapped first, second;
	uint32_t others;
	char base[128];

	(void)state;
	compile(OPEN_MPI, "libmpi_a.so", "-shared -fPIC");
	compile(MPICH, "libmpi_b.so", "-shared -fPIC");
	first = map("libmpi_a.so");
	second = map("libmpi_b.so");
	assert_int_equal(look(getpid(), false, base, sizeof(base), &others), PROCESS_MPICH);
	assert_string_equal(base, "libmpi_b.so");
	assert_int_equal(others, 1);
	munmap(first.at, first.size);
	munmap(second.at, second.size);
}

/* Returns whether the code of this process's MPI, a file of this name, was moved. */
static bool is_moved(bool all, const char *name)
{
	struct mpi_files *files = mpi_files__new();
	struct process *process;
	const char *path;
	char err[256];
	bool moved;
	int status;

	assert_non_null(files);
	assert_int_equal(process__read(getpid(), &process, err, sizeof(err)), 0);
	while ((status = mpi_files__look(files, process, all, err, sizeof(err))) == -EINPROGRESS)
		;
	assert_int_equal(status, 0);
	path = process__moved_mpi(process);
	moved = path && strstr(path, name);
	assert_true(!path == !moved);
	if (moved)
		assert_int_equal(process__mpi(process, NULL), PROCESS_NO_MPI);
	process__free(process);
	mpi_files__free(files);
	return moved;
}

/* Replaces pages of a mapped file by memory of this process's own, as code in huge pages is. */
static void move_code(struct mapped mapped, size_t first, size_t pages)
{
	size_t page = (size_t)getpagesize();
	void *at = (char *)mapped.at + first * page;

	assert_true((first + pages) * page < mapped.size);
	assert_ptr_equal(mmap(at, pages * page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 at);
}

static void test_moved_code(void **state)
{
	size_t page = (size_t)getpagesize();
	struct mapped mapped;

	(void)state;
	compile(OPEN_MPI, "libmpi_moved.so", "-shared -fPIC");
	/* the middle of the code */
	mapped = map("libmpi_moved.so");
	assert_false(is_moved(false, "libmpi_moved.so"));
	move_code(mapped, 1, 1);
	assert_true(is_moved(false, "libmpi_moved.so"));
	munmap(mapped.at, mapped.size);
	/* all of the code: the parts around it are not executable */
	mapped = map("libmpi_moved.so");
	assert_int_equal(mprotect(mapped.at, mapped.size, PROT_READ), 0);
	move_code(mapped, 1, 2);
	assert_true(is_moved(false, "libmpi_moved.so"));
	munmap(mapped.at, mapped.size);
	/* the code is the first part of the file */
	mapped = map("libmpi_moved.so");
	move_code(mapped, 0, 2);
	assert_true(is_moved(false, "libmpi_moved.so"));
	munmap(mapped.at, mapped.size);
	/* code that another program made, which lies beside the file by chance */
	mapped = map("libmpi_moved.so");
	move_code(mapped, 0, 2);
	munmap((char *)mapped.at + 2 * page, page);
	assert_false(is_moved(false, "libmpi_moved.so"));
	munmap(mapped.at, mapped.size);
	/* no name suggests MPI */
	compile(OPEN_MPI, "libvendor_moved.so", "-shared -fPIC");
	mapped = map("libvendor_moved.so");
	assert_int_equal(mprotect(mapped.at, mapped.size, PROT_READ), 0);
	move_code(mapped, 1, 2);
	assert_false(is_moved(false, "libvendor_moved.so"));
	assert_true(is_moved(true, "libvendor_moved.so"));
	munmap(mapped.at, mapped.size);
	/* a file that is no MPI library */
	compile("int nothing;", "libmpi_nothing.so", "-shared -fPIC");
	mapped = map("libmpi_nothing.so");
	move_code(mapped, 1, 1);
	assert_false(is_moved(true, "libmpi_nothing.so"));
	munmap(mapped.at, mapped.size);
}

/* Real libraries under names that packagers and vendors give them. */
static void test_copies(void **state)
{
	static const struct {
		const char *from, *name;
		enum process_mpi mpi;
	} copies[] = {
	    {"/usr/lib/x86_64-linux-gnu/libmpi.so.40", "libmpi-ab12cd34.so.40.30.4", PROCESS_OPEN_MPI},
	    {"/usr/lib/x86_64-linux-gnu/libmpich.so.12", "libmpi_cray.so.12", PROCESS_MPICH},
	    {"/usr/lib/x86_64-linux-gnu/libmpich.so.12", "libmpi_abi.so.0", PROCESS_MPICH},
	    {"/usr/lib/x86_64-linux-gnu/libmpi_mpifh.so.40", "libmpi_fortran.so", PROCESS_NO_MPI},
	    {"/usr/lib/x86_64-linux-gnu/libscalapack-openmpi.so.2.2", "libmpi_scalapack.so", PROCESS_NO_MPI},
	};
	size_t found = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(copies) / sizeof(*copies); i++) {
		char command[512];

		if (access(copies[i].from, R_OK))
			continue;
		snprintf(command, sizeof(command), "cp -L %s %s/%s", copies[i].from, directory, copies[i].name);
		assert_int_equal(system(command), 0);
		assert_kind(copies[i].name, true, copies[i].mpi);
		found++;
	}
	if (!found)
		skip();
}

/* What is known is recalled without a look. */
static void test_known(void **state)
{
	struct mpi_files *files = mpi_files__new();
	struct mapped mapped;
	struct process *process;
	char err[256];

	(void)state;
	compile(OPEN_MPI, "libmpi_known.so", "-shared -fPIC");
	mapped = map("libmpi_known.so");
	assert_int_equal(process__read(getpid(), &process, err, sizeof(err)), 0);
	mpi_files__recall(files, process);
	assert_int_equal(process__mpi(process, NULL), PROCESS_NO_MPI);
	assert_int_equal(mpi_files__look(files, process, false, err, sizeof(err)), 0);
	assert_int_equal(process__mpi(process, NULL), PROCESS_OPEN_MPI);
	process->library = (struct process_library){0};
	mpi_files__recall(files, process);
	assert_int_equal(process__mpi(process, NULL), PROCESS_OPEN_MPI);
	process__free(process);
	munmap(mapped.at, mapped.size);
	mpi_files__free(files);
}

/* Reads a file of the directory. The caller frees it. */
static char *bytes_of(const char *name, size_t *size)
{
	char path[128], *bytes;
	FILE *file;

	path_of(name, path, sizeof(path));
	file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	*size = (size_t)ftell(file);
	rewind(file);
	bytes = malloc(*size);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *size, file), *size);
	fclose(file);
	return bytes;
}

/* Whatever a file holds, the reader's side reads nothing beside it: the sanitizers watch. */
static void test_damaged(void **state)
{
	uint32_t random = 12345;
	size_t size, mpi = 0;
	char *bytes, *damaged;

	(void)state;
	compile(OPEN_MPI, "libmpi_damaged.so",
		"-shared -fPIC -Wl,-soname,libmpi_damaged.so -lm -Wl,--no-as-needed -ldl");
	bytes = bytes_of("libmpi_damaged.so", &size);
	for (int i = 0; i < DAMAGES; i++) {
		struct flat_reader about = {0}, reader;
		struct flat response = {0};
		struct confine_file file;
		char err[256];
		/* each third is cut short, too */
		size_t left = i % 3 ? size : 1 + random % size;

		damaged = malloc(left);
		assert_non_null(damaged);
		memcpy(damaged, bytes, left);
		for (int j = 0; j < 1 + i % 16; j++) {
			random ^= random << 13;
			random ^= random >> 17;
			random ^= random << 5;
			/* the head, the tables at the end, and anywhere */
			damaged[j % 3 == 0   ? random % 1024 % left
				: j % 3 == 1 ? left - 1 - random % 2048 % left
					     : random % left] = (char)(random >> 24);
		}
		file = (struct confine_file){damaged, left};
		if (!mpi_files__respond(&about, &file, 1, &response, err, sizeof(err))) {
			reader = (struct flat_reader){.at = response.data, .end = response.data + response.size};
			mpi += flat__get_upto(&reader, PROCESS_STANDARD_ABI) != PROCESS_NO_MPI;
			flat__get_text(&reader, 256);
			for (uint64_t n = flat__get_upto(&reader, 64); n; n--)
				flat__get_text(&reader, 256);
			assert_true(flat__done(&reader));
		}
		free(response.data);
		free(damaged);
	}
	free(bytes);
	assert_true(mpi > DAMAGES / 100); /* not all of it breaks the file */
}

/* Functions with counts of 64 bits are found with their functions, and distinguished from them. */
static void test_large_counts(void **state)
{
	static const struct survey_wanted wanted[] = {{"MPI_Recv", 0}, {"MPI_Send", 0}};
	const struct survey_function *functions;
	size_t count, large = 0;
	struct survey *survey;
	char path[128], err[256];
	int fd;

	(void)state;
	compile("int MPI_Send(void){return 1;} int PMPI_Send(void){return 2;} int MPI_Send_c(void){return 3;} "
		"int PMPI_Send_c(void){return 4;} int MPI_Send_cc(void){return 5;} int MPI_c(void){return 6;} "
		"int MPI_Sen_c(void){return 7;} int Send_c(void){return 8;} int MPI_Recv_c(void){return 9;}",
		"libmpi_large.so", "-shared -fPIC");
	path_of("libmpi_large.so", path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	survey = survey__query(fd, getuid(), path, 0, wanted, 2, err, sizeof(err));
	assert_non_null(survey);
	functions = survey__functions(survey, &count);
	assert_int_equal(count, 5);
	for (size_t i = 0; i < count; i++)
		large += functions[i].large ? functions[i].wanted ? 1 : 10 : 100;
	assert_int_equal(large, 212); /* MPI_Send, PMPI_Send; MPI_Recv_c; MPI_Send_c, PMPI_Send_c */
	survey__free(survey);
	close(fd);
}

static void test_names(void **state)
{
	(void)state;
	assert_true(mpi_files__suggests("/opt/cray/lib/libmpi_gnu_91.so.12"));
	assert_true(mpi_files__suggests("/x/libMPI.so (deleted)"));
	assert_true(mpi_files__suggests("/x/mpi4py.libs/libmpi-1c2e33d1.so.12.3.0"));
	assert_false(mpi_files__suggests("/usr/bin/mpirun"));
	assert_false(mpi_files__suggests("/opt/mpi/lib/libc.so.6"));
	assert_false(mpi_files__suggests("libmpi.so.40"));
	assert_false(mpi_files__suggests("//anon"));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_by_symbols),	cmocka_unit_test(test_files),	   cmocka_unit_test(test_any_name),
	    cmocka_unit_test(test_no_library),	cmocka_unit_test(test_unreadable), cmocka_unit_test(test_in_front),
	    cmocka_unit_test(test_both_loaded), cmocka_unit_test(test_copies),	   cmocka_unit_test(test_known),
	    cmocka_unit_test(test_moved_code),	cmocka_unit_test(test_names),	   cmocka_unit_test(test_large_counts),
	    cmocka_unit_test(test_damaged),
	};

	reader__main(argc, argv);
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
