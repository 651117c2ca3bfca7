/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of functions as their programs have them: of C++ and Rust symbols, and of gfortran's for procedures of modules,
 * as MODULE::PROCEDURE. Names of users may be built to cost the
 * demangler much time: only a confined reader calls it.
 */
#ifndef VAPRO_DEMANGLE_H
#define VAPRO_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

enum demangle_form {
	DEMANGLE_WHOLE, /* with the types of arguments, as addr2line -C has it */
	DEMANGLE_NAME,	/* without the types of arguments and result */
};

/* Writes a symbol's name, cut at size. false: the symbol is not mangled, or its name is broken. */
bool demangle(const char *symbol, enum demangle_form form, char *name, size_t size);

#endif
