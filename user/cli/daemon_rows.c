// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/daemon_rows.h"

#include "cli/commands.h"

static const struct option_row rows[] = {DAEMON_ROWS(PID_HELP, EXE_HELP, DURATION_HELP, DRY_RUN_HELP, COMPLETION_HELP)};

const struct command vaprod_command = {
    .name = "vaprod",
    .program = "vaprod",
    .summary = "watch the parallel programs that run on this node",
    .synopsis = "[option]...",
    .about =
	"Watches running parallel programs of this node and says when, where and why they are slow. Without a "
	"selection: every process that maps libmpi, running now or started later.\n"
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
};
