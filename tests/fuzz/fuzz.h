/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzers of what vapro reads from others (make fuzz): libFuzzer's inputs are the bytes below the checksums, which a
 * fuzzer sets right, since a hostile sender does so too. An input begins as what vapro writes itself.
 */
#ifndef VAPRO_FUZZ_H
#define VAPRO_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include <vapro/config.h>
#include "../unit/streamed.h"

/* Each fuzzer's own: what the next input begins as, at least 16 bytes. They live as long as the program. */
const uint8_t *fuzz__origin(size_t *size);

/* The entry of libFuzzer. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The settings of all fuzzers: the defaults, with hops. */
const struct vapro_config *fuzz__config(void);

/* A stream of two ranks and another job, short enough for many inputs a second. */
struct streamed fuzz__stream(struct stream_sink *to);

/* Puts the line `hello` with which vaprod begins. */
void fuzz__hello(struct stream_sink *to);

/* A sink that analyses, and whose lines go nowhere. */
struct pipeline *fuzz__pipeline(void);

/* Writes bytes to a file of this process, in memory, in place of the one before. Returns its path. */
const char *fuzz__file(const void *data, size_t size);

/* Reads a file. The caller frees the bytes. */
uint8_t *fuzz__read(const char *name, size_t *size);

/* Ends the fuzzer where what it relies on does not hold. */
#define fuzz__require(condition) fuzz__required((condition), #condition, __FILE__, __LINE__)
void fuzz__required(int holds, const char *condition, const char *file, int line);

#endif
