// SPDX-License-Identifier: GPL-2.0-or-later
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/check_node.h"
#include "cli/commands.h"
#include "cli/settings.h"
#include "config/option.h"
#include "daemon/daemon.h"
#include "daemon/privileges.h"
#include "node/generator.h"
#include "probe/elf/mpi_files.h"
#include "probe/pmu/counters.h"
#include "target/finder.h"
#include "target/kernel_range.h"
#include "target/machine.h"

#define CHECK_DISK_PATH 512

/* The files that the configuration names; "" where it names none. */
struct check_disk {
	char output[CHECK_DISK_PATH], capture[CHECK_DISK_PATH];
};

#define GIB (1024.0 * 1024 * 1024)
#define LITTLE_GIB 1 /* a job of some hundred ranks and some hours writes so much */

/* Remembers a setting if it is such a file: `set` of struct config_others, ctx is a struct check_disk. */
static int set_disk_check(void *ctx, const struct option_row *row, const char *value, const char *prefix, char *err,
			  size_t err_size)
{
	struct check_disk *disk = ctx;

	(void)prefix;
	(void)err;
	(void)err_size;
	if (!strcmp(row->name, "output") && strcmp(value, "-") != 0) /* - is standard output */
		snprintf(disk->output, sizeof(disk->output), "%s", value);
	else if (!strcmp(row->name, "capture"))
		snprintf(disk->capture, sizeof(disk->capture), "%s", value);
	return 0;
}

/*
 * Writes how much is free in the folder of a file, "" for the current folder; or why that is unknown. Returns whether
 * it is known and more than little.
 */
static bool room(const char *file, char *text, size_t size)
{
	const char *slash = strrchr(file, '/');
	char folder[CHECK_DISK_PATH] = ".";
	struct statvfs disk;
	double free_gib;

	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - file) + 1, file);
	if (statvfs(folder, &disk)) {
		snprintf(text, size, "%s: %s", folder, strerror(errno));
		return false;
	}
	free_gib = (double)disk.f_bavail * (double)disk.f_frsize / GIB;
	snprintf(text, size, "%.1f GiB free %s%s%s", free_gib, *file ? "for " : "in the current folder", file,
		 free_gib < LITTLE_GIB ? ": little for the records and captures of a long run" : "");
	return free_gib >= LITTLE_GIB;
}

/* What is printed, as text at once or as one JSON object at the end. */
static struct {
	cJSON *json;	     /* NULL: text */
	const char *section; /* key of the section in JSON */
	int problems;
	bool failed; /* out of memory for JSON */
} report;

static void section(const char *key, const char *title)
{
	report.section = key;
	if (!report.json)
		puts(title);
}

static void row(const char *what, const char *state, const char *detail)
{
	cJSON *rows, *item;

	if (!report.json) {
		printf("  %-22s %-8s %s\n", what, state, detail);
		return;
	}
	rows = cJSON_GetObjectItemCaseSensitive(report.json, report.section);
	if (!rows)
		rows = cJSON_AddArrayToObject(report.json, report.section);
	item = rows ? cJSON_CreateObject() : NULL;
	if (item && cJSON_AddItemToArray(rows, item) && cJSON_AddStringToObject(item, "name", what) &&
	    cJSON_AddStringToObject(item, "state", *state ? state : "note") &&
	    cJSON_AddStringToObject(item, "detail", detail))
		return;
	report.failed = true;
}

/* Prints "0.4 us more after 50 us without a hit, 1.3 after 200 us, ...", and what it depends on. */
static void print_pauses(const struct costs *costs)
{
	char text[640];
	int used = 0;

	for (int i = 0; i < KERNEL_PAUSES; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%.1f%s after %g us%s", i ? ", " : "",
				 costs->pause_ns[0][i] * 1e-3, i ? "" : " us more", KERNEL_PAUSE_NS * 1e-3 * (1 << i),
				 i ? "" : " without a hit");
	snprintf(text + used, sizeof(text) - (size_t)used, "; less in a program that uses little memory");
	row("cost after pauses", "", text);
}

static void need(const char *what, bool there, const char *detail)
{
	row(what, there ? "yes" : "MISSING", detail);
	report.problems += !there;
}

/* Adds a capability to the JSON object. */
static void add_capability(const struct privilege *privilege, bool missing, bool needed)
{
	cJSON *all = cJSON_GetObjectItemCaseSensitive(report.json, "capabilities"), *item;

	if (!all)
		all = cJSON_AddArrayToObject(report.json, "capabilities");
	item = all ? cJSON_CreateObject() : NULL;
	if (item && cJSON_AddItemToArray(all, item) && cJSON_AddStringToObject(item, "name", privilege->name) &&
	    cJSON_AddBoolToObject(item, "missing", missing) && cJSON_AddBoolToObject(item, "needed_here", needed) &&
	    cJSON_AddBoolToObject(item, "required", privilege->required) &&
	    cJSON_AddStringToObject(item, "without_it", privilege->consequence))
		return;
	report.failed = true;
}

/* Checks capabilities even for root, which may lack some under a service manager or in a container. */
static void check_capabilities(void)
{
	uint64_t held = privileges__held();
	char text[320], names[320] = "";
	bool all = true;

	for (size_t i = 0; i < privilege_count; i++) {
		bool missing = privileges__missing(&privileges[i], held, NULL);

		bool needed = privileges__missing(&privileges[i], 0, NULL);

		if (report.json)
			add_capability(&privileges[i], missing, needed);
		if (needed)
			snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", *names ? ", " : "",
				 privileges[i].name);
		if (!missing)
			continue;
		all = false;
		snprintf(text, sizeof(text), "without it %s", privileges[i].consequence);
		if (privileges[i].required)
			need(privileges[i].name, false, text);
		else
			row(privileges[i].name, "no", text);
	}
	if (all)
		row("capabilities", "yes", names);
}

static void check_lockdown(const struct machine *machine)
{
	if (machine__locked(machine))
		need("lockdown", false,
		     "confidentiality: BPF may not read kernel memory, so that no probe works; boot with "
		     "lockdown=integrity or none, or without Secure Boot");
	else if (*machine->lockdown)
		row("lockdown", strcmp(machine->lockdown, "none") ? "yes" : "no",
		    strcmp(machine->lockdown, "none") ? "integrity: vapro only reads, which this mode permits"
						      : "the kernel is not locked down");
	else
		row("lockdown", "no", "this kernel has none, or securityfs is not mounted");
}

/* Prints a setting of the kernel, and what it means to vaprod. */
static void check_setting(const char *what, int value, const char *meaning)
{
	char state[16];

	snprintf(state, sizeof(state), "%d", value);
	row(what, value == MACHINE_UNKNOWN ? "none" : state,
	    value == MACHINE_UNKNOWN ? "this kernel has no such setting" : meaning);
}

static void check_security(const struct machine *machine)
{
	static const char *const seccomp[] = {"no filter on this process", "strict: most system calls end this process",
					      "a filter, as of a container: refused bpf(2) looks like no capability"};
	static const char *const cgroups[] = {"no hierarchy is mounted: quotas of CPU time are not named",
					      "version 1: quotas are read from cpu.cfs_quota_us", "version 2"};

	check_lockdown(machine);
	check_setting("perf_event_paranoid", machine->perf_event_paranoid,
		      "it restricts only processes without CAP_PERFMON");
	check_setting("ptrace_scope", machine->ptrace_scope,
		      "it restricts debuggers; vapro reads /proc of others by CAP_SYS_PTRACE");
	check_setting("unprivileged BPF", machine->unprivileged_bpf_disabled,
		      "unprivileged_bpf_disabled; it restricts only processes without CAP_BPF");
	if (machine->seccomp >= 0 && machine->seccomp <= 2)
		row("seccomp", machine->seccomp ? "yes" : "no", seccomp[machine->seccomp]);
	row("cgroup", machine->cgroup ? "yes" : "no", cgroups[machine->cgroup]);
}

static void check_kernel(void)
{
	struct machine machine;
	struct utsname kernel;
	char text[320];

	uname(&kernel);
	machine__read(&machine, "");
	row("kernel", "", kernel.release);
	need("BTF", machine.btf,
	     machine.btf ? "/sys/kernel/btf/vmlinux: types of the running kernel"
			 : "/sys/kernel/btf/vmlinux is not there: a kernel with CONFIG_DEBUG_INFO_BTF=y is needed");
	snprintf(text, sizeof(text), "uid %u: run it as root, as in `sudo vapro check`", geteuid());
	need("root", geteuid() == 0, geteuid() == 0 ? "" : text);
	check_capabilities();
	check_security(&machine);
	for (size_t i = 0; i < kernel_range_count; i++) {
		if (!kernel_range__holds(&kernel_ranges[i], kernel.release))
			continue;
		snprintf(text, sizeof(text), "%s; %s", kernel_ranges[i].what, kernel_ranges[i].consequence);
		row("known kernel fault", "note", text);
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
static void check_modes(void)
{
	static const char *const what[ATTACH_MODES] = {
	    [ATTACH_MODE_SESSION] = "entry and return in one link (kernel 6.13)",
	    [ATTACH_MODE_MULTI] = "a link for entries, one for returns (kernel 6.6)",
	    [ATTACH_MODE_PERF] = "a link per function, slow to take out: the common functions only (kernel 5.15)"};
	char reason[160], name[64];

	for (enum attach_mode mode = 0; mode < ATTACH_MODES; mode++) {
		bool works = !modes__try(mode, reason, sizeof(reason));

		snprintf(name, sizeof(name), "attach by %s", attach_mode_name[mode]);
		row(name, works ? "yes" : "no", works ? what[mode] : reason);
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
	check_modes();
	side = kernel_side__load(&config, counters, err, sizeof(err), &status);
	if (side)
		snprintf(text, sizeof(text), "loads, verified; attaches by %s",
			 attach_mode_name[kernel_side__mode(side)]);
	err[side ? 0 : strcspn(err, ";")] = '\0'; /* what follows names this command */
	need("BPF object", side != NULL, side ? text : err);
	if (!side)
		return;
	status = calibrate__run(side, true, &costs, err, sizeof(err));
	need("probes", !status, status ? err : "fire in a process of our own");
	print_fact("returns by system call", kernel_side__facts(side)->return_syscall,
		   "seccomp filters may stop them, see the known kernel faults", "seccomp filters do not see them");
	print_fact("filter by thread", kernel_side__facts(side)->thread_filter,
		   "of a process watched beside others of its image only the main thread is seen",
		   "a link for one process sees all its threads");
	if (!status) {
		snprintf(text, sizeof(text),
			 "%.2f us entry and return, %.2f us entry alone; %.2f us where the kernel cannot emulate the "
			 "instruction",
			 costs.call_ns * 1e-3, costs.entry_ns * 1e-3, costs.stepped_call_ns * 1e-3);
		row("cost of a probe", "", text);
		print_pauses(&costs);
		if (costs.nop5_ns > 0) {
			snprintf(text, sizeof(text), "%.2f us entry alone%s", costs.nop5_ns * 1e-3,
				 kernel_side__facts(side)->nop5_syscall == FACT_YES ? ", by system call" : "");
			row("cost at a 5-byte nop", "", text);
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

#define LIBRARIES_MOST 64

/* MPI libraries of the linker's cache, whatever their names: recognised by what they define, as by vaprod. */
static void check_libraries(void)
{
	static const char *const kinds[] = {
	    [PROCESS_OPEN_MPI] = "Open MPI", [PROCESS_MPICH] = "MPICH", [PROCESS_STANDARD_ABI] = "the standard ABI"};
	FILE *cache = popen("/sbin/ldconfig -p 2>/dev/null", "r");
	char line[512], text[640], *seen[LIBRARIES_MOST];
	size_t count = 0, found = 0;

	/* several names of one library are links to it */
	while (cache && count < LIBRARIES_MOST && fgets(line, sizeof(line), cache)) {
		char *path = strstr(line, "=> "), *real;
		enum process_mpi mpi;
		bool again = false;

		if (!path)
			continue;
		path += strlen("=> ");
		path[strcspn(path, "\n")] = '\0';
		real = mpi_files__suggests(path) ? realpath(path, NULL) : NULL;
		for (size_t i = 0; real && i < count; i++)
			again |= !strcmp(seen[i], real);
		if (!real || again) {
			free(real);
			continue;
		}
		seen[count++] = real;
		mpi = mpi_files__of(real);
		if (mpi == PROCESS_NO_MPI)
			continue;
		found++;
		snprintf(text, sizeof(text), "%s (%s)", path, kinds[mpi]);
		row("MPI library", "", text);
	}
	if (cache)
		pclose(cache);
	if (!found)
		row("MPI library", "none", "in the linker's cache; programs may bring their own");
	while (count)
		free(seen[--count]);
}

static void check_disk(const struct check_disk *disk)
{
	const char *files[] = {disk->output, disk->capture};
	char text[CHECK_DISK_PATH + 160];
	bool named = false;

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		if (!*files[i])
			continue;
		named = true;
		row("disk space", room(files[i], text, sizeof(text)) ? "yes" : "no", text);
	}
	if (!named)
		row("disk space", room("", text, sizeof(text)) ? "yes" : "no", text);
}

struct choice {
	bool counters, node, json;
	const char *config;
	struct check_node of_node;
};

/* clang-format off */
static const struct option_row rows[] = {
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, counters), .name = "counters",
     .help = "only what can be counted: opens the events of every stage, says what fits and what does not and why, and "
	     "counts a known loop; exit code 0 where instructions can be counted, else 3"},
    {.type = OPTION_STRING, OPTION_AT(struct choice, config), .name = "config", .letter = 'c', .value = "FILE",
     .help = "with the events of this configuration file, not of those of the site"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, json), .name = "json",
     .help = "one JSON object, for programs: can_run, capabilities, and the rows of the text; with --node its verdict, "
	     "kernels and records of variability"},
    OPTION_HEADING_ROW("Of the node"),
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, node), .name = "node",
     .help = "whether CPUs of this node are slow: runs five kernels on all CPUs that this process may use; exit code 0 "
	     "good, 4 slow CPUs or wrong results, 7 slower than the profile, 6 undecided, 3 where ranks run"},
    {.type = OPTION_SECONDS, OPTION_AT(struct choice, of_node.seconds), .name = "seconds", .min = GENERATOR_LEAST_S,
     .max = GENERATOR_MOST_S, .help = "how long the kernels run (10)"},
    {.type = OPTION_STRING, OPTION_AT(struct choice, of_node.store), .name = "store", .value = "FILE",
     .help = "make this check the profile of this node, or of nodes of its class"},
    {.type = OPTION_STRING, OPTION_AT(struct choice, of_node.profile), .name = "profile", .value = "FILE",
     .help = "compare with the profile that --store wrote on this node or on one of its class"},
    {.type = OPTION_SWITCH, OPTION_AT(struct choice, of_node.force), .name = "force",
     .help = "run the kernels also while processes of MPI run"},
    OPTIONS_HELP_ROW,
};
/* clang-format on */

static int check__main(int argc, char **argv);

const struct command check_command = {
    .name = "check",
    .program = "vapro check",
    .summary = "say what this machine can do, what is missing and why",
    .synopsis = "[option]...",
    .about =
	"Says what this machine can do, what is missing and why. Exit code 0 where vaprod can run here, 3 where "
	"kernel or privileges do not allow it. With --node it says whether CPUs of this node are slow, which needs no "
	"privileges.",
    .examples = "vapro check\twhether vaprod can run here\nvapro check --counters\twhich events can be counted\n"
		"vapro check --node\twhether CPUs of this node are slow, for a prolog or a health check\n"
		"vapro check --node --store node.profile\tthe same, and remember it\n"
		"vapro check --node --profile node.profile\twhether the node is slower than it was",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .main = check__main,
};

/* Prints the JSON object. Returns false when out of memory. */
static bool print_json(void)
{
	char *text = NULL;

	if (!report.failed && cJSON_AddBoolToObject(report.json, "can_run", !report.problems))
		text = cJSON_Print(report.json);
	if (text)
		puts(text);
	cJSON_free(text);
	cJSON_Delete(report.json);
	return text;
}

static int check_all(const struct vapro_config *config, const struct check_disk *disk, bool json)
{
	struct counters *all;

	if (json) {
		report.json = cJSON_CreateObject();
		report.failed = !report.json || !cJSON_AddStringToObject(report.json, "schema", "vapro-check/1");
		if (!report.json)
			return EXIT_FAILED;
	}
	section("needs", "What vapro needs");
	check_kernel();
	all = counters__new(config);
	check_probes(all);
	section("improves", "What makes it better");
	check_counters(all);
	counters__free(all);
	check_finder();
	check_libraries();
	check_disk(disk);
	if (json)
		return !print_json() ? EXIT_FAILED : report.problems ? EXIT_REFUSED : EXIT_OK;
	puts(report.problems ? "\nvaprod cannot run here: see what is MISSING above." : "\nvaprod can run here.");
	return report.problems ? EXIT_REFUSED : EXIT_OK;
}

static int check__main(int argc, char **argv)
{
	struct config_others others = settings_of_vaprod;
	struct check_disk disk = {.output = ""};
	struct choice choice = {.config = NULL};
	struct vapro_config config;
	char err[512];
	int code = command__parse(&check_command, &choice, argc, argv);

	if (code)
		return code == COMMAND_DONE ? EXIT_OK : code;
	if (choice.node && (choice.counters || choice.config))
		return command__fail(&check_command, EXIT_USAGE, "--node needs neither --counters nor --config");
	if (!choice.node &&
	    (choice.of_node.seconds > 0 || choice.of_node.store || choice.of_node.profile || choice.of_node.force))
		return command__fail(&check_command, EXIT_USAGE,
				     "--seconds, --store, --profile and --force need --node");
	if (choice.node) {
		choice.of_node.json = choice.json;
		if (!(choice.of_node.seconds > 0))
			choice.of_node.seconds = CHECK_NODE_SECONDS;
		return check_node__run(&choice.of_node);
	}
	if (choice.counters && choice.json)
		return command__fail(&check_command, EXIT_USAGE,
				     "--counters has no JSON; --json includes which counters are available");
	others.set = set_disk_check;
	others.ctx = &disk;
	config__init(&config);
	if (settings__read(&config, choice.config, "", &others, NULL, err, sizeof(err)) < 0)
		return command__fail(&check_command, EXIT_USAGE, "%s", err);
	if (choice.counters)
		return counters__report(&config, stdout) ? EXIT_OK : EXIT_REFUSED;
	return check_all(&config, &disk, choice.json);
}
