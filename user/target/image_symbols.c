// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of an image: both symbol tables in one, sorted by address. Names, sizes and addresses are a
 * user's text and are not trusted beyond the segments of the file.
 */
#include "target/image_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define SYMBOL_NAME_MAX 4096 /* longer names are skipped: comparing them costs too much time */
#define SYMBOLISE_BACK 64    /* symbols looked at before giving up on nested or overlapping ones */

/* .symtab spells versions out as name@VERSION or name@@VERSION; .dynsym does not. */
static const char *bare_name(struct image *image, const char *name)
{
	const char *at = strchr(name, '@');
	char **names, *copy;

	if (!at || at == name)
		return name;
	if (!(image->name_count & (image->name_count - 1))) {
		names = realloc(image->names, (image->name_count ? 2 * image->name_count : 1) * sizeof(*names));
		if (!names)
			return NULL;
		image->names = names;
	}
	copy = strndup(name, (size_t)(at - name));
	if (copy)
		image->names[image->name_count++] = copy;
	return copy;
}

/* An object lies in the file, or beyond its bytes in .bss: only the linker says where. */
static int add_object(struct image *image, const GElf_Sym *sym, const char *name, bool dynamic)
{
	if (sym->st_shndx == SHN_UNDEF || !name || !*name || strnlen(name, SYMBOL_NAME_MAX) == SYMBOL_NAME_MAX)
		return 0;
	if (grow(&image->objects, &image->object_room, image->object_count + 1, sizeof(*image->objects)))
		return -ENOMEM;
	image->objects[image->object_count++] =
	    (struct image_symbol){.name = name, .vaddr = sym->st_value, .size = sym->st_size, .dynamic = dynamic};
	return 0;
}

static int add_symbol(struct image *image, const GElf_Sym *sym, const char *name, bool dynamic)
{
	unsigned int type = GELF_ST_TYPE(sym->st_info);
	const struct load *load;
	struct entry *entry;

	/* .symtab's objects belong to a library that is linked in */
	if (type == STT_OBJECT && (dynamic || (image->is_executable && GELF_ST_BIND(sym->st_info) == STB_GLOBAL)))
		return add_object(image, sym, name, dynamic);
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return 0;
	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS || sym->st_shndx == SHN_COMMON)
		return 0;
	load = image__load(image, sym->st_value);
	if (!load || !load->executable || !name || !*name || strnlen(name, SYMBOL_NAME_MAX) == SYMBOL_NAME_MAX)
		return 0;
	if (image->entry_count == image->entry_room) {
		size_t room = image->entry_room ? 2 * image->entry_room : 1024;
		struct entry *entries = realloc(image->entries, room * sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		image->entries = entries;
		image->entry_room = room;
	}
	name = bare_name(image, name);
	if (!name)
		return -ENOMEM;
	entry = &image->entries[image->entry_count++];
	*entry = (struct entry){
	    .symbol = {.name = name,
		       .vaddr = sym->st_value,
		       .offset = load->offset + (sym->st_value - load->vaddr),
		       .size = sym->st_size,
		       .ifunc = type == STT_GNU_IFUNC,
		       .dynamic = dynamic},
	    .function = type != STT_NOTYPE,
	};
	return 0;
}

/* Finds a type's first section, its entries and their strings; false where the file has none. */
static bool find_table(const struct image *image, uint32_t type, Elf_Data **data, size_t *strings)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(image->elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type != type)
			continue;
		/* No linker compresses a symbol table: this one may be a bomb. */
		if (header.sh_flags & SHF_COMPRESSED)
			return false;
		*data = elf_getdata(section, NULL);
		*strings = header.sh_link;
		return *data != NULL;
	}
	return false;
}

static int compare_entries(const void *a, const void *b)
{
	const struct image_symbol *x = &((const struct entry *)a)->symbol, *y = &((const struct entry *)b)->symbol;
	int order;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	order = strcmp(x->name, y->name);
	return order ? order : (int)y->dynamic - (int)x->dynamic;
}

static int compare_objects(const void *a, const void *b)
{
	const struct image_symbol *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (!order)
		order = (int)y->dynamic - (int)x->dynamic;
	return order ? order : x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static void sort_objects(struct image *image)
{
	size_t live = 0;

	if (image->object_count)
		qsort(image->objects, image->object_count, sizeof(*image->objects), compare_objects);
	for (size_t i = 0; i < image->object_count; i++)
		if (!live || strcmp(image->objects[live - 1].name, image->objects[i].name))
			image->objects[live++] = image->objects[i];
	image->object_count = live;
}

int image__read_symbols(struct image *image)
{
	static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};
	size_t live = 0;

	for (size_t t = 0; t < 2; t++) {
		Elf_Data *data;
		size_t strings;
		GElf_Sym sym;

		if (!find_table(image, types[t], &data, &strings))
			continue;
		for (int i = 1; gelf_getsym(data, i, &sym); i++) {
			int ret = add_symbol(image, &sym, elf_strptr(image->elf, strings, sym.st_name), t == 0);

			if (ret)
				return ret;
		}
	}
	if (image->entry_count)
		qsort(image->entries, image->entry_count, sizeof(*image->entries), compare_entries);
	for (size_t i = 0; i < image->entry_count; i++) {
		const struct entry *entry = &image->entries[i];

		if (live && image->entries[live - 1].symbol.vaddr == entry->symbol.vaddr &&
		    !strcmp(image->entries[live - 1].symbol.name, entry->symbol.name)) {
			image->entries[live - 1].function |= entry->function;
			continue;
		}
		image->entries[live++] = *entry;
	}
	image->entry_count = live;
	sort_objects(image);
	return 0;
}

static bool is_definition(const GElf_Sym *sym)
{
	unsigned int type = GELF_ST_TYPE(sym->st_info);

	return sym->st_shndx != SHN_UNDEF && GELF_ST_BIND(sym->st_info) != STB_LOCAL &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_OBJECT || type == STT_NOTYPE);
}

int image__definitions(struct image *image, int (*visit)(const char *name, void *ctx), void *ctx)
{
	static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};

	for (size_t t = 0; t < 2 && (t == 0 || image->is_executable); t++) {
		Elf_Data *data;
		size_t strings;
		GElf_Sym sym;

		if (!find_table(image, types[t], &data, &strings))
			continue;
		for (int i = 1; gelf_getsym(data, i, &sym); i++) {
			const char *name = is_definition(&sym) ? elf_strptr(image->elf, strings, sym.st_name) : NULL;
			int status = name ? visit(name, ctx) : 0;

			if (status)
				return status;
		}
	}
	return 0;
}

int image__references(struct image *image, int (*visit)(const char *name, void *ctx), void *ctx)
{
	Elf_Data *data;
	size_t strings;
	GElf_Sym sym;

	if (!find_table(image, SHT_DYNSYM, &data, &strings))
		return 0;
	for (int i = 1; gelf_getsym(data, i, &sym); i++) {
		const char *name = sym.st_shndx == SHN_UNDEF ? elf_strptr(image->elf, strings, sym.st_name) : NULL;
		int status = name ? visit(name, ctx) : 0;

		if (status)
			return status;
	}
	return 0;
}

bool image__is_program(const struct image *image)
{
	return image->is_executable;
}

int image__functions(struct image *image, bool all, int (*visit)(const struct image_symbol *symbol, void *ctx),
		     void *ctx)
{
	for (size_t i = 0; i < image->entry_count; i++) {
		const struct entry *entry = &image->entries[i];
		int ret;

		if (!entry->function || !(entry->symbol.dynamic || all || image->is_executable))
			continue;
		ret = visit(&entry->symbol, ctx);
		if (ret)
			return ret;
	}
	return 0;
}

static int compare_name(const void *name, const void *object)
{
	return strcmp(name, ((const struct image_symbol *)object)->name);
}

int image__object(struct image *image, const char *name, uint64_t *vaddr, uint64_t *size)
{
	const struct image_symbol *found = image->object_count ? bsearch(name, image->objects, image->object_count,
									 sizeof(*image->objects), compare_name)
							       : NULL;

	if (!found)
		return -ENOENT;
	*vaddr = found->vaddr;
	*size = found->size;
	return 0;
}

/* Finds the first symbol that starts after vaddr. */
static size_t first_after(const struct image *image, uint64_t vaddr)
{
	size_t low = 0, high = image->entry_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (image->entries[middle].symbol.vaddr <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool image__is_exported(const struct image *image, uint64_t vaddr)
{
	for (size_t i = first_after(image, vaddr); i > 0; i--) {
		const struct entry *entry = &image->entries[i - 1];

		if (entry->symbol.vaddr != vaddr)
			return false;
		if (entry->function && entry->symbol.dynamic)
			return true;
	}
	return false;
}

bool image__symbol_between(struct image *image, uint64_t from, uint64_t to)
{
	size_t next = first_after(image, from);

	return next < image->entry_count && image->entries[next].symbol.vaddr <= to;
}

const char *image__symbolise(struct image *image, uint64_t vaddr, uint64_t *distance)
{
	size_t next = first_after(image, vaddr);
	const struct load *load = image__load(image, vaddr);

	if (!load || !load->executable)
		return NULL;
	for (size_t i = next; i > 0 && next - i < SYMBOLISE_BACK; i--) {
		const struct entry *entry = &image->entries[i - 1];
		uint64_t from = entry->symbol.vaddr;

		if (!entry->function || from < load->vaddr)
			continue;
		/* A symbol without size reaches to the next one, where the search began. */
		if (entry->symbol.size && vaddr - from >= entry->symbol.size)
			continue;
		*distance = vaddr - from;
		return entry->symbol.name;
	}
	return NULL;
}
