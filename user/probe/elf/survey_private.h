/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits that both sides of a survey share; no other file includes it. */
#ifndef VAPRO_SURVEY_PRIVATE_H
#define VAPRO_SURVEY_PRIVATE_H

#define SURVEY_WANTED_MAX 65536
#define SURVEY_SHIFT_MAX 4096
#define SURVEY_TEXT_MAX 128
#define SURVEY_IO_MAX 64

/* Least bytes of a function, of an IO site and of a call in the response. */
#define SURVEY_FUNCTION_BYTES (9 * 8 + 2)
#define SURVEY_IO_BYTES (3 * 8)
#define SURVEY_CALL_BYTES (5 * 8)

#endif
