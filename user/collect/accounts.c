// SPDX-License-Identifier: GPL-2.0-or-later
#include "collect/accounts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../bpf/logic.h"
#include "base/clock.h"
#include "probe/bpf/kernel_side.h"

#define COPY_ATTEMPTS 16
#define BUSY_NS (KERNEL_BIN_NS / 10)		    /* a thread that wants a CPU for as long in a bin works */
#define SLEEP_BINS (60000000000ULL / KERNEL_BIN_NS) /* sleep is handed over for as long after work */

struct accounts {
	struct kernel_side *side;
	struct kernel_account *table;
	size_t size;
	uint64_t stolen[KERNEL_ACCOUNTS]; /* by account number: stolen time handed over so far */
	uint32_t owner[KERNEL_ACCOUNTS];  /* tid of the account */
	uint64_t busy[KERNEL_ACCOUNTS];	  /* by account number: last bin in which its thread worked; 0: none yet */
};

struct accounts *accounts__new(struct kernel_side *side)
{
	struct accounts *accounts = calloc(1, sizeof(*accounts));
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!accounts)
		return NULL;
	accounts->side = side;
	accounts->size = (sizeof(*accounts->table) * KERNEL_ACCOUNTS + page - 1) & ~(page - 1);
	accounts->table = mmap(NULL, accounts->size, PROT_READ | PROT_WRITE, MAP_SHARED,
			       kernel_side__map(accounts->side, KERNEL_MAP_ACCOUNTS), 0);
	if (accounts->table != MAP_FAILED)
		return accounts;
	accounts->table = NULL;
	accounts__free(accounts);
	return NULL;
}

void accounts__free(struct accounts *accounts)
{
	if (!accounts)
		return;
	if (accounts->table)
		munmap(accounts->table, accounts->size);
	free(accounts);
}

/* Copies an account as of one time. False where the kernel side keeps changing the account. */
static bool copy(const struct kernel_account *account, struct kernel_account *into)
{
	for (int i = 0; i < COPY_ATTEMPTS; i++) {
		uint32_t writing = __atomic_load_n(&account->writing, __ATOMIC_ACQUIRE);

		if (writing & 1)
			continue;
		*into = *account;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&account->writing, __ATOMIC_RELAXED) == writing)
			return true;
	}
	return false;
}

static bool waits(const struct kernel_account *account)
{
	return account->kind == ACCOUNT_PREEMPTED || account->kind == ACCOUNT_WAKEUP_WAIT;
}

void accounts__sum(const struct kernel_account *account, const struct kernel_account_look *look, uint64_t bin,
		   uint64_t offset_ns, uint64_t now_ns, struct vapro_account *sums)
{
	const struct kernel_account_bin *at = &account->bins[bin & (KERNEL_ACCOUNT_BINS - 1)];
	uint64_t ns[ACCOUNT_KINDS] = {0}, begin = bin * KERNEL_BIN_NS, end = begin + KERNEL_BIN_NS;
	uint64_t since = account->since_ns + offset_ns, now = now_ns + offset_ns, throttled, waited;

	for (int i = 0; at->bin == (uint32_t)bin && i < ACCOUNT_KINDS; i++)
		ns[i] = at->ns[i];
	begin = since > begin ? since : begin;
	end = now < end ? now : end; /* a run's last bins are read before their ends */
	if (account->kind != ACCOUNT_UNKNOWN && account->kind < ACCOUNT_KINDS && !account->ended_ns && begin < end) {
		waited = now - since > look->running_ns ? now - look->running_ns : since; /* the wait's end */
		waited = waited < begin ? begin : waited < end ? waited : end;
		ns[ACCOUNT_ON_CPU] += end - waited;
		end = waited;
		throttled = waits(account) && now > since && look->throttled_ns
				? account_part(look->throttled_ns, end - begin, now - since)
				: 0;
		ns[account->kind] += end - begin - throttled;
		ns[ACCOUNT_THROTTLED] += throttled;
	}
	*sums = (struct vapro_account){
	    .bin = bin,
	    .on_cpu_ns = ns[ACCOUNT_ON_CPU],
	    .preempted_ns = ns[ACCOUNT_PREEMPTED],
	    .wakeup_wait_ns = ns[ACCOUNT_WAKEUP_WAIT],
	    .throttled_ns = ns[ACCOUNT_THROTTLED],
	    .stopped_ns = ns[ACCOUNT_STOPPED],
	    .blocked_io_ns = ns[ACCOUNT_BLOCKED_IO],
	    .blocked_other_ns = ns[ACCOUNT_BLOCKED_OTHER],
	};
}

/*
 * Charges a bin with time stolen since the last reading, up to the thread's on-CPU time. The rest waits for the next
 * bin, but not longer: readings lie a little behind the ends of bins.
 */
static void take_steal(struct accounts *accounts, uint32_t number, const struct kernel_account_look *look,
		       unsigned bins_left, struct vapro_account *sums)
{
	uint64_t *given = &accounts->stolen[number], fresh = look->steal_ns > *given ? look->steal_ns - *given : 0;
	uint64_t part = fresh / bins_left;

	if (part > sums->on_cpu_ns)
		part = sums->on_cpu_ns;
	sums->steal_ns = part;
	sums->on_cpu_ns -= part;
	*given += part;
	if (fresh - part > KERNEL_BIN_NS)
		*given = look->steal_ns - KERNEL_BIN_NS;
}

bool accounts__is_needed(const struct vapro_account *sums, uint64_t *busy)
{
	uint64_t wanted_ns = sums->on_cpu_ns + sums->preempted_ns + sums->wakeup_wait_ns + sums->throttled_ns +
			     sums->stopped_ns + sums->steal_ns;

	if (wanted_ns >= BUSY_NS)
		*busy = sums->bin;
	if (wanted_ns || sums->blocked_io_ns)
		return true;
	return *busy && sums->blocked_other_ns && sums->bin <= *busy + SLEEP_BINS;
}

int accounts__read(struct accounts *accounts, uint64_t from, uint64_t last, uint64_t offset_ns, accounts_sums emit,
		   void *ctx)
{
	uint32_t given = __atomic_load_n(kernel_side__shared(accounts->side)->accounts_given, __ATOMIC_ACQUIRE);

	if (last > from + KERNEL_ACCOUNT_BINS - 1)
		from = last - (KERNEL_ACCOUNT_BINS - 1); /* older bins are overwritten */
	for (uint32_t i = 0; i < given && i < KERNEL_ACCOUNTS; i++) {
		struct kernel_account_look look = {.number = i};
		struct kernel_account account;
		struct vapro_account sums;
		uint64_t now;

		if (!__atomic_load_n(&accounts->table[i].tid, __ATOMIC_ACQUIRE))
			continue;
		now = mono_now();
		if (!copy(&accounts->table[i], &account))
			continue;
		if (accounts->owner[i] != account.tid) {
			accounts->owner[i] = account.tid;
			accounts->stolen[i] = accounts->busy[i] = 0;
		}
		look.steal_ns = account.steal_ns;
		if (account.kind == ACCOUNT_ON_CPU || waits(&account))
			kernel_side__look(accounts->side, &look);
		for (uint64_t bin = from + 1; bin <= last; bin++) {
			accounts__sum(&account, &look, bin, offset_ns, now, &sums);
			take_steal(accounts, i, &look, (unsigned)(last - bin) + 1, &sums);
			if (accounts__is_needed(&sums, &accounts->busy[i]))
				emit(ctx, account.tgid, account.tid, &sums);
		}
		if (account.ended_ns && account.ended_ns + offset_ns < (last + 1) * KERNEL_BIN_NS)
			__atomic_store_n(&accounts->table[i].tid, 0, __ATOMIC_RELEASE);
	}
	return 0;
}
