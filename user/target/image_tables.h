/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An image's tables (segments, symbols, objects, build-id) as flat bytes, and back: how an image
 * leaves the confined reader. Bytes read back may be anything, and every field is checked.
 */
#ifndef VAPRO_IMAGE_TABLES_H
#define VAPRO_IMAGE_TABLES_H

#include "sandbox/flat.h"
#include "target/image.h"

/* names: symbols and objects as well. Names that a response has no room for are left out, highest addresses first. */
void image_tables__put(const struct image *image, bool names, struct flat *flat);

/*
 * Reads the tables that put() wrote of a file of file_bytes, and advances reader. Names lie in the bytes,
 * which the caller frees after the image. NULL where the tables are wrong, or with *memory set where
 * memory ran out.
 */
struct image *image_tables__get(struct flat_reader *reader, uint64_t file_bytes, bool *memory);

#endif
