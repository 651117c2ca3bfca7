// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/repeats.h"

#include <stdio.h>
#include <string.h>

bool repeats__note(struct repeats *repeats, const char *code, uid_t owner, pid_t pid, const char *text)
{
	struct repeat *free_one = NULL, *repeat = NULL;

	for (size_t i = 0; i < REPEATS_MOST && !repeat; i++) {
		struct repeat *at = &repeats->of[i];

		if (!at->code)
			free_one = free_one ? free_one : at;
		else if (at->owner == owner && !strcmp(at->code, code))
			repeat = at;
	}
	if (!repeat) {
		if (free_one)
			*free_one = (struct repeat){.code = code, .owner = owner, .renewed = true};
		return true;
	}
	repeat->renewed = true;
	repeat->count++;
	repeat->pid = pid;
	snprintf(repeat->text, sizeof(repeat->text), "%s", text);
	return false;
}

void repeats__end_window(struct repeats *repeats, void (*report)(void *ctx, const struct repeat *repeat), void *ctx)
{
	for (size_t i = 0; i < REPEATS_MOST; i++) {
		struct repeat *repeat = &repeats->of[i];

		if (!repeat->code)
			continue;
		if (repeat->count)
			report(ctx, repeat);
		if (!repeat->renewed)
			repeat->code = NULL;
		repeat->count = 0;
		repeat->renewed = false;
	}
}
