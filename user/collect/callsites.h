/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call-sites: raw return addresses of a process become `name@<first 12 of build-id>+0xOFFSET` with
 * the file offset, so that ranks, address randomisation and restarts agree (ARCHITECTURE section 3).
 */
#ifndef VAPRO_CALLSITES_H
#define VAPRO_CALLSITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/process.h"

#define CALLSITE_MAX 192 /* bytes of a text or symbol */

struct callsites;
struct image_cache;

struct callsite {
	char text[CALLSITE_MAX];
	char symbol[CALLSITE_MAX]; /* function+0xN, or empty */
	const char *path;	   /* the image's, as the process sees it, or NULL; lives as long as the call-sites */
	bool transparent;	   /* inside an image that is, or from now on will be, looked through */
};

/*
 * The call-sites of one process, which must outlive them; files that the process maps are held open
 * and can be read after its end. NULL when out of memory.
 */
struct callsites *callsites__new(struct image_cache *cache, struct process *process);
void callsites__free(struct callsites *callsites);

/* Holds files that the process has newly mapped, so that they can be read after its end. 0 or -errno. */
int callsites__remapped(struct callsites *callsites);

/* Always gives a text: an address outside every file appears as it is. */
void callsites__resolve(struct callsites *callsites, uint64_t address, struct callsite *site);

/* CPU time spent so far on reading images to name call-sites of the process, ns. */
uint64_t callsites__read_ns(const struct callsites *callsites);

/* Notes an address, whose text is that of callsites__resolve(), to be named in the background. */
void callsites__name(struct callsites *callsites, uint64_t address, const char *text, bool urgent);

/* Build-id of the process's executable, or "". */
const char *callsites__build_id(struct callsites *callsites);

/* Finds a data object in the process: the executable's copy where it has one, else its MPI library's. 0 or -ENOENT. */
int callsites__object(struct callsites *callsites, const char *name, uint64_t *address);

/*
 * Shows the kernel side where the process has transparent images mapped, and their tables; later images
 * when they are found. transparent and hops are kernel maps; more (globs, retained) extends the built-in
 * list; each update raises the counter.
 */
void callsites__push_transparent(struct callsites *callsites, int transparent, int hops, const char *more,
				 uint32_t *updates);

/* Resolves one caller of a path; false where the path ends: outside files, or in the C library. */
bool callsites__frame(struct callsites *callsites, uint64_t address, struct callsite *site);

/*
 * Says whether an address lies in the C library or in a language's runtime, between the program and a system call.
 * Such an address is hopped from the next image_cache__look_up() on.
 */
bool callsites__in_runtime(struct callsites *callsites, uint64_t address);

/* Updates the process's hopped call-sites on the kernel side, also removing former ones. Returns how many are set. */
size_t callsites__push_hops(struct callsites *callsites, int map);

/* Shows the kernel side where the process's libc has its return address in a system call. Returns how many places. */
int callsites__push_io(struct callsites *callsites, int map, pid_t pid);

#endif
