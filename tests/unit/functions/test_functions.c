// SPDX-License-Identifier: GPL-2.0-or-later
/* The rows of functions.c against the prototypes of the installed mpi.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "functions/functions.h"

#define ARGUMENTS_MAX 16
#define TEXT_MAX 2048

struct prototype {
	char text[TEXT_MAX];
	char *argument[ARGUMENTS_MAX + 1]; /* from 1 */
	int count;
};

static char *header;

/* Returns whether a function is of MPI 4 or later: a library of MPI 3 has no prototype. */
static bool is_new(const char *symbol)
{
	static const char *const names[] = {"MPI_Isendrecv",
					    "MPI_Isendrecv_replace",
					    "MPI_Psend_init",
					    "MPI_Precv_init",
					    "MPI_Pready",
					    "MPI_Pready_range",
					    "MPI_Pready_list",
					    "MPI_Parrived",
					    "MPI_Session_init",
					    "MPI_Session_finalize",
					    "MPI_Comm_create_from_group",
					    "MPI_Comm_idup_with_info"};
	size_t length = strlen(symbol);

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], symbol))
			return true;
	return length > 5 && !strcmp(symbol + length - 5, "_init");
}

static int read_header(void **state)
{
	static const char *const paths[] = {"/usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h",
					    "/usr/lib/aarch64-linux-gnu/openmpi/include/mpi.h",
					    "/usr/include/openmpi-x86_64/mpi.h", "/usr/include/mpi.h"};
	FILE *file = NULL;
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths) && !file; i++)
		file = fopen(paths[i], "re");
	if (!file)
		return 0;
	header = calloc(1, 1 << 20);
	assert_non_null(header);
	size = fread(header, 1, (1 << 20) - 1, file);
	fclose(file);
	return size ? 0 : -1;
}

static int free_header(void **state)
{
	(void)state;
	free(header);
	return 0;
}

/* Finds " NAME(" and splits the text between the parentheses at the commas. */
static bool find_prototype(const char *symbol, struct prototype *prototype)
{
	size_t length = strlen(symbol), used = 0;
	const char *at = header;
	int depth = 0;

	while ((at = strstr(at, symbol)) && (at[length] != '(' || !isspace((unsigned char)at[-1])))
		at += length;
	if (!at)
		return false;
	prototype->count = 1;
	prototype->argument[1] = prototype->text;
	for (at += length + 1; *at && (depth || *at != ')') && used + 2 < TEXT_MAX; at++) {
		depth += (*at == '(') - (*at == ')');
		if (*at == ',' && !depth) {
			prototype->text[used++] = '\0';
			assert_true(prototype->count < ARGUMENTS_MAX);
			prototype->argument[++prototype->count] = prototype->text + used;
		} else if (!isspace((unsigned char)*at) || (used && prototype->text[used - 1] != ' ')) {
			prototype->text[used++] = isspace((unsigned char)*at) ? ' ' : *at;
		}
	}
	prototype->text[used] = '\0';
	for (int i = 1; i <= prototype->count; i++)
		while (*prototype->argument[i] == ' ')
			prototype->argument[i]++;
	return true;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool is_value(const char *argument, const char *type)
{
	size_t length = strlen(type);

	return begins(argument, type) && !isalnum((unsigned char)argument[length]) && argument[length] != '_' &&
	       !strchr(argument, '*') && !strchr(argument, '[');
}

static bool is_rank(const char *argument)
{
	return is_value(argument, "int") &&
	       (strstr(argument, "dest") || strstr(argument, "source") || strstr(argument, "rank"));
}

/* Checks that a role's argument is of the kind that the role means. */
static void check(const char *symbol, const struct prototype *prototype, const char *role, unsigned int at, bool right)
{
	if (at && !right)
		fail_msg("%s: argument %u is no %s: %s", symbol, at, role,
			 (int)at <= prototype->count ? prototype->argument[at] : "(none)");
}

static void check_row(const struct function_row *row, const struct prototype *prototype)
{
	const struct vapro_roles *r = &row->roles;
	const char *const *a = (const char *const *)prototype->argument;
	bool array = r->flags & VAPRO_ROLE_COUNT_ARRAY;
	const uint8_t all[] = {r->count, r->type, r->count2, r->type2,	 r->peer,
			       r->root,	 r->op,	  r->comm,   r->request, r->done};

	for (size_t i = 0; i < sizeof(all); i++)
		check(row->symbol, prototype, "argument at all", all[i], (int)all[i] <= prototype->count);
	check(
	    row->symbol, prototype, "count", r->count,
	    r->count && strstr(a[r->count], "count") &&
		(array ? begins(a[r->count], "const int") && strstr(a[r->count], "[]") : is_value(a[r->count], "int")));
	check(row->symbol, prototype, "datatype", r->type, r->type && is_value(a[r->type], "MPI_Datatype"));
	check(row->symbol, prototype, "count", r->count2,
	      r->count2 && is_value(a[r->count2], "int") && strstr(a[r->count2], "count"));
	check(row->symbol, prototype, "datatype", r->type2, r->type2 && is_value(a[r->type2], "MPI_Datatype"));
	check(row->symbol, prototype, "peer", r->peer, r->peer && is_rank(a[r->peer]));
	check(row->symbol, prototype, "root", r->root, r->root && !strcmp(a[r->root], "int root"));
	check(row->symbol, prototype, "operation", r->op, r->op && is_value(a[r->op], "MPI_Op"));
	check(row->symbol, prototype, "communicator", r->comm, r->comm && is_value(a[r->comm], "MPI_Comm"));
	if (r->requests == 255) {
		assert_true(begins(a[1], "MPI_Request *"));
	} else if (r->requests) {
		check(row->symbol, prototype, "number", r->requests, is_value(a[r->requests], "int"));
		assert_true(begins(a[r->requests + 1], "MPI_Request") && strstr(a[r->requests + 1], "[]"));
	}
	check(row->symbol, prototype, "request", r->request,
	      r->request && begins(a[r->request], "MPI_Request *") && !strstr(a[r->request], "[]"));
	assert_false(r->request && r->requests);
	assert_true(!(r->flags & VAPRO_ROLE_PERSISTENT) || r->request);
	assert_true(!(r->flags & VAPRO_ROLE_START) || r->requests);
	check(row->symbol, prototype, "place of what is done", r->done,
	      r->done && r->requests &&
		  begins(a[r->done], r->flags & VAPRO_ROLE_DONE_FLAG	? "int *flag"
				     : r->flags & VAPRO_ROLE_DONE_INDEX ? "int *index"
									: "int *outcount"));
	if (r->flags & VAPRO_ROLE_DONE_SOME)
		assert_true(begins(a[r->done + 1], "int ") && strstr(a[r->done + 1], "indices"));
	assert_int_equal(!r->done, !(r->flags & (VAPRO_ROLE_DONE_FLAG | VAPRO_ROLE_DONE_INDEX | VAPRO_ROLE_DONE_SOME)));
	/* A count has a type and vice versa; sizes come first. */
	assert_int_equal(!r->count, !r->type);
	assert_int_equal(!r->count2, !r->type2);
	assert_true(!r->count2 || !array);
}

/* Checks that a row leaves out no communicator, root, operation or rank. */
static void check_complete(const struct function_row *row, const struct prototype *prototype)
{
	const struct vapro_roles *r = &row->roles;
	bool comm = false, root = false, op = false, type = false, request = false;

	for (int i = 1; i <= prototype->count; i++) {
		const char *a = prototype->argument[i];

		if (!comm && is_value(a, "MPI_Comm")) {
			comm = true;
			assert_int_equal(r->comm, i);
		}
		root |= !strcmp(a, "int root");
		request |= begins(a, "MPI_Request *");
		op |= is_value(a, "MPI_Op");
		type |= is_value(a, "MPI_Datatype");
		if (is_rank(a) && !r->peer)
			fail_msg("%s: %s is not named as peer", row->symbol, a);
	}
	if (request && !r->request && !r->requests)
		fail_msg("%s has a request that the row does not name", row->symbol);
	assert_int_equal(root, r->root != 0);
	assert_int_equal(op, r->op != 0);
	/* One element each, and a view: no size. */
	if (type && !r->type && strcmp(row->symbol, "MPI_Fetch_and_op") != 0 &&
	    strcmp(row->symbol, "MPI_Compare_and_swap") != 0 && strcmp(row->symbol, "MPI_File_set_view") != 0)
		fail_msg("%s has a datatype that the row does not name", row->symbol);
}

static void test_prototypes(void **state)
{
	int checked = 0;

	(void)state;
	if (!header)
		skip();
	for (unsigned int i = 0; i < function_row_count; i++) {
		const struct function_row *row = &function_rows[i];
		struct prototype prototype = {0};

		if (!find_prototype(row->symbol, &prototype)) {
			if (!is_new(row->symbol))
				fail_msg("%s is not in mpi.h", row->symbol);
			continue;
		}
		check_row(row, &prototype);
		if (!row->polling)
			check_complete(row, &prototype);
		checked++;
	}
	assert_true(checked > 200);
}

/* Every function of mpi.h that takes a request, a rank, or a buffer with a count must have a row. */
static void test_complete(void **state)
{
	static const char *const left_out[] = {"MPI_T_",
					       "MPI_Type_",
					       "MPI_Grequest_",
					       "MPI_Status_",
					       "MPI_Pack_external",
					       "MPI_Unpack_external",
					       "MPI_Info_",
					       "MPI_Request_c2f",
					       "MPI_Register_",
					       "MPI_Win_shared_query"};
	char name[128];

	(void)state;
	if (!header)
		skip();
	for (const char *at = header; (at = strstr(at, " MPI_")); at++) {
		size_t length = strcspn(at + 1, "( \n,;*)");
		struct prototype prototype = {0};
		bool wanted = false, skipped = false;

		if (at[1 + length] != '(' || length >= sizeof(name))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)length, at + 1);
		for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
			skipped |= begins(name, left_out[i]);
		if (skipped || !find_prototype(name, &prototype))
			continue;
		for (int i = 1; i <= prototype.count; i++)
			wanted |= begins(prototype.argument[i], "MPI_Request *") || is_rank(prototype.argument[i]) ||
				  !strcmp(prototype.argument[i], "int count") ||
				  !strcmp(prototype.argument[i], "int root");
		if (wanted && functions__find(name) < 0)
			fail_msg("%s has no row", name);
	}
}

static void test_find(void **state)
{
	int send = functions__find("MPI_Send");

	(void)state;
	assert_true(send >= 0);
	assert_string_equal(function_rows[send].symbol, "MPI_Send");
	assert_int_equal(functions__find("PMPI_Send"), send);
	assert_int_equal(functions__find("PPMPI_Send"), -1);
	assert_int_equal(functions__find("MPI_Sen"), -1);
	assert_int_equal(functions__find("MPI_Send_"), -1);
	assert_int_equal(functions__find(""), -1);
	assert_int_equal(functions__find("P"), -1);
	for (unsigned int i = 0; i < function_row_count; i++)
		assert_int_equal(functions__find(function_rows[i].symbol), i); /* each name once */
}

static unsigned int arguments(const char *symbol)
{
	return functions__arguments(&function_rows[functions__find(symbol)]);
}

static void test_arguments(void **state)
{
	(void)state;
	assert_int_equal(arguments("MPI_Send"), 0x2e); /* 2 3 4 6 */
	assert_int_equal(arguments("MPI_Barrier"), 0x01);
	assert_int_equal(arguments("MPI_Sendrecv"), 0x0e); /* 7, 8 and 11 are on the stack */
	assert_int_equal(arguments("MPI_Reduce"), 0x3c);
	assert_int_equal(arguments("MPI_Wait"), 0x01);	  /* the request */
	assert_int_equal(arguments("MPI_Waitall"), 0x03); /* number and address of the requests */
	assert_int_equal(arguments("MPI_Wtime"), 0);
}

/*
 * The last attach mode has few functions: those in which programs commonly wait, and those that begin the
 * awaited operations, without which a wait has no size.
 */
static void test_common(void **state)
{
	static const char *const must[] = {
	    "MPI_Send",	     "MPI_Recv", "MPI_Sendrecv", "MPI_Wait",  "MPI_Waitall", "MPI_Barrier",  "MPI_Allreduce",
	    "MPI_Alltoallv", "MPI_Init", "MPI_Finalize", "MPI_Isend", "MPI_Irecv",   "MPI_Startall", "MPI_Send_init"};
	unsigned int common = 0;

	(void)state;
	for (unsigned int i = 0; i < function_row_count; i++) {
		const struct function_row *row = &function_rows[i];
		bool begins = row->roles.request || row->roles.flags & VAPRO_ROLE_START;

		common += row->common;
		assert_true(!row->common || (!row->polling && (row->blocking || begins)));
	}
	assert_in_range(common, sizeof(must) / sizeof(must[0]), FUNCTIONS_COMMON_MAX);
	for (size_t i = 0; i < sizeof(must) / sizeof(must[0]); i++)
		assert_true(function_rows[functions__find(must[i])].common);
}

static void test_classes(void **state)
{
	unsigned int files = 0;

	(void)state;
	for (unsigned int i = 0; i < function_row_count; i++) {
		const struct function_row *row = &function_rows[i];
		bool file = begins(row->symbol, "MPI_File_");

		assert_int_equal(row->class, file ? VAPRO_IO : VAPRO_COMMUNICATION);
		assert_false(row->polling && row->blocking);
		files += file;
	}
	assert_true(files >= 40);
	assert_true(function_rows[functions__find("MPI_Allreduce")].blocking);
	assert_false(function_rows[functions__find("MPI_Iallreduce")].blocking);
	assert_true(function_rows[functions__find("MPI_Test")].polling);
	assert_false(function_rows[functions__find("MPI_Wait")].polling);
}

/* Units may be left out: functions that the standard allows to wait have units apart, and file access has none. */
static void test_units(void **state)
{
	static const char *const posts[] = {"MPI_Isend", "MPI_Irecv", "MPI_Start", "MPI_Startall"};
	static const char *const others[] = {"MPI_Ibsend", "MPI_Irsend", "MPI_Issend", "MPI_Iallreduce",
					     "MPI_Send_init"};
	static const char *const may_wait[] = {"MPI_Put",
					       "MPI_Get",
					       "MPI_Accumulate",
					       "MPI_Get_accumulate",
					       "MPI_Fetch_and_op",
					       "MPI_Win_lock",
					       "MPI_Win_unlock",
					       "MPI_Win_flush",
					       "MPI_Win_flush_all",
					       "MPI_Win_flush_local",
					       "MPI_Win_flush_local_all"};
	static const char *const wait[] = {"MPI_Send",
					   "MPI_Recv",
					   "MPI_Wait",
					   "MPI_Waitall",
					   "MPI_Sendrecv",
					   "MPI_Probe",
					   "MPI_Test",
					   "MPI_Win_fence",
					   "MPI_File_iwrite",
					   "MPI_Barrier",
					   "MPI_Bcast",
					   "MPI_Rput",
					   "MPI_Compare_and_swap",
					   "MPI_Comm_dup"};
	uint32_t seen = 0;
	char text[FUNCTIONS_UNITS_TEXT];

	(void)state;
	assert_in_range(functions__other_unit(), sizeof(posts) / sizeof(posts[0]), FUNCTIONS_UNITS - 1);
	for (size_t i = 0; i < sizeof(posts) / sizeof(posts[0]); i++) {
		int unit = functions__unit((unsigned int)functions__find(posts[i]));

		assert_in_range(unit, 0, functions__other_unit() - 1);
		assert_false(seen >> unit & 1);
		seen |= 1U << unit;
		functions__name_units(1U << unit, text, sizeof(text));
		assert_string_equal(text, posts[i] + strlen("MPI_"));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(functions__unit((unsigned int)functions__find(others[i])), functions__other_unit());
	for (size_t i = 0; i < sizeof(may_wait) / sizeof(may_wait[0]); i++) {
		unsigned int row = (unsigned int)functions__find(may_wait[i]);
		int unit = functions__unit(row);

		/* their requests, if any, would be unknown without a label that says so */
		assert_true(functions__unit_waits(unit) && function_rows[row].blocking);
		assert_false(function_rows[row].roles.request || function_rows[row].roles.requests);
		assert_false(seen >> unit & 1);
		seen |= 1U << unit;
		functions__name_units(1U << unit, text, sizeof(text));
		assert_string_equal(text, may_wait[i] + strlen("MPI_"));
	}
	assert_int_equal(seen | 1U << functions__other_unit(), (1U << FUNCTIONS_UNITS) - 1);
	assert_false(functions__unit_waits(functions__other_unit()) || functions__unit_waits(-1));
	for (size_t i = 0; i < sizeof(wait) / sizeof(wait[0]); i++)
		assert_int_equal(functions__unit((unsigned int)functions__find(wait[i])), -1);
	assert_int_equal(functions__unit(function_row_count), -1);
	functions__name_units(0, text, sizeof(text));
	assert_string_equal(text, "");
	functions__name_units(UINT32_MAX, text, sizeof(text)); /* all, and each once */
	assert_string_equal(text, "Isend,Irecv,Start,Startall,others,Put,Get,Accumulate,Get_accumulate,Fetch_and_op,"
				  "Win_lock,Win_unlock,Win_flush,Win_flush_all,Win_flush_local,Win_flush_local_all");
}

/* Names of units are read back; anything else is refused. */
static void test_read_units(void **state)
{
	static const char *const wrong[] = {"",		 "Waitall", "Isend,", ",Isend", "isend",       "Isend,,Irecv",
					    "MPI_Isend", "Isen",    "Isend2", "Send",	"Isend Irecv", "Isend,Recv"};
	char text[FUNCTIONS_UNITS_TEXT];
	uint32_t units;

	(void)state;
	for (uint32_t set = 1; set < 1U << FUNCTIONS_UNITS; set++) {
		functions__name_units(set, text, sizeof(text));
		assert_true(functions__read_units(text, &units));
		assert_int_equal(units, set);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(functions__read_units(wrong[i], &units));
	assert_false(functions__read_units("Isend,Isend", &units));
}

/* A plain call's vertex needs six registers only, no requests that are completed, arrays of counts or arguments on the
 * stack. */
static void test_plain(void **state)
{
	static const char *const plain[] = {"MPI_Send",	 "MPI_Recv",	"MPI_Allreduce", "MPI_Bcast",
					    "MPI_Isend", "MPI_Barrier", "MPI_Imrecv"};
	static const char *const others[] = {"MPI_Waitall",  "MPI_Test",  "MPI_Alltoall",
					     "MPI_Sendrecv", "MPI_Start", "MPI_Reduce"};
	uint32_t send = functions__plain(&function_rows[functions__find("MPI_Send")]);
	uint32_t imrecv = functions__plain(&function_rows[functions__find("MPI_Imrecv")]);

	(void)state;
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		assert_true(functions__plain(&function_rows[functions__find(plain[i])]) & KERNEL_SITE_PLAIN);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(functions__plain(&function_rows[functions__find(others[i])]), 0);
	/* count, datatype, destination and communicator: the first argument is a buffer, the fifth a tag */
	assert_int_equal((send >> KERNEL_SITE_READS) & 0x3f, 0x2e);
	/* where a request is written to does not make another call */
	assert_int_equal((imrecv >> KERNEL_SITE_READS) & 0x3f, 0x06);
	for (unsigned int i = 0; i < function_row_count; i++)
		assert_int_equal(
		    functions__plain(&function_rows[i]) & ~(KERNEL_SITE_PLAIN | 0x3fU << KERNEL_SITE_READS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_prototypes), cmocka_unit_test(test_complete),	  cmocka_unit_test(test_find),
	    cmocka_unit_test(test_arguments),  cmocka_unit_test(test_classes),	  cmocka_unit_test(test_common),
	    cmocka_unit_test(test_units),      cmocka_unit_test(test_read_units), cmocka_unit_test(test_plain),
	};

	return cmocka_run_group_tests(tests, read_header, free_header);
}
