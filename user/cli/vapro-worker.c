// SPDX-License-Identifier: GPL-2.0-or-later
/* The worker: a command line around worker__run(). */
#include <signal.h>

#include "cli/commands.h"

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

int main(int argc, char **argv)
{
	const struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	return commands__run_worker(argc, argv, &stop);
}
