// SPDX-License-Identifier: GPL-2.0-or-later
/* The reader's side of a request for names. All of it runs confined, on bytes that may be anything. */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/grow.h"
#include "target/demangle.h"
#include "target/image_private.h"
#include "target/source.h"
#include "target/source_private.h"

/* The functions of a place, while they are found. */
struct found_frames {
	size_t count;
	struct {
		char function[SOURCE_FUNCTION_MAX]; /* "" unknown */
		char file[SOURCE_FILE_MAX];	    /* "" unknown, as is then the line */
		int line;
	} frames[SOURCE_FRAMES_MAX];
};

/* What was found of units and functions that were needed; zeroed at first. */
struct dwarf_frames {
	struct functions *units;
	size_t count, room;
	struct qualified *qualified;
	size_t qualified_count, qualified_room;
};

/* Functions and lines at an address by DWARF. All of it runs confined, on bytes that may be anything. */

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

static void clear_frames(struct dwarf_frames *cache)
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

/* Finds functions and lines at a linked address. symbol: that of the address, or NULL. Runs confined. */
static void find_frames(struct dwarf_frames *cache, Dwarf *dwarf, uint64_t address, const char *symbol,
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

/* Opens DWARF with units, or NULL. */
static Dwarf *dwarf_of(Elf *elf)
{
	Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	Dwarf_Off next;
	size_t header;

	if (!dwarf || !dwarf_nextcu(dwarf, 0, &next, &header, NULL, NULL, NULL))
		return dwarf;
	dwarf_end(dwarf);
	return NULL;
}

/* Whether a separate debug file is this image's: by build-id, else by the link's checksum. */
static bool belongs(Elf *debug, const struct confine_file *file, const struct image *image)
{
	const void *own, *other;
	ssize_t size = dwelf_elf_gnu_build_id(image->elf, &own);
	GElf_Word crc;

	if (size > 0)
		return dwelf_elf_gnu_build_id(debug, &other) == size && !memcmp(own, other, (size_t)size);
	return dwelf_elf_gnu_debuglink(image->elf, &crc) &&
	       crc == (GElf_Word)crc32_z(0, (const Bytef *)file->data, file->size);
}

/* Adds the symbols of a debug file, which a stripped image lacks. 0 or -ENOMEM. */
static int add_symbols(struct image *image, Elf *debug)
{
	Elf *own = image->elf;
	int status;

	image->elf = debug;
	status = image__read_symbols(image);
	image->elf = own;
	return status;
}

static bool has_symbols(const struct image *image)
{
	for (size_t i = 0; i < image->entry_count; i++)
		if (!image->entries[i].symbol.dynamic)
			return true;
	return false;
}

static void put_frames(const struct found_frames *found, uint64_t offset, struct flat *response)
{
	flat__put(response, found->count);
	for (size_t i = 0; i < found->count; i++) {
		bool line = *found->frames[i].file;

		flat__put_text(response, found->frames[i].function);
		flat__put(response, line || !*found->frames[i].function ? 0 : offset);
		flat__put_text(response, found->frames[i].file);
		flat__put(response, line ? (uint64_t)found->frames[i].line : 0);
	}
}

/* Puts the functions at a place: by DWARF, else by the symbol before it. */
static void put_place(struct image *image, Dwarf *dwarf, struct dwarf_frames *cache, uint64_t offset,
		      struct found_frames *found, struct flat *response)
{
	uint64_t address, distance = 0;
	const char *symbol;
	char *function;

	found->count = 0;
	/* the call is before the address it returns to */
	if (image__vaddr_of(image, offset ? offset - 1 : 0, &address)) {
		flat__put(response, 0);
		return;
	}
	symbol = image__symbolise(image, address, &distance);
	if (dwarf)
		find_frames(cache, dwarf, address, symbol, found);
	if (!found->count && symbol) {
		found->count = 1;
		found->frames[0].function[0] = '\0';
		found->frames[0].file[0] = '\0';
	}
	/* DWARF of an assembler has lines without functions */
	function = found->count ? found->frames[found->count - 1].function : NULL;
	if (function && !*function && symbol && !demangle(symbol, DEMANGLE_WHOLE, function, SOURCE_FUNCTION_MAX))
		snprintf(function, SOURCE_FUNCTION_MAX, "%s", symbol);
	put_frames(found, distance + 1, response);
}

/* Answers for the first places, as many as a response of `most` bytes has room for; their number comes first. */
static void put_places(struct image *image, Dwarf *dwarf, struct flat_reader *about, size_t count, uint64_t most,
		       struct found_frames *found, struct flat *response)
{
	struct dwarf_frames cache = {0};
	struct flat places = {0};
	size_t done;

	for (done = 0; done < count; done++) {
		size_t before = places.size;

		put_place(image, dwarf, &cache, flat__get(about), found, &places);
		if (places.size <= most)
			continue;
		places.size = before;
		if (done) /* the caller requests the others again */
			break;
		flat__put(&places, 0); /* a place with more than a response can hold */
	}
	flat__put(response, done);
	flat__put_flat(response, &places);
	free(places.data);
	clear_frames(&cache);
}

int source__respond(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
		    struct flat *response, char *err, size_t err_size)
{
	const char *wanted = flat__get_text(about, IMAGE_BUILD_ID_MAX), *link;
	uint64_t most = flat__get(about);
	size_t count = flat__get_count(about, sizeof(uint64_t));
	struct found_frames *found = malloc(sizeof(*found));
	struct image *image = NULL;
	Elf *debug = NULL;
	Dwarf *dwarf = NULL;
	GElf_Word crc;
	int status = -EINVAL;

	if (about->bad || !file_count || count > SOURCE_PLACES_MAX || !found) {
		snprintf(err, err_size, "the question makes no sense");
		goto cleanup;
	}
	image = image__from_bytes(files[0].data, files[0].size, true, err, err_size);
	if (!image)
		goto cleanup;
	if (strncmp(image->build_id, wanted, strlen(wanted))) {
		snprintf(err, err_size, "another build (%.12s, not %.12s) is there now", image->build_id, wanted);
		goto cleanup;
	}
	if (file_count > 1) {
		debug = elf_memory(files[1].data, files[1].size);
		if (!debug || !belongs(debug, &files[1], image)) {
			snprintf(err, err_size, "the debug file is another image's");
			goto cleanup;
		}
		status = add_symbols(image, debug);
		if (status)
			goto cleanup;
		dwarf = dwarf_of(debug);
	} else {
		dwarf = dwarf_of(image->elf);
	}
	flat__put_text(response, image->build_id);
	link = dwelf_elf_gnu_debuglink(image->elf, &crc);
	flat__put_text(response, link && strnlen(link, SOURCE_LINK_MAX + 1) <= SOURCE_LINK_MAX ? link : "");
	flat__put(response, dwarf != NULL);
	flat__put(response, has_symbols(image));
	put_places(image, dwarf, about, count, most, found, response);
	status = 0;
cleanup:
	if (dwarf)
		dwarf_end(dwarf);
	if (debug)
		elf_end(debug);
	image__free(image);
	free(found);
	return status;
}
