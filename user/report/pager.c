/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/pager.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

FILE *pager__open(bool wanted)
{
	const char *pager = getenv("PAGER"), *term = getenv("TERM");
	FILE *out;

	if (!wanted || !isatty(STDOUT_FILENO) || (pager && (!*pager || !strcmp(pager, "cat"))) ||
	    (term && !strcmp(term, "dumb")))
		return stdout;
	fflush(stdout);
	setenv("LESS", "FRX", 0);
	/* a shell that finds no pager must not swallow the text */
	if (!pager)
		pager = "if command -v less >/dev/null 2>&1; then exec less; else exec cat; fi";
	out = popen(pager, "we");
	if (!out)
		return stdout;
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	return out;
}

void pager__close(FILE *out)
{
	if (out == stdout)
		return;
	pclose(out);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
}
