/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VAPRO_WRAP_H
#define VAPRO_WRAP_H

#include <stdio.h>

/* Prints text behind a head, in lines of at most width columns that end between words, the further ones indented. */
void wrap__print(FILE *out, const char *head, const char *text, unsigned indent, unsigned width);

#endif
