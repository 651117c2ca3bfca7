/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The probes of rows with exit sites in one image: where each function of it is entered and left.
 * Reading alone: takes a file, gives a list; knows no process and no kernel.
 */
#ifndef VAPRO_ROW_SITES_H
#define VAPRO_ROW_SITES_H

#include "probe/functions.h"
#include "target/image.h"

struct row_site {
	uint64_t offset; /* in the file */
	uint64_t cookie;
};

/* One function: the sites that are opened and closed together. */
struct row_function {
	unsigned int row;
	uint64_t entry; /* file offset of the function */
	char *name;	/* of its symbol */
	struct row_site *sites;
	size_t site_count;
	bool shifted, stepped; /* of its entry's probe */
	uint32_t exit_sites, exit_stepped;
};

struct row_skip {
	char *function;
	const char *reason; /* static text */
};

struct row_sites {
	char build_id[IMAGE_BUILD_ID_MAX];
	struct row_function *functions;
	size_t function_count, function_room;
	struct row_skip *skips; /* left alone, or not fully seen */
	size_t skip_count, skip_room;
};

/*
 * Finds the functions of these rows in the image at path. label is the name to show. Returns NULL
 * with a sentence in err.
 */
struct row_sites *row_sites__read(const char *path, const char *label, const unsigned int *rows, size_t count,
				  char *err, size_t err_size);

/* The same for the one function that begins at a file offset, without a row's number yet. Its name is "" where unknown.
 */
struct row_sites *row_sites__read_at(const char *path, const char *label, uint64_t offset, enum kernel_row_kind kind,
				     char *err, size_t err_size);
void row_sites__free(struct row_sites *sites);

/* Gives all functions a row's number. */
void row_sites__number(struct row_sites *sites, unsigned int row);

/*
 * Whether a symbol is the function a person named: by its name, its C++ name without arguments
 * (a::b), or as a copy that a compiler made of it (name.constprop.0). Templates have mangled names only.
 */
bool row_sites__matches(const char *symbol, const char *wanted);

#endif
