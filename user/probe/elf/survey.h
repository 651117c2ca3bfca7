/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The survey of an image: all that vapro needs to know of a user's executable or library, found out
 * in the confined reader (sandbox/confine.h) and returned as checked tables. The query says which
 * functions to look for, since rows are data.
 */
#ifndef VAPRO_SURVEY_H
#define VAPRO_SURVEY_H

#include <sys/types.h>

#include "probe/elf/iosites.h"
#include "probe/elf/site.h"
#include "probe/elf/transparent.h"
#include "sandbox/confine.h"
#include "target/image.h"

#define SURVEY_SERVICE "survey"

enum survey_part {
	SURVEY_NAMES = 1, /* functions and objects by name: for call-sites and handles */
	SURVEY_IO = 2,	  /* libc's system calls */
	SURVEY_CALLS = 4, /* a transparent image's calls and where they return to; with SURVEY_NAMES where it is one */
};

struct survey_wanted {
	const char *symbol; /* MPI_X stands for PMPI_X as well, and for the large-count forms MPI_X_c and PMPI_X_c */
	unsigned int arguments; /* bits of those read: site__choose() */
};

struct survey_function {
	size_t wanted; /* index in the query */
	struct image_symbol symbol;
	bool large; /* the large-count form */
	struct site site;
};

struct survey;

/*
 * Surveys the image behind fd (a regular file), which a process of owner maps. label: its name in
 * sentences. The texts of wanted must outlive the survey. NULL with errno and a sentence in err: what is wrong with the
 * image, what became of its reader, or that the same query has a result later (confine__is_later()).
 */
struct survey *survey__query(int fd, uid_t owner, const char *label, unsigned int parts,
			     const struct survey_wanted *wanted, size_t wanted_count, char *err, size_t err_size);
void survey__free(struct survey *survey);

/* Build-id, segments and, with SURVEY_NAMES, symbols: an image without its bytes. */
struct image *survey__image(const struct survey *survey);

/* Wanted functions that the image defines, refused ones too, by address; aliases share one. Names are those wanted. */
const struct survey_function *survey__functions(const struct survey *survey, size_t *count);

/* With SURVEY_NAMES: whether the image passes calls of MPI on, transparent__passes_on(); then its calls are known. */
bool survey__passes_on(const struct survey *survey);

const struct transparent_call *survey__calls(const struct survey *survey, size_t *count);
const struct io_site *survey__io_sites(const struct survey *survey, size_t *count);

/* The reader's side; runs confined. */
int survey__respond(struct flat_reader *about, struct confine_file *files, unsigned int file_count,
		    struct flat *response, char *err, size_t err_size);

#endif
