/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The probes of rows with exit sites in one image: where each of its functions is entered and left, as
 * the confined reader (sandbox/confine.h) finds out. Knows no process and no kernel.
 */
#ifndef VAPRO_ROW_SITES_H
#define VAPRO_ROW_SITES_H

#include <sys/types.h>

#include "functions/functions.h"
#include "sandbox/confine.h"
#include "target/image.h"

#define ROW_SITES_SERVICE "rows"

struct row_site {
	uint64_t offset; /* in the file */
	uint64_t cookie;
};

/* One function: the sites that are opened and closed together. */
struct row_function {
	unsigned int row;
	uint64_t entry; /* file offset of the function */
	char *name; /* that of the source where its symbol shows it and labels can have it; "" where there is none */
	struct row_site *sites;
	size_t site_count;
	bool shifted, stepped; /* flags of its entry's probe */
	bool ends_elsewhere;   /* some exits lie in functions it calls last, or in parts put elsewhere */
	uint32_t exit_sites, exit_stepped;
};

struct row_skip {
	char *function, *reason;
	uint64_t entry; /* file offset of the function */
};

struct row_sites {
	char build_id[IMAGE_BUILD_ID_MAX];
	struct row_function *functions;
	size_t function_count, function_room;
	struct row_skip *skips; /* functions left alone, or not fully seen */
	size_t skip_count, skip_room;
};

/*
 * Finds the functions of these rows in the image behind fd, which a process of owner maps. label is the name to show.
 * Returns NULL with a sentence in err and errno, which may be one of confine__is_later().
 */
struct row_sites *row_sites__query(int fd, uid_t owner, const char *label, const unsigned int *rows, size_t count,
				   char *err, size_t err_size);

/*
 * Finds the function that begins at a file offset and, with all, every other one that a compiler outlined for a team
 * of threads, as its symbol says: in one query. The functions are rows of this kind without a number yet.
 */
struct row_sites *row_sites__query_at(int fd, uid_t owner, const char *label, uint64_t offset, bool all,
				      enum kernel_row_kind kind, char *err, size_t err_size);
void row_sites__free(struct row_sites *sites);

/* Gives a function its row's number. */
void row_sites__number(struct row_function *function, unsigned int row);

/* Notes a function that is left alone. 0 or -ENOMEM. */
int row_sites__skip(struct row_sites *sites, const char *function, uint64_t entry, const char *reason);

/* ---- the reader's side */

/* Runs confined. */
int row_sites__respond(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
		       struct flat *response, char *err, size_t err_size);

/*
 * Whether a symbol is the function a user named: by its name, its C++ or Rust name with or without the types of its
 * arguments (a::b, a::b<double>, a::b(int); blanks do not matter), or as a copy that a compiler made of it
 * (name.constprop.0).
 */
bool row_sites__matches(const char *symbol, const char *wanted);

/* Whether a symbol's name is one that a compiler gives to the function of a parallel region. */
bool row_sites__is_outlined(const char *symbol);

#endif
