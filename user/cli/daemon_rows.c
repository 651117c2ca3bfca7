// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/daemon_rows.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/grow.h"
#include "cli/commands.h"

int daemon_rows__read_pid(void *member, const char *value, char *why, size_t why_size)
{
	struct pid_list *pids = member;
	char *end;
	long pid = strtol(value, &end, 10);

	if (end == value || *end || pid <= 0 || pid > INT_MAX)
		return -EINVAL;
	if (grow(&pids->items, &pids->room, pids->count + 1, sizeof(*pids->items))) {
		snprintf(why, why_size, "out of memory");
		return -ENOMEM;
	}
	pids->items[pids->count++] = (pid_t)pid;
	return 0;
}

bool daemon_rows__write_pid(const void *member, size_t n, char *text, size_t size)
{
	const struct pid_list *pids = member;

	if (n < pids->count)
		snprintf(text, size, "%d", pids->items[n]);
	return n < pids->count;
}

static const struct option_row rows[] = {DAEMON_ROWS(OPTION_USUAL)};

const struct command vaprod_command = {
    .name = "vaprod",
    .program = "vaprod",
    .summary = "watch the parallel programs that run on this node",
    .synopsis = "[option]...",
    .about =
	"Watches running parallel programs of this node and says when, where and why they are slow. Without a "
	"selection: every process that maps an MPI library, running now or started later.\n"
	"On a terminal it says in sentences what happens, and ends with a summary; elsewhere, and with --json, it "
	"writes NDJSON.\n"
	"Needs root. SIGINT and SIGTERM end it with a last window; SIGHUP opens the file of --output again.\n"
	"Exit codes: 0 good, 1 failure, 2 usage, 3 kernel or privileges do not allow it; with --fail-on: 4 alarms, "
	"5 nothing was watched, 6 nothing could be evaluated.",
    .examples = "vaprod --output run.ndjson\tall MPI programs of this node, until ^C; then: vapro view run.ndjson\n"
		"vaprod --pid 4711 --pid 4712 --duration 5m --output run.ndjson\ttwo processes, for five minutes\n"
		"vaprod --exe 'lmp*' --capture run.capture\tall processes of LAMMPS; then: vapro analyze run.capture",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .tunables = true,
    .config = offsetof(struct command_line, daemon.config),
    .prepare = command_line__prepare,
};
