/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The terminal of `vapro top`, by ncurses. There is one at a time; any end of the process restores the terminal. */
#ifndef VAPRO_TOP_SCREEN_H
#define VAPRO_TOP_SCREEN_H

#include <stdbool.h>

#include "top/grid.h"

/* Takes the terminal of standard input and output. Returns 0, or -EINVAL with a sentence in err. */
int screen__open(char *err, size_t err_size);

/* Returns the terminal as it was. Fine where none is open. */
void screen__close(void);

/* Gets the size, in columns and rows. */
void screen__size(unsigned *width, unsigned *height);

/* Shows a grid; of a grid of another size as much as there is room for. */
void screen__draw(const struct grid *grid);

/*
 * Reads a key that was pressed, without waiting: an enum top_key or a character; 0: none; SCREEN_RESIZED after the
 * size has changed.
 */
uint32_t screen__key(void);
#define SCREEN_RESIZED UINT32_MAX

/* Returns whether a signal that ends the process has come. */
bool screen__ended(void);

#endif
