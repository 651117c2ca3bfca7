// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/row_sites.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/grow.h"
#include "probe/exits.h"

#define NAME_MAX_BYTES 512

/* _Z4stepv, _ZN3sim4stepEi, _ZNK3sim4stepEv: lengths and names, no templates or operators. */
static bool plain_name(const char *symbol, char *name, size_t size)
{
	const char *at = symbol + 2;
	bool nested = false;
	size_t used = 0;

	if (strncmp(symbol, "_Z", 2) != 0)
		return false;
	if (*at == 'N') {
		nested = true;
		at++;
		while (*at == 'r' || *at == 'V' || *at == 'K')
			at++;
	}
	do {
		size_t length = 0;

		if (*at == 'L') /* of internal linkage */
			at++;
		for (; isdigit((unsigned char)*at) && length < size; at++)
			length = 10 * length + (size_t)(*at - '0');
		if (!length || strnlen(at, length) < length || used + length + 3 > size)
			return false;
		used += (size_t)snprintf(name + used, size - used, "%s%.*s", used ? "::" : "", (int)length, at);
		at += length;
	} while (nested && *at != 'E');
	return nested || *at != 'I';
}

static bool is_copy_suffix(const char *suffix)
{
	return !*suffix ||
	       (*suffix == '.' && !strstr(suffix, ".cold") && !strstr(suffix, ".part") && !strstr(suffix, "_omp_fn"));
}

bool row_sites__matches(const char *symbol, const char *wanted)
{
	size_t length = strlen(wanted);
	char name[NAME_MAX_BYTES];

	if (!strncmp(symbol, wanted, length) && is_copy_suffix(symbol + length))
		return true;
	return is_copy_suffix(strchr(symbol, '.') ? strchr(symbol, '.') : "") &&
	       plain_name(symbol, name, sizeof(name)) && !strcmp(name, wanted);
}

static int skip(struct row_sites *sites, const char *function, const char *reason)
{
	char *name = strdup(function);

	if (!name || grow(&sites->skips, &sites->skip_room, sites->skip_count + 1, sizeof(*sites->skips))) {
		free(name);
		return -ENOMEM;
	}
	sites->skips[sites->skip_count++] = (struct row_skip){name, reason};
	return 0;
}

static bool known(const struct row_sites *sites, uint64_t entry)
{
	for (size_t i = 0; i < sites->function_count; i++)
		if (sites->functions[i].entry == entry)
			return true; /* two names of one place, or versions */
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

static unsigned int arguments_of(const struct function_row *row)
{
	return functions__arguments(row) | (row->forked ? 1U << (row->forked - 1) : 0);
}

static uint64_t cookie_of(unsigned int row, enum site_class class, bool exit)
{
	return row | KERNEL_SITE_OWN | (class == SITE_STEPPED ? KERNEL_SITE_STEPPED : 0) |
	       (exit ? KERNEL_SITE_EXIT : 0);
}

static int add_function(struct row_sites *sites, struct image *image, const struct image_symbol *symbol,
			unsigned int number, const struct function_row *row)
{
	bool call = row->kind == KERNEL_ROW_CALL || row->kind == KERNEL_ROW_FORK;
	struct row_function function = {.row = number, .entry = symbol->offset};
	struct exits *exits = malloc(sizeof(*exits));
	struct site site;
	int status = -ENOMEM;

	if (!exits || site__choose(image, symbol, arguments_of(row), &site) || exits__find(image, symbol, call, exits))
		goto out;
	if (!exits->reason)
		keep_apart(image, symbol, exits, &site);
	if (site.class == SITE_REFUSED || exits->reason) {
		status = skip(sites, symbol->name, exits->reason ? exits->reason : site.reason);
		goto out;
	}
	if (exits->unseen && skip(sites, symbol->name, exits->unseen))
		goto out;
	function.name = strdup(symbol->name);
	function.sites = calloc(exits->count + 1, sizeof(*function.sites));
	if (!function.name || !function.sites ||
	    grow(&sites->functions, &sites->function_room, sites->function_count + 1, sizeof(*sites->functions)))
		goto out;
	function.shifted = site.shift != 0;
	function.stepped = site.class == SITE_STEPPED;
	function.sites[function.site_count++] = (struct row_site){site.offset, cookie_of(number, site.class, false)};
	for (size_t i = 0; i < exits->count; i++) {
		const struct exit_site *exit = &exits->sites[i];

		function.sites[function.site_count++] =
		    (struct row_site){exit->offset, cookie_of(number, exit->class, true)};
		function.exit_sites++;
		function.exit_stepped += exit->class == SITE_STEPPED;
	}
	sites->functions[sites->function_count++] = function;
	function = (struct row_function){0};
	status = 0;
out:
	free(function.name);
	free(function.sites);
	free(exits);
	return status;
}

struct reading {
	struct row_sites *sites;
	struct image *image;
	const unsigned int *rows;
	size_t count;
	/* or the function that holds this address */
	uint64_t vaddr;
	struct function_row found;
	int status;
};

static int visit(const struct image_symbol *symbol, void *ctx)
{
	struct reading *reading = ctx;

	for (size_t i = 0; i < reading->count && !reading->status; i++) {
		const struct function_row *row = functions__row(reading->rows[i]);

		if (!row || !row_sites__matches(symbol->name, row->symbol) || known(reading->sites, symbol->offset))
			continue;
		reading->status = add_function(reading->sites, reading->image, symbol, reading->rows[i], row);
	}
	return reading->status;
}

static int visit_at(const struct image_symbol *symbol, void *ctx)
{
	struct reading *reading = ctx;

	if (reading->vaddr != symbol->vaddr)
		return 0;
	reading->status = add_function(reading->sites, reading->image, symbol, 0, &reading->found);
	return 1;
}

static struct row_sites *begin(struct reading *reading, const char *path, const char *label, char *err, size_t err_size)
{
	reading->image = image__open(path, label, err, err_size);
	if (!reading->image)
		return NULL;
	reading->sites = calloc(1, sizeof(*reading->sites));
	if (reading->sites) {
		snprintf(reading->sites->build_id, sizeof(reading->sites->build_id), "%s",
			 image__build_id(reading->image));
		return reading->sites;
	}
	snprintf(err, err_size, "out of memory");
	image__free(reading->image);
	return NULL;
}

static struct row_sites *end(struct reading *reading, const char *label, char *err, size_t err_size)
{
	image__free(reading->image);
	if (!reading->status)
		return reading->sites;
	snprintf(err, err_size, "%s: %s", label, strerror(-reading->status));
	row_sites__free(reading->sites);
	return NULL;
}

struct row_sites *row_sites__read(const char *path, const char *label, const unsigned int *rows, size_t count,
				  char *err, size_t err_size)
{
	struct reading reading = {.rows = rows, .count = count};

	if (!begin(&reading, path, label, err, err_size))
		return NULL;
	image__functions(reading.image, true, visit, &reading);
	return end(&reading, label, err, err_size);
}

struct row_sites *row_sites__read_at(const char *path, const char *label, uint64_t offset, enum kernel_row_kind kind,
				     char *err, size_t err_size)
{
	struct reading reading = {.found = {.kind = kind, .own_sites = true}};
	struct image_symbol unnamed = {.name = "", .offset = offset};

	if (!begin(&reading, path, label, err, err_size))
		return NULL;
	if (!image__vaddr_of(reading.image, offset, &reading.vaddr)) {
		image__functions(reading.image, true, visit_at, &reading);
		/* stripped: its extent comes from its frame description */
		unnamed.vaddr = reading.vaddr;
		if (!reading.status && !reading.sites->function_count && !reading.sites->skip_count)
			reading.status = add_function(reading.sites, reading.image, &unnamed, 0, &reading.found);
	}
	return end(&reading, label, err, err_size);
}

void row_sites__number(struct row_sites *sites, unsigned int row)
{
	for (size_t i = 0; i < sites->function_count; i++) {
		struct row_function *function = &sites->functions[i];

		function->row = row;
		for (size_t j = 0; j < function->site_count; j++)
			function->sites[j].cookie = (function->sites[j].cookie & ~(uint64_t)KERNEL_SITE_ROW) | row;
	}
}

void row_sites__free(struct row_sites *sites)
{
	if (!sites)
		return;
	for (size_t i = 0; i < sites->function_count; i++) {
		free(sites->functions[i].name);
		free(sites->functions[i].sites);
	}
	for (size_t i = 0; i < sites->skip_count; i++)
		free(sites->skips[i].function);
	free(sites->functions);
	free(sites->skips);
	free(sites);
}
