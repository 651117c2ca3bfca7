/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of source of call-sites, asked when somebody looks: the capture tells each site's image, and
 * where a file of the same build-id is still there, its DWARF tells the line (target/source.h).
 */
#ifndef VAPRO_REPORT_STG_LINES_H
#define VAPRO_REPORT_STG_LINES_H

#include <stdio.h>

struct stg_lines;

struct stg_lines *stg_lines__new(void);
void stg_lines__free(struct stg_lines *lines);

/*
 * Notes a call-site (`name@build-id+0xOFFSET`) and the path of its image, NULL where unknown; where callers follow,
 * the line is that of the last of them in the same image. 0 or -ENOMEM.
 */
int stg_lines__add(struct stg_lines *lines, const char *site, const char *path);

/* Asks for all of them, one question an image. What could not be had is said to complaints, once an image. */
void stg_lines__ask(struct stg_lines *lines, FILE *complaints);

/* `file:line` of a call-site, without directories, or "". Belongs to lines. */
const char *stg_lines__of(struct stg_lines *lines, const char *site);

#endif
