// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * print_sites LIB REGEX [all|none]: one line per function of an image whose name matches in full,
 * "name vaddr shift class instruction # reason", as site__choose sees it with the row's arguments
 * (all six with "all", none with "none"). print_sites --io LIB prints libc's IO call-sites,
 * print_sites --arguments prints the mask of argument registers that each row reads. For compare.py.
 */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "functions/functions.h"
#include "probe/elf/iosites.h"
#include "probe/elf/site.h"
#include "target/image.h"

struct job {
	struct image *image;
	regex_t regex;
	const char *mask; /* "all", "none", or NULL for the rows' */
	int failed;
};

static int print_site(const struct image_symbol *symbol, void *ctx)
{
	struct job *job = ctx;
	unsigned int arguments = job->mask && !strcmp(job->mask, "all") ? 0x3f : 0;
	int row = functions__find(symbol->name);
	struct site site;
	regmatch_t match;

	if (!symbol->dynamic || regexec(&job->regex, symbol->name, 1, &match, 0) || match.rm_so ||
	    (size_t)match.rm_eo != strlen(symbol->name))
		return 0;
	if (!job->mask && row >= 0)
		arguments = functions__arguments(&function_rows[row]);
	site__choose(job->image, symbol, arguments, &site);
	printf("%s %#lx %u %s %s # %s\n", symbol->name, (unsigned long)symbol->vaddr, site.shift,
	       site_class_name[site.class], *site.instruction ? site.instruction : "-", site.reason ? site.reason : "");
	return 0;
}

static int print_io(struct image *image)
{
	struct io_site sites[256];
	int count = iosites__find(image, sites, sizeof(sites) / sizeof(*sites));

	for (int i = 0; i < count; i++)
		printf("%s %#lx %#lx %d\n", sites[i].name, (unsigned long)sites[i].vaddr,
		       (unsigned long)sites[i].offset, sites[i].displacement);
	return count < 0;
}

int main(int argc, char **argv)
{
	struct job job = {0};
	char err[256];
	bool io = argc == 3 && !strcmp(argv[1], "--io");

	if (argc == 2 && !strcmp(argv[1], "--arguments")) {
		for (unsigned int i = 0; i < function_row_count; i++)
			printf("%s %#x\n", function_rows[i].symbol, functions__arguments(&function_rows[i]));
		return 0;
	}
	if (argc < 3) {
		fprintf(stderr, "usage: print_sites LIB REGEX [all|none]\n"
				"       print_sites --io LIB\n       print_sites --arguments\n");
		return 2;
	}
	job.mask = argc > 3 ? argv[3] : NULL;
	job.image = image__open(argv[io ? 2 : 1], err, sizeof(err));
	if (!job.image) {
		fprintf(stderr, "%s: %s\n", argv[io ? 2 : 1], err);
		return 1;
	}
	if (io) {
		job.failed = print_io(job.image);
	} else if (regcomp(&job.regex, argv[2], REG_EXTENDED)) {
		fprintf(stderr, "%s: not a regular expression\n", argv[2]);
		job.failed = 1;
	} else {
		image__functions(job.image, false, print_site, &job);
		regfree(&job.regex);
	}
	image__free(job.image);
	return job.failed;
}
