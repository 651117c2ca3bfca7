/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Groups of functions whose exits are probes of their own: of thread libraries, of a site, and outlined ones. */
#ifndef VAPRO_ROW_GROUP_H
#define VAPRO_ROW_GROUP_H

enum row_group { ROW_THREADS, ROW_USER, ROW_OUTLINED };

#endif
