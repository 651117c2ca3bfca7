// SPDX-License-Identifier: GPL-2.0-or-later
/* The reader's side of rows. All of it runs confined, on bytes that may be anything. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "probe/elf/exits.h"
#include "probe/elf/row_sites.h"
#include "probe/elf/row_sites_private.h"
#include "target/demangle.h"

#define NAME_MAX_BYTES 4096

struct wanted {
	const char *symbol;
	enum kernel_row_kind kind;
	unsigned int arguments;
};

struct reading {
	struct image *image;
	struct wanted *wanted;
	size_t wanted_count;
	uint64_t offset; /* file offset + 1; 0: find functions by name */
	bool all;	 /* with an offset: every outlined function as well */
	uint64_t *entries;
	size_t entry_room, function_count, skip_count;
	bool found; /* function at the offset */
	struct flat functions, skips;
	int status;
};

/* Finds the last component of a C++ or Rust name without template arguments: mangled names hold it as it is. */
static size_t last_component(const char *name, const char **component)
{
	size_t length = strcspn(name, "<(");
	const char *begin = name + length;

	while (begin > name && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_'))
		begin--;
	*component = begin;
	return (size_t)(name + length - begin);
}

/* Compares without blanks, at which the text of an option is divided. */
static bool same_name(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strspn(a, " ");
		b += strspn(b, " ");
		if (*a != *b || !*a)
			return *a == *b;
	}
}

/* Whether a symbol is mangled and its name, with or without the types of arguments, is the wanted one. */
static bool is_name_of(const char *symbol, const char *wanted)
{
	const char *component;
	size_t length = last_component(wanted, &component);
	char name[NAME_MAX_BYTES];

	/* most symbols of a large program are passed over without demangling them */
	if (length && strncmp(component, "operator", strlen("operator")) &&
	    !memmem(symbol, strlen(symbol), component, length))
		return false;
	return (demangle(symbol, DEMANGLE_NAME, name, sizeof(name)) && same_name(name, wanted)) ||
	       (demangle(symbol, DEMANGLE_WHOLE, name, sizeof(name)) && same_name(name, wanted));
}

static bool is_copy_suffix(const char *suffix)
{
	return !*suffix ||
	       (*suffix == '.' && !strstr(suffix, ".cold") && !strstr(suffix, ".part") && !strstr(suffix, "_omp_fn"));
}

bool row_sites__matches(const char *symbol, const char *wanted)
{
	size_t length = strlen(wanted), stem = strcspn(symbol, ".");
	char copy[NAME_MAX_BYTES];

	if (!strncmp(symbol, wanted, length) && is_copy_suffix(symbol + length))
		return true;
	if (strncmp(symbol, "_Z", 2) && strncmp(symbol, "_R", 2))
		return false;
	if (!is_copy_suffix(symbol + stem) || stem >= sizeof(copy))
		return false;
	snprintf(copy, sizeof(copy), "%.*s", (int)stem, symbol);
	return is_name_of(copy, wanted);
}

bool row_sites__is_outlined(const char *symbol)
{
	/* gcc: main._omp_fn.0; clang: .omp_outlined., .omp_outlined..3, main.omp_outlined; Intel's: main..omp_par.2 */
	static const char *const marks[] = {"._omp_fn.", "omp_outlined", ".omp_par"};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (strstr(symbol, marks[i]) && !strstr(symbol, ".cold"))
			return true;
	return false;
}

/*
 * Writes a function's name for people: that of the source with the types of its arguments, which distinguish it from
 * others, and what the compiler put behind it. The symbol is kept where labels, which end at blanks, could not have it.
 */
static const char *name_for_people(const char *symbol, char *name, size_t size)
{
	size_t stem = strcspn(symbol, "."), used = 0;
	char mangled[ROW_TEXT_MAX];

	if (!stem || stem >= sizeof(mangled))
		return symbol;
	snprintf(mangled, sizeof(mangled), "%.*s", (int)stem, symbol);
	if (!demangle(mangled, DEMANGLE_WHOLE, name, size))
		return symbol;
	for (const char *from = name; *from; from++)
		if (*from != ' ' || from == name || from[-1] != ',')
			name[used++] = *from;
	name[used] = '\0';
	if (strpbrk(name, " =") || used + strlen(symbol + stem) >= size - 1)
		return symbol;
	snprintf(name + used, size - used, "%s", symbol + stem);
	return name;
}

static void skip(struct reading *reading, const char *function, uint64_t entry, const char *reason)
{
	char name[ROW_TEXT_MAX];

	flat__put_text(&reading->skips, name_for_people(function, name, sizeof(name)));
	flat__put(&reading->skips, entry);
	flat__put_text(&reading->skips, reason);
	reading->skip_count++;
}

static bool known(const struct reading *reading, uint64_t entry)
{
	for (size_t i = 0; i < reading->function_count; i++)
		if (reading->entries[i] == entry)
			return true; /* two names or versions of one function */
	return false;
}

static bool is_exit(const struct exits *exits, uint64_t vaddr)
{
	for (size_t i = 0; i < exits->count; i++)
		if (exits->sites[i].vaddr == vaddr)
			return true;
	return false;
}

/* An entry's probe cannot share an instruction with an exit's: then it goes to the entry itself. */
static void keep_apart(struct image *image, const struct image_symbol *symbol, const struct exits *exits,
		       struct site *site)
{
	size_t left;
	const uint8_t *code;

	if (!is_exit(exits, site->vaddr))
		return;
	site->class = SITE_REFUSED;
	site->reason = "it is left where it is entered";
	code = image__bytes(image, symbol->vaddr, &left);
	if (code && site->vaddr != symbol->vaddr) {
		*site = (struct site){.vaddr = symbol->vaddr, .offset = symbol->offset, .class = SITE_STEPPED};
	}
}

/* Words why a function's exits are not known: "not all decodable: 62 f1 7c 48 10 07 at +0x1c". */
static const char *reason_of(const struct exits *exits, const struct image_symbol *symbol, char *text, size_t size)
{
	size_t used;

	if (!exits->undecoded_count)
		return exits->reason;
	used = (size_t)snprintf(text, size, "%s:", exits->reason);
	for (size_t i = 0; i < exits->undecoded_count && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, " %02x", exits->undecoded_bytes[i]);
	if (used < size)
		snprintf(text + used, size - used, " at %s%#llx", exits->undecoded < symbol->vaddr ? "-" : "+",
			 (unsigned long long)(exits->undecoded < symbol->vaddr ? symbol->vaddr - exits->undecoded
									       : exits->undecoded - symbol->vaddr));
	return text;
}

static int add_function(struct reading *reading, const struct image_symbol *symbol, size_t index)
{
	const struct wanted *wanted = &reading->wanted[index];
	bool call = wanted->kind == KERNEL_ROW_CALL || wanted->kind == KERNEL_ROW_FORK;
	struct exits *exits = malloc(sizeof(*exits));
	struct site site;
	int status = 0;
	char text[128], name[ROW_TEXT_MAX];

	if (!exits)
		return -ENOMEM;
	site__choose(reading->image, symbol, wanted->arguments, &site);
	exits__find(reading->image, symbol, call, exits);
	if (!exits->reason)
		keep_apart(reading->image, symbol, exits, &site);
	if (site.class == SITE_REFUSED || exits->reason) {
		skip(reading, symbol->name, symbol->offset,
		     exits->reason ? reason_of(exits, symbol, text, sizeof(text)) : site.reason);
		goto out;
	}
	if (exits->unseen)
		skip(reading, symbol->name, symbol->offset, exits->unseen);
	status = grow(&reading->entries, &reading->entry_room, reading->function_count + 1, sizeof(*reading->entries));
	if (status)
		goto out;
	reading->entries[reading->function_count++] = symbol->offset;
	flat__put(&reading->functions, index);
	flat__put_text(&reading->functions, name_for_people(symbol->name, name, sizeof(name)));
	flat__put(&reading->functions, symbol->offset);
	flat__put(&reading->functions, symbol->size);
	flat__put(&reading->functions, site.offset - symbol->offset);
	flat__put(&reading->functions, site.class);
	flat__put(&reading->functions, exits->count);
	for (size_t i = 0; i < exits->count; i++) {
		flat__put(&reading->functions, exits->sites[i].offset);
		flat__put(&reading->functions, exits->sites[i].class);
	}
out:
	free(exits);
	return status;
}

static int visit(const struct image_symbol *symbol, void *ctx)
{
	struct reading *reading = ctx;

	for (size_t i = 0; i < reading->wanted_count && !reading->status; i++)
		if (row_sites__matches(symbol->name, reading->wanted[i].symbol) && !known(reading, symbol->offset))
			reading->status = add_function(reading, symbol, i);
	return reading->status;
}

static int visit_at(const struct image_symbol *symbol, void *ctx)
{
	struct reading *reading = ctx;
	bool it = reading->offset - 1 == symbol->offset;

	if (!it && !(reading->all && row_sites__is_outlined(symbol->name)))
		return 0;
	if (!known(reading, symbol->offset))
		reading->status = add_function(reading, symbol, 0);
	reading->found |= it;
	return reading->status || (it && !reading->all);
}

static void read_at(struct reading *reading)
{
	struct image_symbol unnamed = {.name = "", .offset = reading->offset - 1};

	image__functions(reading->image, true, visit_at, reading);
	/* stripped: its extent comes from its frame description */
	if (!reading->status && !reading->found && !image__vaddr_of(reading->image, unnamed.offset, &unnamed.vaddr))
		reading->status = add_function(reading, &unnamed, 0);
}

static int read_wanted(struct flat_reader *about, struct reading *reading)
{
	reading->offset = flat__get(about);
	reading->all = flat__get_upto(about, 1);
	reading->wanted_count = (size_t)flat__get_upto(about, ROW_WANTED_MAX);
	reading->wanted = calloc(reading->wanted_count + 1, sizeof(*reading->wanted));
	if (!reading->wanted)
		return -ENOMEM;
	for (size_t i = 0; i < reading->wanted_count; i++) {
		reading->wanted[i].symbol = flat__get_text(about, ROW_TEXT_MAX);
		reading->wanted[i].kind = (enum kernel_row_kind)flat__get_upto(about, KERNEL_ROW_OUTLINED);
		reading->wanted[i].arguments = (unsigned int)flat__get(about);
	}
	return flat__done(about) && reading->wanted_count ? 0 : -EINVAL;
}

int row_sites__respond(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
		       struct flat *response, char *err, size_t err_size)
{
	struct reading reading = {0};
	int status = read_wanted(about, &reading);

	if (status || file_count != 1) {
		snprintf(err, err_size, "the query makes no sense");
		free(reading.wanted);
		return status ? status : -EINVAL;
	}
	reading.image = image__from_bytes(files[0].data, files[0].size, true, err, err_size);
	status = reading.image ? 0 : -EINVAL;
	if (status)
		goto cleanup;
	if (reading.offset)
		read_at(&reading);
	else
		image__functions(reading.image, true, visit, &reading);
	status = reading.status;
	if (status)
		goto cleanup;
	flat__put_text(response, image__build_id(reading.image));
	flat__put(response, reading.function_count);
	flat__put_flat(response, &reading.functions);
	flat__put(response, reading.skip_count);
	flat__put_flat(response, &reading.skips);
cleanup:
	image__free(reading.image);
	free(reading.wanted);
	free(reading.entries);
	free(reading.functions.data);
	free(reading.skips.data);
	return status;
}
