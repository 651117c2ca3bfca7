/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a noise component is called, for people. */
#ifndef VAPRO_NOISE_TEXT_H
#define VAPRO_NOISE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define NOISE_TASK_SIZE 128

/*
 * Writes the name of the tasks with what else is known of whose they are, "ticker (pid 71, of another watched job)":
 * harmless characters only. what and relation: as in records, or NULL; pid 0: of several processes. Returns text, of
 * NOISE_TASK_SIZE bytes.
 */
char *noise_text__task(const char *what, const char *relation, uint64_t pid, char *text);

#endif
