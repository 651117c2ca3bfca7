// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plugin for Slurm (spank(8)) with one option, --vapro=off of srun, sbatch and salloc: the job is not watched. It
 * sets VAPRO=off in the environment of the job's tasks, which vaprod honours, and does nothing else. In plugstack.conf:
 *
 *   optional /usr/local/lib/vapro/vapro_spank.so
 *
 * `make slurm` builds it where Slurm's headers are installed.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <slurm/slurm_errno.h>
#include <slurm/spank.h>

SPANK_PLUGIN(vapro, 1)

static bool is_off;

/* Takes the value of the option: on the host of the command, and on each node of the job. */
static int take_value(int value, const char *text, int remote)
{
	(void)value;
	(void)remote;
	if (!text || (strcmp(text, "off") != 0 && strcmp(text, "on") != 0)) {
		slurm_error("--vapro: on or off is expected");
		return ESPANK_BAD_ARG;
	}
	is_off = !strcmp(text, "off");
	return ESPANK_SUCCESS;
}

static struct spank_option option = {
    .name = "vapro",
    .arginfo = "on|off",
    .usage = "off: vaprod does not watch the job",
    .has_arg = 1,
    .cb = take_value,
};

int slurm_spank_init(spank_t spank, int count, char **arguments)
{
	(void)count;
	(void)arguments;
	switch (spank_context()) {
	case S_CTX_LOCAL:
	case S_CTX_ALLOCATOR:
	case S_CTX_REMOTE:
		return spank_option_register(spank, &option);
	default: /* slurmd and its scripts */
		return ESPANK_SUCCESS;
	}
}

/* Called on a node of the job, before its tasks start. */
int slurm_spank_user_init(spank_t spank, int count, char **arguments)
{
	(void)count;
	(void)arguments;
	return is_off ? spank_setenv(spank, "VAPRO", "off", 1) : ESPANK_SUCCESS;
}
