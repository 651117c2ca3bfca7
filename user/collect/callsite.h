/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call-sites: raw return addresses of a process become `name@<first 12 of build-id>+0xOFFSET` with
 * the file offset, so that ranks, address randomisation and restarts agree (ARCHITECTURE section 3).
 */
#ifndef VAPRO_CALLSITE_H
#define VAPRO_CALLSITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/image.h"
#include "target/process.h"

#define CALLSITE_MAX 192 /* of a path's suffix the last bytes */

struct image_cache;
struct callsites;

struct callsite {
	char text[CALLSITE_MAX];
	char symbol[CALLSITE_MAX]; /* function+0xN, or empty */
	const char *path;	   /* of its image, as the process sees it, or NULL; lives as long as the call-sites */
	bool transparent;	   /* inside an image that should have been looked through */
};

/* Images by device and inode, shared by all processes. */
struct image_cache *image_cache__new(void);
void image_cache__free(struct image_cache *cache);

/* A sentence about an image that could not be read, each once: its call-sites have no names. false: none. */
bool image_cache__trouble(struct image_cache *cache, char *text, size_t size);

/*
 * The call-sites of one process, which must outlive them; files it maps are held open so that they
 * can be read after its end. NULL when out of memory.
 */
struct callsites *callsites__new(struct image_cache *cache, struct process *process);
void callsites__free(struct callsites *callsites);

/* The process has mapped more: holds what is new, so that it can be read after the process's end. 0 or -errno. */
int callsites__remapped(struct callsites *callsites);

/* Always gives a text: an address outside every file is told as it is. */
void callsites__resolve(struct callsites *callsites, uint64_t address, struct callsite *site);

/* Build-id of the process's executable, or "". */
const char *callsites__build_id(struct callsites *callsites);

/* Address in the process of a data object: the executable's copy where it has one, else the library's. 0 or -ENOENT. */
int callsites__object(struct callsites *callsites, const char *library_glob, const char *name, uint64_t *address);

/*
 * Tells the kernel side where the process has transparent images mapped, and their tables; later ones
 * as they come to light. transparent and hops are its maps; more (globs, kept) beside the built-in ones;
 * *told is raised with each telling.
 */
void callsites__tell_transparent(struct callsites *callsites, int transparent, int hops, const char *more,
				 uint32_t *told);

/* The place of one caller of a path, or false where the path ends: outside files, or in the C library. */
bool callsites__frame(struct callsites *callsites, uint64_t address, struct callsite *site);

/*
 * Hopping: calls of a call-site are distinguished by their callers, for all processes that map its image. site is a
 * text of callsites__resolve(). Returns NULL, or why it cannot be: the end of a sentence whose subject is the
 * call-site; then *top says whether that is since nothing of the program calls it. callsites__tell_hops() carries it
 * out for a process.
 */
const char *image_cache__hop(struct image_cache *cache, const char *site, bool *top);
void image_cache__unhop(struct image_cache *cache, const char *site);

/*
 * Whether an address lies in the C library or in the runtime of a language: between the program and a system call.
 * Its frame is hopped then, from the next image_cache__look_up() on.
 */
bool callsites__in_runtime(struct callsites *callsites, uint64_t address);

/* Looks up what is wanted of runtimes. Whether there is something new for callsites__tell_hops(). */
bool image_cache__look_up(struct image_cache *cache);

/* A sentence about a runtime whose frames cannot all be left, once each. false: none. */
bool image_cache__hop_trouble(struct image_cache *cache, char *text, size_t size);

/* Gives the kernel side the hopped call-sites of the process, and takes back those that are no more. How many are. */
size_t callsites__tell_hops(struct callsites *callsites, int map);

/* Tells the kernel side where the process's libc leaves the caller of a system call. Returns how many places. */
int callsites__tell_io(struct callsites *callsites, int map, pid_t pid);

#endif
