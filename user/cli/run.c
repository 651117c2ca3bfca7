// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "cli/daemon_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/terminal.h"
#include "cli/command_line.h"
#include "daemon/daemon.h"
#include "daemon/privileges.h"
#include "query/client.h"
#include "report/narrator.h"

/* `vapro run` has a selection and an end of its own. */
static const struct option_row rows[] = {DAEMON_ROWS(OPTION_HIDDEN)};

static int run__main(int argc, char **argv);

const struct command run_command = {
    .name = "run",
    .program = "vapro run",
    .summary = "run a command (mpirun ...), watch it, end with a summary",
    .synopsis = "[option]... -- COMMAND [ARGUMENT]...",
    .about = "Runs the command (normally mpirun ...) unchanged, watches what it starts (MPI processes, programs with "
	     "OpenMP or threads of their own), and ends with a summary on standard error: what was slow, when, on "
	     "which ranks, why, and who interfered. Needs root: without it the "
	     "command runs as it is, and the node's vaprod, where one runs, watches it.\n"
	     "The exit code is the command's. Its options are those of vaprod but for --pid, --exe, --duration and "
	     "--dry-run; --output keeps the NDJSON lines, for `vapro view`.",
    .examples = "vapro run -- mpirun -n 64 ./solver\twatch a job\n"
		"vapro run --output run.ndjson -- mpirun -n 64 ./solver\tkeep the records; then: vapro view run.ndjson",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(*rows),
    .tunables = true,
    .config = offsetof(struct command_line, daemon.config),
    .operands = offsetof(struct command_line, operands),
    .ends_at_operand = true,
    .like = &vaprod_command,
    .prepare = command_line__prepare,
    .main = run__main,
};

static volatile sig_atomic_t stop;
static pid_t command_pid;

/* Only the command's end stops the run: other children (calibration's) end too. The command stays a zombie. */
static void on_child(int number)
{
	siginfo_t info = {.si_pid = 0};
	int error = errno;

	if (number == SIGTERM && command_pid > 0)
		kill(command_pid, SIGTERM); /* the command's end then stops the run */
	else if (!waitid(P_PID, (id_t)command_pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid)
		stop = 1;
	errno = error;
}

/* Forks the command, held back until the daemon is ready. Returns its pid, or -errno. */
static pid_t start(char *const *command, int *gate)
{
	int ends[2];
	pid_t pid;
	char go;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0) {
		pid = -errno;
		close(ends[0]);
		close(ends[1]);
		return pid;
	}
	if (pid) {
		close(ends[0]);
		*gate = ends[1];
		return pid;
	}
	close(ends[1]);
	signal(SIGINT, SIG_DFL);
	if (read(ends[0], &go, 1) != 1)
		_exit(EXIT_FAILED); /* the daemon could not start, so the command does not */
	execvp(command[0], command);
	fprintf(stderr, "vapro run: cannot run %s: %s\n", command[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Returns 0 where execvp() would find the command, else its errno. */
static int find(const char *command)
{
	const char *path = getenv("PATH");
	int error = ENOENT;

	if (!path || strchr(command, '/'))
		return !path || !access(command, X_OK) ? 0 : errno;
	while (path && *path && error) {
		size_t length = strcspn(path, ":");
		char file[PATH_MAX];

		snprintf(file, sizeof(file), "%.*s/%s", length ? (int)length : 1, length ? path : ".", command);
		if (!access(file, X_OK))
			error = 0;
		else if (errno == EACCES)
			error = EACCES;
		path += length + (path[length] == ':');
	}
	return error;
}

static void open_gate(void *ctx)
{
	int gate = *(int *)ctx;

	if (write(gate, "g", 1) != 1)
		stop = 1;
}

static int code_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Parses the command line; *rest: the command, with a NULL. Returns 0, COMMAND_DONE or the exit code of an error. */
static int parse(struct command_line *line, int argc, char **argv, char ***rest)
{
	int status = command_line__parse(line, &run_command, argc, argv), error;

	if (status)
		return status;
	if (line->pids.count || line->globs.count || line->daemon.duration_s > 0 || line->daemon.dry_run)
		return command__fail(&run_command, EXIT_USAGE,
				     "watches its command; --pid, --exe, --duration and --dry-run are vaprod's");
	if (!line->operands.count)
		return command__fail(&run_command, EXIT_USAGE,
				     "a command is needed: vapro run [options] -- mpirun ...");
	*rest = argv + argc - line->operands.count; /* all behind the options */
	error = find((*rest)[0]);
	if (!error)
		return 0;
	fprintf(stderr, "vapro run: cannot run %s: %s\n", (*rest)[0], strerror(error));
	return error == ENOENT ? 127 : 126;
}

/*
 * Runs the command as it is, without root, since the node's vaprod watches it. Returns the command's exit code.
 */
static int run_watched(char *const *command, const char *socket)
{
	int ended = 0;
	pid_t pid;

	fprintf(
	    stderr,
	    "vapro run: without root the command runs as it is, and the vaprod of this node (%s) watches it: `vapro "
	    "top` and `vapro report` show it while it runs. The options of `vapro run` have no effect.\n",
	    socket);
	signal(SIGINT, SIG_IGN); /* the command's end is this one's */
	pid = fork();
	if (!pid) {
		signal(SIGINT, SIG_DFL);
		execvp(command[0], command);
		fprintf(stderr, "vapro run: cannot run %s: %s\n", command[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	if (pid < 0) {
		fprintf(stderr, "vapro run: cannot start %s: %s\n", command[0], strerror(errno));
		return EXIT_FAILED;
	}
	while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
		;
	fputs("vapro run: the command has ended; `vapro jobs` lists the report that it leaves some 10 s later, where "
	      "this node's vaprod leaves reports\n",
	      stderr);
	return code_of(ended);
}

/* Without the privileges to watch: the node's vaprod does it, where one runs. Returns an exit code; -1: there are all.
 */
static int run_without_privileges(char *const *command, const char *where)
{
	struct query_found found;
	char missing[256], err[512];
	int error;

	if (!geteuid() || !privileges__name_missing(privileges__held(), missing, sizeof(missing)))
		return -1;
	error = query_client__find(where, true, &found, err, sizeof(err));
	if (!error || error == -EEXIST)
		return run_watched(command, error ? "there are several" : found.path);
	fprintf(stderr,
		"vapro run: missing privileges (%s): run it as root; `vapro check` shows what each is needed for. On a "
		"node on which vaprod runs as a service this needs no root: none runs here\n",
		missing);
	return EXIT_REFUSED;
}

static int run__main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
	struct command_line line = {.daemon = {.sentences = -1, .stop = &stop}};
	struct daemon_options *options = &line.daemon;
	char **rest = NULL;
	int status, gate = -1, ended = 0;
	pid_t pid;

	status = parse(&line, argc, argv, &rest);
	if (status) {
		status = status == COMMAND_DONE ? EXIT_OK : status;
		goto out;
	}
	status = run_without_privileges(rest, *options->config.socket ? options->config.socket : VAPRO_SOCKET);
	if (status >= 0)
		goto out;
	options->summary = summary__new();
	signal(SIGINT, SIG_IGN); /* the terminal sends SIGINT to the command as well, whose end stops the run */
	signal(SIGPIPE, SIG_IGN);
	pid = options->summary ? start(rest, &gate) : -ENOMEM;
	if (pid < 0) {
		fprintf(stderr, "vapro run: cannot start %s: %s\n", rest[0], strerror(-(int)pid));
		status = EXIT_FAILED;
		goto out;
	}
	command_pid = pid;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGCHLD, &action, NULL);
	on_child(SIGCHLD); /* the command may have ended already */
	options->selection.ancestor = pid;
	/* the command writes to the same terminal: a line of progress would be torn, whole sentences are not */
	options->width = terminal__width(STDERR_FILENO);
	if (log__prints(LOG_LEVEL_INFO))
		options->sentences = narrator__terminal(STDERR_FILENO);
	options->ready = open_gate;
	options->ready_ctx = &gate;
	status = daemon__run(options);
	close(gate);
	if (options->sentences >= 0)
		close(options->sentences);
	while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
		;
	if (status && WIFEXITED(ended) && WEXITSTATUS(ended) == EXIT_FAILED)
		goto out; /* the gate never opened */
	fputc('\n', stderr);
	summary__print(options->summary, stderr,
		       &(struct summary_options){.width = options->width, .command = rest[0]});
	status = code_of(ended) ? code_of(ended) : status;
out:
	summary__free(options->summary);
	command_line__free(&line);
	return status;
}
