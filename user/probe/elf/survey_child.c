// SPDX-License-Identifier: GPL-2.0-or-later
/* The reader's side of a survey. All of it runs confined, on bytes that may be anything. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/elf/survey.h"
#include "probe/elf/survey_private.h"
#include "target/image_tables.h"

#define FUNCTION_NAME_MAX 64 /* of MPI */

struct wanted {
	const char *symbol;
	unsigned int arguments;
	size_t index;
};

struct search {
	struct image *image;
	struct wanted *wanted; /* by symbol */
	size_t wanted_count;
	struct flat *found;
	size_t count;
};

static int by_symbol(const void *a, const void *b)
{
	return strcmp(((const struct wanted *)a)->symbol, ((const struct wanted *)b)->symbol);
}

static const struct wanted *find(const struct search *search, const char *symbol)
{
	struct wanted key = {.symbol = symbol};

	return search->wanted_count ? bsearch(&key, search->wanted, search->wanted_count, sizeof(key), by_symbol)
				    : NULL;
}

/* Finds the function whose large-count form, MPI_X_c, a symbol is. */
static const struct wanted *find_small(const struct search *search, const char *symbol)
{
	size_t length = strlen(symbol);
	char name[FUNCTION_NAME_MAX];

	if (strncmp(symbol, "MPI_", 4) || length >= sizeof(name) || strcmp(symbol + length - 2, "_c"))
		return NULL;
	memcpy(name, symbol, length - 2);
	name[length - 2] = '\0';
	return find(search, name);
}

static int visit(const struct image_symbol *symbol, void *ctx)
{
	struct search *search = ctx;
	const char *name = symbol->name + !strncmp(symbol->name, "PMPI_", 5); /* as functions__find() has it */
	const struct wanted *wanted = find(search, name), *small = wanted ? NULL : find_small(search, name);
	struct site site;

	wanted = wanted ? wanted : small;
	if (!wanted)
		return 0;
	site__choose(search->image, symbol, wanted->arguments, &site);
	flat__put(search->found, wanted->index);
	flat__put(search->found, small != NULL);
	flat__put(search->found, symbol->vaddr);
	flat__put(search->found, symbol->size);
	flat__put(search->found, symbol->dynamic);
	flat__put(search->found, site.shift);
	flat__put(search->found, site.class);
	flat__put_text(search->found, site.instruction ? site.instruction : "");
	flat__put_text(search->found, site.reason ? site.reason : "");
	search->count++;
	return 0;
}

static int read_wanted(struct flat_reader *about, struct search *search)
{
	search->wanted_count = (size_t)flat__get_upto(about, SURVEY_WANTED_MAX);
	search->wanted = calloc(search->wanted_count + 1, sizeof(*search->wanted));
	if (!search->wanted)
		return -ENOMEM;
	for (size_t i = 0; i < search->wanted_count; i++) {
		search->wanted[i].symbol = flat__get_text(about, 4096);
		search->wanted[i].arguments = (unsigned int)flat__get(about);
		search->wanted[i].index = i;
	}
	if (search->wanted_count)
		qsort(search->wanted, search->wanted_count, sizeof(*search->wanted), by_symbol);
	return flat__done(about) ? 0 : -EINVAL;
}

static int put_io(struct image *image, struct flat *response)
{
	struct io_site sites[SURVEY_IO_MAX];
	int count = iosites__find(image, sites, SURVEY_IO_MAX);

	if (count < 0)
		return count;
	flat__put(response, (uint64_t)count);
	for (int i = 0; i < count; i++) {
		size_t name = 0;

		while (strcmp(iosites__wrapper(name), sites[i].name))
			name++;
		flat__put(response, sites[i].vaddr);
		flat__put(response, (uint64_t)sites[i].displacement);
		flat__put(response, name);
	}
	return 0;
}

static int put_calls(struct image *image, struct flat *response)
{
	struct transparent_call *calls;
	int count = transparent__find(image, &calls);

	if (count < 0)
		return count;
	flat__put(response, (uint64_t)count);
	for (int i = 0; i < count; i++) {
		flat__put(response, calls[i].vaddr);
		flat__put(response, (uint32_t)calls[i].hop.return_at);
		flat__put(response, (uint32_t)calls[i].hop.sp);
		flat__put(response, (uint32_t)calls[i].hop.frame_at);
		flat__put(response, calls[i].hop.by_frame);
	}
	free(calls);
	return 0;
}

int survey__respond(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
		    struct flat *response, char *err, size_t err_size)
{
	struct flat found = {0};
	struct search search = {.found = &found};
	uint64_t parts = flat__get(about);
	int status = read_wanted(about, &search);
	bool passes_on;

	if (status || file_count != 1) {
		snprintf(err, err_size, "the query makes no sense");
		return status ? status : -EINVAL;
	}
	search.image = image__from_bytes(files[0].data, files[0].size, true, err, err_size);
	if (!search.image) {
		status = -EINVAL;
		goto cleanup;
	}
	image_tables__put(search.image, parts & SURVEY_NAMES, response);
	image__functions(search.image, false, visit, &search);
	flat__put(response, search.count);
	flat__put_flat(response, &found);
	if (parts & SURVEY_IO)
		status = put_io(search.image, response);
	else
		flat__put(response, 0);
	if (status)
		goto cleanup;
	passes_on = parts & SURVEY_NAMES && transparent__passes_on(search.image);
	flat__put(response, passes_on);
	if (parts & SURVEY_CALLS || passes_on)
		status = put_calls(search.image, response);
	else
		flat__put(response, 0);
cleanup:
	image__free(search.image);
	free(search.wanted);
	free(found.data);
	return status;
}
