/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VAPRO_TERMINAL_H
#define VAPRO_TERMINAL_H

/* Returns the columns of COLUMNS, else of the terminal that fd is, else 80; at least 40. */
unsigned terminal__width(int fd);

#endif
