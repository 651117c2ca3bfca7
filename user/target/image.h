/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One ELF image: what vapro needs to know of an executable or shared library. An image is read
 * through any path (normally /proc/PID/map_files/..., which works across mount namespaces and for
 * deleted files) with libelf and libdw; nothing of the file is executed. Root reads only inside the confined
 * reader (probe/elf/survey.h), and gets an image of tables: all but image__bytes and image__cfa
 * work on it.
 */
#ifndef VAPRO_IMAGE_H
#define VAPRO_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_BUILD_ID_MAX 41

struct image;

struct image_symbol {
	const char *name; /* without version; owned by the image */
	uint64_t vaddr;	  /* as linked */
	uint64_t offset;  /* file offset of vaddr */
	uint64_t size;	  /* 0 where the table has none */
	bool ifunc;
	bool dynamic; /* from .dynsym, else .symtab */
};

/* Opens an image. Returns NULL with a sentence in err (unreadable, no ELF, other machine, damaged). */
struct image *image__open(const char *path, char *err, size_t err_size);

/*
 * Opens an image of a file's bytes, which outlive it and may be changed. Without symbols, whose sorting is most of the
 * work, it has no names.
 */
struct image *image__from_bytes(char *bytes, size_t size, bool symbols, char *err, size_t err_size);
void image__free(struct image *image);

/* Hex build-id, or "" where the image has none. */
const char *image__build_id(const struct image *image);

/*
 * Calls visit for every defined function symbol of .dynsym and, for executables or where all is
 * true, .symtab: each version of a name once. Aliases share an offset. visit returns 0 to go on.
 */
int image__functions(struct image *image, bool all, int (*visit)(const struct image_symbol *symbol, void *ctx),
		     void *ctx);

/*
 * Calls visit for the name of every function and object that .dynsym defines or, in executables, .symtab: in the order
 * of the file, with repetitions. Needs no symbols of image__from_bytes(). visit returns 0 to go on.
 */
int image__definitions(struct image *image, int (*visit)(const char *name, void *ctx), void *ctx);

/*
 * Calls visit for the name of every symbol of .dynsym that the image needs of others: in the order of the file. Needs
 * no symbols of image__from_bytes(). visit returns 0 to go on.
 */
int image__references(struct image *image, int (*visit)(const char *name, void *ctx), void *ctx);

/* Whether an image is a program: an executable, position-independent or not. */
bool image__is_program(const struct image *image);

/*
 * Calls visit for the texts of .dynamic that have a tag: DT_SONAME, the name for the linker, or DT_NEEDED, the names of
 * libraries that are loaded with the image. visit returns 0 to go on.
 */
int image__linked_names(struct image *image, int64_t tag, int (*visit)(const char *name, void *ctx), void *ctx);

/*
 * Finds a data object by name in .dynsym (copy-relocated handles live in the executable's) and, in executables,
 * .symtab. 0 or -ENOENT.
 */
int image__object(struct image *image, const char *name, uint64_t *vaddr, uint64_t *size);

/* File offset of a linked address and back, by the program headers. 0 or -ENOENT. */
int image__offset_of(const struct image *image, uint64_t vaddr, uint64_t *offset);
int image__vaddr_of(const struct image *image, uint64_t offset, uint64_t *vaddr);

/*
 * Returns a pointer to the file's bytes at a linked address, and in *size the number of bytes up to the
 * end of the segment, or NULL.
 */
const uint8_t *image__bytes(const struct image *image, uint64_t vaddr, size_t *size);

/*
 * Finds the canonical frame address at vaddr as "sp + displacement" by .eh_frame or .debug_frame.
 * 0 with *displacement, -ENOENT where no CFI covers vaddr, -EINVAL where the CFA is not based on sp.
 */
int image__cfa(struct image *image, uint64_t vaddr, int64_t *displacement);

/*
 * Finds the piece of code that holds a linked address, as .eh_frame divides the image: functions, and
 * parts that the compiler put elsewhere. Stripped images have .eh_frame too. 0 or -ENOENT.
 */
int image__extent(const struct image *image, uint64_t vaddr, uint64_t *start, uint64_t *size);

/* Whether a function of .dynsym starts at a linked address: others may call it. */
bool image__is_exported(const struct image *image, uint64_t vaddr);

/*
 * Unwind rules at a linked address, as distances from sp there (by_frame: from the frame pointer):
 * where the frame's return address and its caller's frame pointer are saved, and the value of sp once
 * the frame is left. frame_unchanged: the caller's frame pointer is still in its register. 0, -ENOENT
 * where no CFI covers the address, -EINVAL where the frame is based on something else or keeps its
 * return address in a register.
 */
struct image_frame {
	int64_t cfa, return_at, frame_at;
	bool frame_unchanged, by_frame;
};

int image__frame(struct image *image, uint64_t vaddr, struct image_frame *frame);

/* Gives the i-th executable segment, as far as the file has it; false where there is none. */
bool image__text(const struct image *image, size_t i, uint64_t *vaddr, uint64_t *size);

/* Whether any symbol starts in (from, to]: such places are entered from elsewhere. */
bool image__symbol_between(struct image *image, uint64_t from, uint64_t to);

/* Names the function that holds vaddr, from any table, with the distance from its start, or NULL. */
const char *image__symbolise(struct image *image, uint64_t vaddr, uint64_t *distance);

#endif
