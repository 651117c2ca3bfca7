// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/governor.h"

#define RESERVE_S 1.0 /* allowance that may be saved up, in seconds of the cap */
#define SHARE 0.85    /* of the cap that is spent: reaction time and cold caches take the rest */
#define LEAST_PAUSE_NS 1e9
#define MOST_PAUSE_NS 60e9

void governor__init(struct governor *governor, double cap_pct, uint64_t seed)
{
	*governor = (struct governor){.cap = cap_pct / 100, .seed = seed | 1};
}

void governor__open_account(struct governor_account *account, uint64_t now_ns)
{
	*account = (struct governor_account){.last_ns = now_ns};
}

bool governor__charge(const struct governor *governor, struct governor_account *account, uint64_t now_ns,
		      double spent_ns)
{
	double reserve = governor->cap * RESERVE_S * 1e9;

	account->credit_ns += governor->cap * SHARE * (double)(now_ns - account->last_ns) - spent_ns;
	account->last_ns = now_ns;
	if (account->credit_ns > reserve)
		account->credit_ns = reserve;
	return governor->cap > 0 && account->credit_ns < -reserve / 4;
}

static double fraction(struct governor *governor)
{
	governor->seed ^= governor->seed << 13; /* xorshift */
	governor->seed ^= governor->seed >> 7;
	governor->seed ^= governor->seed << 17;
	return (double)(governor->seed >> 11) / 9007199254740992.0;
}

void governor__pause(struct governor *governor, uint64_t now_ns, double debt_ns)
{
	double pause = debt_ns / (governor->cap * SHARE) * (1 + 0.5 * fraction(governor));

	if (pause < LEAST_PAUSE_NS)
		pause = LEAST_PAUSE_NS * (1 + 0.5 * fraction(governor));
	if (pause > MOST_PAUSE_NS)
		pause = MOST_PAUSE_NS;
	governor->paused_until_ns = now_ns + (uint64_t)pause;
	governor->pauses++;
}

bool governor__resume(struct governor *governor, uint64_t now_ns)
{
	if (!governor->paused_until_ns || now_ns < governor->paused_until_ns)
		return false;
	governor->paused_until_ns = 0;
	return true;
}
