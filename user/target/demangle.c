// SPDX-License-Identifier: GPL-2.0-or-later
/* The demangler is libiberty's, that of binutils: it bounds its recursion and knows both of Rust's manglings. */
#include "target/demangle.h"

#include <libiberty/demangle.h>
#include <string.h>

#define SYMBOL_MAX 8192 /* bytes; longer ones stay as they are */
#define FORTRAN_MARK "_MOD_"

struct sink {
	char *text;
	size_t used, size;
};

static void append(const char *piece, size_t length, void *ctx)
{
	struct sink *sink = ctx;
	size_t room = sink->size - 1 - sink->used;

	if (length > room)
		length = room;
	memcpy(sink->text + sink->used, piece, length);
	sink->used += length;
	sink->text[sink->used] = '\0';
}

/* A procedure of a module, as gfortran names it: __MODULE_MOD_PROCEDURE. */
static bool demangle_fortran(const char *symbol, struct sink *sink)
{
	const char *mark = symbol[0] == '_' && symbol[1] == '_' ? strstr(symbol + 2, FORTRAN_MARK) : NULL;

	if (!mark || mark == symbol + 2 || !mark[strlen(FORTRAN_MARK)])
		return false;
	append(symbol + 2, (size_t)(mark - (symbol + 2)), sink);
	append("::", 2, sink);
	mark += strlen(FORTRAN_MARK);
	append(mark, strlen(mark), sink);
	return true;
}

bool demangle(const char *symbol, enum demangle_form form, char *name, size_t size)
{
	int options = form == DEMANGLE_WHOLE ? DMGL_PARAMS | DMGL_ANSI : DMGL_NO_OPTS;
	struct sink sink = {.text = name, .size = size};

	if (!size || strnlen(symbol, SYMBOL_MAX) == SYMBOL_MAX)
		return false;
	if (demangle_fortran(symbol, &sink))
		return true;
	if (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R'))
		return false;
	name[0] = '\0';
	if (rust_demangle_callback(symbol, options, append, &sink))
		return true;
	sink.used = 0;
	return cplus_demangle_v3_callback(symbol, options, append, &sink) && sink.used;
}
