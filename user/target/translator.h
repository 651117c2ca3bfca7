/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Binary translators: programs that read the code of another program and execute a translation of it. A breakpoint in
 * code that they map becomes an instruction of that translation, which ends the program (ARCHITECTURE section 2.4).
 * They are recognised by the name of the executable or of a library that they load; a name is no proof, so that nothing
 * but the way of linking may follow from it.
 */
#ifndef VAPRO_TRANSLATOR_H
#define VAPRO_TRANSLATOR_H

/* Returns the name of the translator that a file mapped as code belongs to, or NULL. path: any text. */
const char *translator__of_path(const char *path);

#endif
