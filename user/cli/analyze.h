/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `vapro analyze`: captures and NDJSON fragments through the same analysis as a live run. */
#ifndef VAPRO_ANALYZE_H
#define VAPRO_ANALYZE_H

/* argv[0] is "analyze". Returns 0, 1 failure (damaged or refused input included), 2 usage. */
int analyze__main(int argc, char **argv);

#endif
