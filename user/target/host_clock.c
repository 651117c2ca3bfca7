// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/host_clock.h"

#include <sys/timex.h>

struct vapro_host_clock host_clock__read(const char *host)
{
	struct timex about = {.modes = 0};
	int state = adjtimex(&about);

	return (struct vapro_host_clock){
	    .host = host,
	    .synchronised = state != -1 && state != TIME_ERROR && !(about.status & STA_UNSYNC) && about.maxerror >= 0,
	    .error_ns = state != -1 && about.maxerror > 0 ? (uint64_t)about.maxerror * 1000 : 0};
}

bool host_clock__differs(const struct vapro_host_clock *now, const struct vapro_host_clock *announced)
{
	if (now->synchronised != announced->synchronised)
		return true;
	return now->synchronised &&
	       (now->error_ns / 2 > announced->error_ns || now->error_ns < announced->error_ns / 2);
}
