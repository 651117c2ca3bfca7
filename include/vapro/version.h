/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one place of the version: programs, records, man pages and packages have it from this line. */
#ifndef VAPRO_VERSION_H
#define VAPRO_VERSION_H

#define VAPRO_VERSION "0.1.0"

#endif
