// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "cli/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/privileges.h"
#include "probe/pmu/counters.h"
#include "target/finder.h"
#include "target/kernel_range.h"

static int problems;

static void row(const char *what, const char *state, const char *detail)
{
	printf("  %-22s %-8s %s\n", what, state, detail);
}

/* Prints "0.4 us more after 50 us without a hit, 1.3 after 200 us, ...". */
static void print_pauses(const struct costs *costs)
{
	char text[256];
	int used = 0;

	for (int i = 0; i < KERNEL_PAUSES; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%.1f%s after %g us%s", i ? ", " : "",
				 costs->pause_ns[0][i] * 1e-3, i ? "" : " us more",
				 KERNEL_PAUSE_NS * 1e-3 * (1 << 2 * i), i ? "" : " without a hit");
	row("cost after pauses", "", text);
}

static void need(const char *what, bool there, const char *detail)
{
	row(what, there ? "yes" : "MISSING", detail);
	problems += !there;
}

/* Checks capabilities even for root, which may lack some under a service manager or in a container. */
static void check_capabilities(void)
{
	uint64_t held = privileges__held();

	for (size_t i = 0; i < privilege_count; i++) {
		if (!privilege__missing(&privileges[i], held))
			continue;
		if (privileges[i].required)
			need(privileges[i].name, false, privileges[i].consequence);
		else
			row(privileges[i].name, "no", privileges[i].consequence);
	}
}

static void check_kernel(void)
{
	struct utsname kernel;
	char text[256];

	uname(&kernel);
	row("kernel", "", kernel.release);
	need("BTF", !access("/sys/kernel/btf/vmlinux", R_OK),
	     "/sys/kernel/btf/vmlinux: types of the running kernel (CONFIG_DEBUG_INFO_BTF)");
	need("privileges", geteuid() == 0, geteuid() == 0 ? "root" : "not root: run it as root");
	if (geteuid() == 0)
		check_capabilities();
	for (size_t i = 0; i < kernel_range_count; i++) {
		if (!kernel_range__holds(&kernel_ranges[i], kernel.release))
			continue;
		snprintf(text, sizeof(text), "%s; %s", kernel_ranges[i].what, kernel_ranges[i].consequence);
		row("known trouble", "note", text);
	}
}

static void print_fact(const char *what, enum fact fact, const char *yes, const char *no)
{
	row(what,
	    fact == FACT_YES  ? "yes"
	    : fact == FACT_NO ? "no"
			      : "unknown",
	    fact == FACT_YES  ? yes
	    : fact == FACT_NO ? no
			      : "");
}

/* Prints every attach mode, the one in use and its fallbacks too. */
static void check_ladder(void)
{
	static const char *const what[RUNGS] = {
	    [RUNG_SESSION] = "entry and return in one link (kernel 6.13)",
	    [RUNG_MULTI] = "a link for entries, one for returns (kernel 6.6)",
	    [RUNG_PERF] = "a link per function, slow to take out: the common functions only (kernel 5.15)"};
	char reason[160], name[64];

	for (enum ladder_rung rung = 0; rung < RUNGS; rung++) {
		bool works = !ladder__try(rung, reason, sizeof(reason));

		snprintf(name, sizeof(name), "attach by %s", ladder_rung_name[rung]);
		row(name, works ? "yes" : "no", works ? what[rung] : reason);
	}
}

/*
 * Loads and attaches for real: what works here is available, whatever the version says. Counters that
 * the kernel rejects are given up.
 */
static void check_probes(struct counters *counters)
{
	struct vapro_config config;
	struct kernel_side *side;
	struct costs costs;
	char err[512], text[256];
	int status;

	config__init(&config);
	check_ladder();
	side = kernel_side__load(&config, counters, err, sizeof(err), &status);
	if (side)
		snprintf(text, sizeof(text), "loads, verified; attaches by %s",
			 ladder_rung_name[kernel_side__rung(side)]);
	need("BPF object", side != NULL, side ? text : err);
	if (!side)
		return;
	status = calibrate__run(side, true, &costs, err, sizeof(err));
	need("probes", !status, status ? err : "fire in a process of our own");
	print_fact("returns by system call", kernel_side__facts(side)->return_syscall,
		   "seccomp filters may stop them, see known trouble", "seccomp filters do not see them");
	print_fact("filter by thread", kernel_side__facts(side)->thread_filter,
		   "of a process watched beside others of its image only the main thread is seen",
		   "a link for one process sees all its threads");
	if (!status) {
		snprintf(text, sizeof(text), "%.2f us entry and return, %.2f us entry alone, %.2f us single-stepped",
			 costs.call_ns * 1e-3, costs.entry_ns * 1e-3, costs.stepped_call_ns * 1e-3);
		row("cost of a probe", "", text);
		print_pauses(&costs);
		if (costs.nop5_ns > 0) {
			snprintf(text, sizeof(text), "%.2f us entry alone%s", costs.nop5_ns * 1e-3,
				 kernel_side__facts(side)->nop5_syscall == FACT_YES ? ", by system call" : "");
			row("cost at a nop5", "", text);
		}
		snprintf(text, sizeof(text),
			 "%.0f ns traced; %.0f ns on every system call of others while IO is traced", costs.syscall_ns,
			 costs.bystander_ns);
		row("cost of IO tracing", "", text);
		snprintf(text, sizeof(text), "%.0f calls/s per process fit into 1 %%", 1e7 / costs.call_ns);
		row("budget", "", text);
	}
	status = kernel_side__watch_tasks(side, err, sizeof(err));
	need("scheduler events", !status, status ? err : "switch, wakeup, exec and exit (tp_btf)");
	kernel_side__free(side);
}

static void check_counters(const struct counters *counters)
{
	const struct counter_line *lines;
	size_t count = 0;
	char text[400];

	if (!counters)
		return;
	lines = counters__lines(counters, &count);
	if (counters__count(counters))
		snprintf(text, sizeof(text),
			 "equal work is recognised by executed instructions (workload_source: instructions)");
	else
		snprintf(text, sizeof(text), "%s: workload is assumed from call arguments (workload_source: arguments)",
			 counters__reason(counters));
	row("instruction counter", counters__count(counters) ? "yes" : "no", text);
	for (size_t i = 0; i < count; i++)
		if (strcmp(lines[i].name, "instructions"))
			row(lines[i].name, lines[i].available ? "yes" : "no", lines[i].reason);
}

static void check_finder(void)
{
	char err[256];
	struct finder *finder = finder__new(err, sizeof(err));

	row("mappings as made", finder ? "yes" : "no", finder ? "an MPI that is opened late is found" : err);
	finder__free(finder);
}

static void check_libraries(void)
{
	FILE *cache = popen("/sbin/ldconfig -p 2>/dev/null", "r");
	char line[512];
	bool some = false;

	while (cache && fgets(line, sizeof(line), cache)) {
		char *name = line + strspn(line, " \t"), *path = strstr(line, "=> ");

		if (strncmp(name, "libmpi.so", 9) || !path)
			continue;
		path[strcspn(path, "\n")] = '\0';
		row("MPI library", "", path + 3);
		some = true;
	}
	if (cache)
		pclose(cache);
	if (!some)
		row("MPI library", "none", "in the linker's cache; programs may bring their own");
}

enum { ROW_COUNTERS = 1, ROW_CONFIG };

static const struct option_row rows[] = {
    {"counters", NULL,
     "only what can be counted: opens the events of every stage, says what fits and what does not and why, and counts "
     "a known loop; exit code 0 where instructions can be counted, else 3",
     ROW_COUNTERS, 0},
    {"config", "FILE", "with the events of this configuration file, not of those of the site", ROW_CONFIG, 'c'},
    OPTIONS_HELP_ROW,
};

static int check__main(int argc, char **argv);

const struct command check_command = {
    .name = "check",
    .program = "vapro check",
    .summary = "say what this machine can do, what is missing and why",
    .synopsis = "[option]...",
    .about = "Says what this machine can do, what is missing and why. Exit code 0 where vaprod can run here, 3 where "
	     "kernel or privileges do not allow it.",
    .examples = "vapro check\twhether vaprod can run here\nvapro check --counters\twhich events can be counted",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .main = check__main,
};

static int check__main(int argc, char **argv)
{
	struct options options = command__options(&check_command, argc, argv);
	struct vapro_config config;
	struct counters *all;
	const char *file = NULL;
	bool counters = false;
	char err[512];
	int id;

	config__init(&config);
	while ((id = options__next(&options)) != OPTIONS_END) {
		if (id == OPTIONS_HELP)
			return command__help(&check_command, options.value, stdout);
		if (id == ROW_COUNTERS) {
			counters = true;
		} else if (id == ROW_CONFIG) {
			file = options.value;
		} else {
			if (id == OPTIONS_OPERAND)
				fprintf(stderr, "vapro check: unknown argument '%s'; --help lists the options\n",
					options.value);
			return EXIT_USAGE;
		}
	}
	if (settings__read(&config, file, "", &settings_of_vaprod, NULL, err, sizeof(err))) {
		fprintf(stderr, "vapro check: %s\n", err);
		return EXIT_USAGE;
	}
	problems = 0;
	if (counters)
		return counters__report(&config, stdout) ? EXIT_OK : EXIT_REFUSED;
	puts("What vapro needs");
	check_kernel();
	all = counters__new(&config);
	check_probes(all);
	puts("What makes it better");
	check_counters(all);
	counters__free(all);
	check_finder();
	check_libraries();
	puts(problems ? "\nvaprod cannot run here: see what is MISSING above." : "\nvaprod can run here.");
	return problems ? EXIT_REFUSED : EXIT_OK;
}
