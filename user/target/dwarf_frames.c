// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions and lines at an address by DWARF. All of it runs confined, on bytes that may be anything. */
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "target/demangle.h"
#include "target/dwarf_frames.h"

#define DEPTH_MAX 64   /* of nested scopes; deeper ones are damage */
#define PARENTS_MAX 16 /* namespaces and classes around a function */

/* Functions with code of one unit. */
struct functions {
	Dwarf_Off unit;
	bool all;
	Dwarf_Die *dies;
	size_t count, room;
};

/* The name of a function without a mangled one. */
struct qualified {
	Dwarf_Off function;
	char name[256];
};

/* The scopes that hold an address, outermost first. */
struct nest {
	Dwarf_Die scopes[DEPTH_MAX];
	int depth;
};

/* Finds an address's unit: by .debug_aranges, which not every compiler writes, else by trying all. */
static bool unit_of(Dwarf *dwarf, Dwarf_Addr address, Dwarf_Die *unit)
{
	Dwarf_Off at = 0, next;
	size_t header;

	if (dwarf_addrdie(dwarf, address, unit))
		return true;
	for (; !dwarf_nextcu(dwarf, at, &next, &header, NULL, NULL, NULL); at = next)
		if (dwarf_offdie(dwarf, at + header, unit) && dwarf_haspc(unit, address) == 1)
			return true;
	return false;
}

static bool is_scope_of_names(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

static bool is_scope_of_code(int tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
	       tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

/*
 * Adds the functions below die that have code. all: also those inside functions and classes, which costs a walk through
 * the whole unit; most compilers put them beside.
 */
static int add_functions(Dwarf_Die *die, bool all, int depth, struct functions *functions)
{
	Dwarf_Die child;
	int status = 0;

	if (depth >= DEPTH_MAX || dwarf_child(die, &child))
		return 0;
	do {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_subprogram &&
		    (dwarf_hasattr_integrate(&child, DW_AT_low_pc) || dwarf_hasattr_integrate(&child, DW_AT_ranges))) {
			status = grow(&functions->dies, &functions->room, functions->count + 1, sizeof(child));
			if (!status)
				functions->dies[functions->count++] = child;
		}
		if (!status && (tag == DW_TAG_namespace || tag == DW_TAG_module ||
				(all && (is_scope_of_names(tag) || is_scope_of_code(tag)))))
			status = add_functions(&child, all, depth + 1, functions);
	} while (!status && !dwarf_siblingof(&child, &child));
	return status;
}

/* Returns the functions of a unit, found at first need; NULL when out of memory. */
static const struct functions *functions_of(struct dwarf_frames *cache, Dwarf_Die *unit, bool all)
{
	struct functions *functions;

	for (size_t i = 0; i < cache->count; i++)
		if (cache->units[i].unit == dwarf_dieoffset(unit) && cache->units[i].all == all)
			return &cache->units[i];
	if (grow(&cache->units, &cache->room, cache->count + 1, sizeof(*cache->units)))
		return NULL;
	functions = &cache->units[cache->count++];
	*functions = (struct functions){.unit = dwarf_dieoffset(unit), .all = all};
	return add_functions(unit, all, 0, functions) ? NULL : functions;
}

void dwarf_frames__clear(struct dwarf_frames *cache)
{
	for (size_t i = 0; i < cache->count; i++)
		free(cache->units[i].dies);
	free(cache->units);
	free(cache->qualified);
	*cache = (struct dwarf_frames){0};
}

/* Adds the scopes inside die that hold an address. */
static void descend(Dwarf_Die *die, Dwarf_Addr address, struct nest *nest)
{
	Dwarf_Die child;

	if (nest->depth >= DEPTH_MAX)
		return;
	nest->scopes[nest->depth++] = *die;
	if (dwarf_child(die, &child))
		return;
	do {
		if (!is_scope_of_code(dwarf_tag(&child)) || dwarf_haspc(&child, address) != 1)
			continue;
		descend(&child, address, nest);
		return;
	} while (!dwarf_siblingof(&child, &child));
}

/* Finds the nested scopes of a unit that hold an address. Returns whether there are any. */
static bool find_scopes(struct dwarf_frames *cache, Dwarf_Die *unit, Dwarf_Addr address, bool all, struct nest *nest)
{
	const struct functions *functions = functions_of(cache, unit, all);

	for (size_t i = 0; functions && i < functions->count; i++) {
		if (dwarf_haspc(&functions->dies[i], address) != 1)
			continue;
		descend(&functions->dies[i], address, nest);
		return true;
	}
	return false;
}

static const char *text_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(die, name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

static uint64_t number_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	return dwarf_attr(die, name, &attribute) && !dwarf_formudata(&attribute, &value) ? value : 0;
}

static bool is_fortran(int language)
{
	return language == DW_LANG_Fortran77 || language == DW_LANG_Fortran90 || language == DW_LANG_Fortran95 ||
	       language == DW_LANG_Fortran03 || language == DW_LANG_Fortran08;
}

static bool is_cplusplus(int language)
{
	return language == DW_LANG_C_plus_plus || language == DW_LANG_C_plus_plus_03 ||
	       language == DW_LANG_C_plus_plus_11 || language == DW_LANG_C_plus_plus_14;
}

/* Finds the definition or declaration that an inlined or outlined copy of a function stands for. */
static void original_of(Dwarf_Die *die, Dwarf_Die *original)
{
	static const unsigned int links[] = {DW_AT_abstract_origin, DW_AT_specification};
	Dwarf_Attribute attribute;

	*original = *die;
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (dwarf_attr(original, links[i], &attribute) && !dwarf_formref_die(&attribute, original))
			return;
}

/* Returns what a scope adds to the names inside it, or NULL. */
static const char *scope_name(Dwarf_Die *scope, const char *function)
{
	int tag = dwarf_tag(scope);
	const char *name = dwarf_diename(scope);

	if (tag == DW_TAG_subprogram || (is_scope_of_names(tag) && name))
		return name;
	if (tag == DW_TAG_namespace)
		return "(anonymous namespace)";
	return !is_scope_of_names(tag) ? NULL : !strcmp(function, "operator()") ? "{lambda}" : "{unnamed}";
}

/*
 * Writes a C++ function's name with the namespaces, classes and functions around it; internal functions have no mangled
 * name.
 */
static void put_qualified(Dwarf_Die *original, const char *plain, char *name, size_t size)
{
	const char *parents[PARENTS_MAX], *parent;
	Dwarf_Die *scopes = NULL;
	int count = dwarf_getscopes_die(original, &scopes), used = 0, parent_count = 0;

	for (int i = 1; i < count && parent_count < PARENTS_MAX; i++) {
		parent = scope_name(&scopes[i], plain);
		if (parent)
			parents[parent_count++] = parent;
	}
	while (parent_count-- > 0 && used >= 0 && (size_t)used < size)
		used += snprintf(name + used, size - (size_t)used, "%s::", parents[parent_count]);
	if ((size_t)used < size)
		snprintf(name + used, size - (size_t)used, "%s", plain);
	free(scopes);
}

/* Returns the qualified name of a function, made at first need, which costs a walk through its unit. */
static const char *qualified_of(struct dwarf_frames *cache, Dwarf_Die *die, const char *plain)
{
	struct qualified *qualified;
	Dwarf_Die original;

	original_of(die, &original);
	for (size_t i = 0; i < cache->qualified_count; i++)
		if (cache->qualified[i].function == dwarf_dieoffset(&original))
			return cache->qualified[i].name;
	if (grow(&cache->qualified, &cache->qualified_room, cache->qualified_count + 1, sizeof(*qualified)))
		return plain;
	qualified = &cache->qualified[cache->qualified_count++];
	qualified->function = dwarf_dieoffset(&original);
	put_qualified(&original, plain, qualified->name, sizeof(qualified->name));
	return qualified->name;
}

/* Names a function: as addr2line -C does where it has a mangled name, of Fortran as in the source. */
static void put_name(struct dwarf_frames *cache, Dwarf_Die *die, const char *symbol, char *name, size_t size)
{
	const char *plain = dwarf_diename(die), *linkage = text_of(die, DW_AT_linkage_name);
	Dwarf_Die unit;
	int language = dwarf_diecu(die, &unit, NULL, NULL) ? dwarf_srclang(&unit) : -1;

	if (!linkage)
		linkage = text_of(die, DW_AT_MIPS_linkage_name);
	if (!linkage)
		linkage = symbol;
	if (!is_fortran(language) && linkage && demangle(linkage, DEMANGLE_WHOLE, name, size))
		return;
	if (plain && is_cplusplus(language))
		plain = qualified_of(cache, die, plain);
	snprintf(name, size, "%s", plain ? plain : linkage ? linkage : "");
}

/* A line of a unit; no file: unknown. */
struct line {
	char file[SOURCE_FILE_MAX];
	int number;
};

/* Sets a line's file, relative to the directory of the unit's compilation as the compiler had it. */
static void set_file(Dwarf_Die *unit, const char *file, struct line *line)
{
	const char *directory = file && *file != '/' ? text_of(unit, DW_AT_comp_dir) : NULL;

	if (!file || !*file || line->number <= 0 ||
	    (size_t)snprintf(line->file, sizeof(line->file), "%s%s%s", directory ? directory : "", directory ? "/" : "",
			     file) >= sizeof(line->file))
		*line = (struct line){0};
}

static void find_line(Dwarf_Die *unit, Dwarf_Addr address, struct line *line)
{
	Dwarf_Line *found = dwarf_getsrc_die(unit, address);

	*line = (struct line){0};
	if (found && !dwarf_lineno(found, &line->number))
		set_file(unit, dwarf_linesrc(found, NULL, NULL), line);
}

/* Finds where an inlined function's code was called. */
static void find_call(Dwarf_Die *inlined, struct line *line)
{
	uint64_t number = number_of(inlined, DW_AT_call_line);
	Dwarf_Files *files;
	Dwarf_Die unit;

	*line = (struct line){.number = number <= INT32_MAX ? (int)number : 0};
	if (dwarf_diecu(inlined, &unit, NULL, NULL) && !dwarf_getsrcfiles(&unit, &files, NULL))
		set_file(&unit, dwarf_filesrc(files, number_of(inlined, DW_AT_call_file), NULL, NULL), line);
}

static void put_line(const struct line *line, struct found_frames *found)
{
	memcpy(found->frames[found->count].file, line->file, sizeof(line->file));
	found->frames[found->count].line = line->number;
}

void dwarf_frames__find(struct dwarf_frames *cache, Dwarf *dwarf, uint64_t address, const char *symbol,
			struct found_frames *found)
{
	struct nest nest = {.depth = 0};
	struct line line;
	Dwarf_Die unit;

	found->count = 0;
	if (!unit_of(dwarf, address, &unit))
		return;
	find_line(&unit, address, &line);
	if (!find_scopes(cache, &unit, address, false, &nest))
		find_scopes(cache, &unit, address, true, &nest);
	while (nest.depth-- > 0 && found->count < SOURCE_FRAMES_MAX) {
		Dwarf_Die *scope = &nest.scopes[nest.depth];
		int tag = dwarf_tag(scope);

		if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
			continue;
		put_line(&line, found);
		/* a symbol names the code as a whole, which inlined functions are a part of */
		put_name(cache, scope, tag == DW_TAG_subprogram ? symbol : NULL, found->frames[found->count].function,
			 sizeof(found->frames[0].function));
		found->count++;
		if (tag == DW_TAG_subprogram)
			return;
		find_call(scope, &line);
	}
	if (found->count || !line.number)
		return;
	/* code without a function, of an assembler: its symbol has to do */
	found->frames[0].function[0] = '\0';
	put_line(&line, found);
	found->count = 1;
}
