// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 4096

/* Reads a small file. Returns whether it could be read. */
static bool read_text(const char *root, const char *path, char *text)
{
	char name[512];
	size_t length;
	FILE *file;

	snprintf(name, sizeof(name), "%s%s", root, path);
	file = fopen(name, "re");
	if (!file)
		return false;
	length = fread(text, 1, TEXT_BYTES - 1, file);
	text[length] = '\0';
	fclose(file);
	return true;
}

static int read_number(const char *root, const char *path)
{
	char text[TEXT_BYTES], *end;
	long number;

	if (!read_text(root, path, text))
		return MACHINE_UNKNOWN;
	number = strtol(text, &end, 10);
	return end == text ? MACHINE_UNKNOWN : (int)number;
}

/* The mode in force stands in brackets: "none [integrity] confidentiality". */
static void read_lockdown(struct machine *machine, const char *root)
{
	char text[TEXT_BYTES], *begin, *end;

	machine->lockdown[0] = '\0';
	if (!read_text(root, "/sys/kernel/security/lockdown", text))
		return;
	begin = strchr(text, '[');
	end = begin ? strchr(begin, ']') : NULL;
	if (end)
		snprintf(machine->lockdown, sizeof(machine->lockdown), "%.*s", (int)(end - begin - 1), begin + 1);
}

static bool exists(const char *root, const char *path)
{
	char name[512];

	snprintf(name, sizeof(name), "%s%s", root, path);
	return !access(name, R_OK);
}

void machine__read(struct machine *machine, const char *root)
{
	char text[TEXT_BYTES], *line;

	read_lockdown(machine, root);
	machine->perf_event_paranoid = read_number(root, "/proc/sys/kernel/perf_event_paranoid");
	machine->ptrace_scope = read_number(root, "/proc/sys/kernel/yama/ptrace_scope");
	machine->unprivileged_bpf_disabled = read_number(root, "/proc/sys/kernel/unprivileged_bpf_disabled");
	machine->seccomp = MACHINE_UNKNOWN;
	if (read_text(root, "/proc/self/status", text)) {
		line = strstr(text, "\nSeccomp:");
		machine->seccomp = line ? atoi(line + strlen("\nSeccomp:")) : 0;
	}
	machine->btf = exists(root, "/sys/kernel/btf/vmlinux");
	machine->cgroup = exists(root, "/sys/fs/cgroup/cgroup.controllers") ? 2
			  : exists(root, "/sys/fs/cgroup/cpu")		    ? 1
									    : 0;
}

bool machine__locked(const struct machine *machine)
{
	return !strcmp(machine->lockdown, "confidentiality");
}
