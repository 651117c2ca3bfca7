/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Source lines of call-sites, looked up on demand: the capture names each site's image, and the DWARF
 * of a file with the same build-id, if one is still there, gives the line (target/source.h).
 */
#ifndef VAPRO_REPORT_STG_LINES_H
#define VAPRO_REPORT_STG_LINES_H

#include <stdio.h>

struct stg_lines;

struct stg_lines *stg_lines__new(void);
void stg_lines__free(struct stg_lines *lines);

/*
 * Notes a call-site (`name@build-id+0xOFFSET`) and the path of its image, NULL where unknown; where callers follow,
 * the line is that of the last caller in the same image. Returns 0 or -ENOMEM.
 */
int stg_lines__add(struct stg_lines *lines, const char *site, const char *path);

/* Looks up all lines, with one request per image. Failures go to complaints, once per image. */
void stg_lines__query(struct stg_lines *lines, FILE *complaints);

/* Returns `file:line` of a call-site, without directories, or "". The text belongs to lines. */
const char *stg_lines__of(struct stg_lines *lines, const char *site);

#endif
