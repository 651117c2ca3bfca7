/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tunables that are one of several words; the member is an enum, an unsigned int of the word's index. */
#ifndef VAPRO_CONFIG_WORDS_H
#define VAPRO_CONFIG_WORDS_H

#include <vapro/config.h>

/* The words of a type, up to a NULL; NULL where its values are no words. */
const char *const *config__words(enum vapro_option_type type);

/* Writes the words one behind the other. */
void config__join(const char *const *words, const char *between, const char *last, char *text, size_t size);

#endif
