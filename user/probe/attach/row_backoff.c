// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/attach/row_backoff.h"

void row_backoff__refuse(struct row_backoff *backoff, uint64_t now_ns, double random)
{
	double seconds = ROW_BACKOFF_FIRST_S;

	for (unsigned int i = 0; i < backoff->level; i++)
		seconds *= 4;
	backoff->until_ns = now_ns + (uint64_t)(seconds * (1 + 0.25 * random) * 1e9);
	if (backoff->level + 1 < ROW_BACKOFF_LEVELS)
		backoff->level++;
}

bool row_backoff__is_over(const struct row_backoff *backoff, uint64_t now_ns)
{
	return backoff->until_ns && now_ns >= backoff->until_ns;
}

void row_backoff__opened(struct row_backoff *backoff)
{
	backoff->until_ns = 0;
}
