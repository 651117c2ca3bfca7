/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The decisions of the kernel side as plain functions of their arguments: they compile into the BPF
 * object and, natively, into the unit tests. No helper is called here.
 */
#ifndef VAPRO_LOGIC_H
#define VAPRO_LOGIC_H

#include <vapro/kernel.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Log-linear cell of a value, 2^bits per octave: values below 2^bits have a cell each, then 2^k..2^(k+1) has 2^bits. */
static __always_inline u16 log_linear(u64 value, u32 bits)
{
	u32 octave = 0;
	u64 v = value;

	if (value >> bits == 0)
		return (u16)value;
	if (v >> 32) {
		octave += 32;
		v >>= 32;
	}
	if (v >> 16) {
		octave += 16;
		v >>= 16;
	}
	if (v >> 8) {
		octave += 8;
		v >>= 8;
	}
	if (v >> 4) {
		octave += 4;
		v >>= 4;
	}
	if (v >> 2) {
		octave += 2;
		v >>= 2;
	}
	if (v >> 1)
		octave += 1;
	return (u16)(((octave - bits + 1) << bits) + ((value >> (octave - bits)) & ((1ULL << bits) - 1)));
}

/* Of bytes and on-CPU time: same cell means within 12.5 %. */
static __always_inline u16 cell_of(u64 value)
{
	return log_linear(value, 3);
}

/* Of counted work: within 0.8 %, far less than the 5 % by which workloads are told apart. */
static __always_inline u16 work_cell_of(u64 value)
{
	return log_linear(value, 7);
}

/* The mean span of a state after one more, which weighs an eighth; saturates at 4 s. */
static __always_inline u32 span_after(u32 mean, u64 span)
{
	u32 one = span < 0xffffffffULL ? (u32)span : 0xffffffffU;

	if (!mean)
		return one;
	return one > mean ? mean + (one - mean) / 8 : mean - (mean - one) / 8;
}

/* Its octave, of KERNEL_SPANS. */
static __always_inline u32 span_octave(u64 span)
{
	u32 octave = log_linear(span >> 11, 0);

	return octave < KERNEL_SPANS ? octave : KERNEL_SPANS - 1;
}

/* How a probed entry stands to what is open on its thread (ARCHITECTURE section 3, nesting by stack pointer). */
enum nesting { NEST_OUTER, NEST_INNER, NEST_VANISHED };

/* A longjmp seldom goes further up a stack, and no two stacks that call MPI are as near. */
#define STACK_NEAR 8192

/*
 * sp: stack pointer at this entry. top: where the open call returns to as its frame has it now;
 * expected: what it must be, 0 where that is not known. The kernel put its trampoline there, or it
 * is the return address of a call whose exits are sites; anything else means that the frame is gone
 * (longjmp, exception). At the open call's own stack pointer the trampoline proves that this is its
 * tail call; a return address does not, since a call that comes again from the same place has the same.
 *
 * A slot that still holds the trampoline may be that of a living call although this entry is higher:
 * it came from a callback of the open call, on another stack (swapcontext). To hijack its return would
 * make the kernel forget the open call's, which kills the process when that returns.
 */
static __always_inline enum nesting nest(const struct kernel_thread *thread, u64 sp, u64 top, u64 expected)
{
	if (thread->open != KERNEL_CALL)
		return NEST_OUTER;
	if (!expected || thread->own_sites)
		return sp >= thread->sp || (expected && top != expected) ? NEST_VANISHED : NEST_INNER;
	if (top != expected)
		return NEST_VANISHED;
	return sp > thread->sp && sp - thread->sp < STACK_NEAR ? NEST_VANISHED : NEST_INNER;
}

/* Size of a predefined MPICH datatype; 1 for derived ones, whose handle does not tell. */
static __always_inline u64 mpich_size(u32 handle)
{
	return handle >> 30 == 1 ? (handle >> 8) & 0xff : 1;
}

static __always_inline bool mpich_sized(u32 handle)
{
	return handle >> 30 == 1;
}

/* The range that holds an address, or NULL. */
static __always_inline const struct kernel_text *range_of(const struct kernel_transparent *transparent, u64 address)
{
	for (u32 i = 0; i < KERNEL_TRANSPARENT; i++) {
		const struct kernel_text *range = &transparent->ranges[i];

		if (i < transparent->count && address >= range->begin && address < range->end)
			return range;
	}
	return 0;
}

#define FRAME_MAX (1 << 20) /* nobody's frame is larger: a register that holds something else is */

/* Whether a frame pointer can be one of the stack below which `below` lies. */
static __always_inline bool is_frame(u64 frame, u64 below)
{
	return frame >= below && frame - below < FRAME_MAX && !(frame & 7);
}

/*
 * Bytes of one operation that a shared handle stands for, as long as nothing tells which: the mean,
 * so that all of them together have what they were posted with.
 */
static __always_inline u64 request_share(u64 bytes, u32 count)
{
	return count ? bytes / count : 0;
}

/* A thread leaves the CPU. runnable: it was preempted or yielded, else it sleeps. */
static __always_inline void offcpu_begin(struct kernel_offcpu *off, u64 now, bool runnable, bool io_wait, u32 other_pid)
{
	off->out_ns = now;
	off->wake_ns = 0;
	off->runnable = runnable;
	off->io_wait = io_wait;
	off->other_pid = other_pid;
	off->queue = 0;
}

/* It is woken. Returns whether it waits for a CPU from now on. */
static __always_inline bool offcpu_wake(struct kernel_offcpu *off, u64 now)
{
	if (!off->out_ns || off->runnable || off->wake_ns)
		return false;
	off->wake_ns = now;
	return true;
}

/* The queue that it waits in, and how long that has been throttled so far. */
static __always_inline void offcpu_queue(struct kernel_offcpu *off, u64 queue, u64 throttled)
{
	off->queue = queue;
	off->throttled = throttled;
}

/* Of a wait in a queue the part in which that was throttled: it had been so for `before` ns and then for `after`. */
static __always_inline u64 throttled_part(u64 waited, u64 before, u64 after)
{
	u64 part = after > before ? after - before : 0;

	return part < waited ? part : waited;
}

/*
 * A thread gets a CPU back: its time away is parted into the suspension factors. throttled: as for
 * offcpu_queue, now. Returns the time that it was runnable, in no throttled queue, and without a CPU;
 * *preempted tells which of the two kinds that was.
 */
static __always_inline u64 offcpu_end(struct kernel_offcpu *off, struct kernel_counts *counts, u64 now, u64 throttled,
				      bool *preempted)
{
	u64 away, asleep, waited = 0, held;

	*preempted = false;
	if (!off->out_ns || now < off->out_ns)
		goto out;
	away = now - off->out_ns;
	asleep = off->runnable					     ? 0
		 : off->wake_ns > off->out_ns && off->wake_ns <= now ? off->wake_ns - off->out_ns
								     : away;
	waited = away - asleep;
	held = off->queue ? throttled_part(waited, off->throttled, throttled) : 0;
	counts->throttled_ns += held;
	waited -= held;
	if (off->runnable) {
		counts->preempted_ns += waited;
		*preempted = true;
		goto out;
	}
	counts->wakeup_wait_ns += waited;
	if (off->io_wait)
		counts->blocked_io_ns += asleep;
	else
		counts->blocked_other_ns += asleep;
out:
	off->out_ns = 0;
	off->wake_ns = 0;
	return waited;
}

static __always_inline void taken_add(struct kernel_taken *sum, const struct kernel_taken *to,
				      const struct kernel_taken *from)
{
	sum->steal += to->steal > from->steal ? to->steal - from->steal : 0;
	sum->irq += to->irq > from->irq ? to->irq - from->irq : 0;
	sum->hard_irq += to->hard_irq > from->hard_irq ? to->hard_irq - from->hard_irq : 0;
	sum->soft_irq += to->soft_irq > from->soft_irq ? to->soft_irq - from->soft_irq : 0;
	sum->slow += to->slow > from->slow ? to->slow - from->slow : 0;
}

/* A thread gets a CPU, of which so much was taken so far. */
static __always_inline void taken_in(struct kernel_thread *thread, const struct kernel_taken *now, u32 cpu)
{
	thread->taken_at = *now;
	thread->taken_cpu = cpu + 1;
}

/* It leaves it. A stay whose beginning was not seen is left out. */
static __always_inline void taken_out(struct kernel_thread *thread, const struct kernel_taken *now, u32 cpu)
{
	if (thread->taken_cpu == cpu + 1)
		taken_add(&thread->taken, now, &thread->taken_at);
	thread->taken_cpu = 0;
}

/*
 * What was taken from the running thread up to now, into its counts. Those only grow: a switch between
 * the reads of what it goes by makes this time's too small, which the next one makes up for.
 */
static __always_inline void taken_now(struct kernel_thread *thread, const struct kernel_taken *now, u32 cpu)
{
	struct kernel_taken sum = thread->taken;

	if (thread->taken_cpu == cpu + 1)
		taken_add(&sum, now, &thread->taken_at);
	else
		taken_in(thread, now, cpu);
	if (sum.steal > thread->now.steal_ns)
		thread->now.steal_ns = sum.steal;
	if (sum.irq > thread->now.irq_ns)
		thread->now.irq_ns = sum.irq;
	if (sum.hard_irq > thread->now.hard_irq_ns)
		thread->now.hard_irq_ns = sum.hard_irq;
	if (sum.soft_irq > thread->now.soft_irq_ns)
		thread->now.soft_irq_ns = sum.soft_irq;
	if (sum.slow > thread->now.slow_ns)
		thread->now.slow_ns = sum.slow;
}

static __always_inline void counts_delta(struct kernel_counts *delta, const struct kernel_counts *to,
					 const struct kernel_counts *from)
{
	delta->preempted_ns = to->preempted_ns - from->preempted_ns;
	delta->wakeup_wait_ns = to->wakeup_wait_ns - from->wakeup_wait_ns;
	delta->blocked_io_ns = to->blocked_io_ns - from->blocked_io_ns;
	delta->blocked_other_ns = to->blocked_other_ns - from->blocked_other_ns;
	delta->throttled_ns = to->throttled_ns - from->throttled_ns;
	delta->steal_ns = to->steal_ns - from->steal_ns;
	delta->irq_ns = to->irq_ns - from->irq_ns;
	delta->hard_irq_ns = to->hard_irq_ns - from->hard_irq_ns;
	delta->soft_irq_ns = to->soft_irq_ns - from->soft_irq_ns;
	delta->slow_ns = to->slow_ns - from->slow_ns;
	delta->minor_faults = to->minor_faults - from->minor_faults;
	delta->major_faults = to->major_faults - from->major_faults;
	delta->voluntary_switches = to->voluntary_switches - from->voluntary_switches;
	delta->involuntary_switches = to->involuntary_switches - from->involuntary_switches;
	delta->migrations = to->migrations - from->migrations;
}

static __always_inline void counts_add(u64 *sum, const u64 *add, const u64 *less)
{
	for (u32 i = 0; i < KERNEL_EVENTS; i++)
		sum[i] += add[i] - less[i];
}

/*
 * Whether the counters went on from one reading to another of the same stay on a CPU. Not every switch is
 * told to us, so the kernel's own number decides.
 */
static __always_inline bool reading_follows(const struct kernel_reading *reading, const struct kernel_reading *last)
{
	return reading->epoch == last->epoch && reading->enabled != last->enabled &&
	       reading->switches == last->switches;
}

/* A thread gets a CPU, whose counters show `reading`; known: they could be read. */
static __always_inline void tally_in(struct kernel_tally *tally, const struct kernel_reading *reading, bool known)
{
	tally->turns++;
	if (tally->on)
		tally->gaps++; /* it left the CPU unseen */
	tally->on = known;
	tally->last = *reading;
}

/* It leaves the CPU. */
static __always_inline void tally_out(struct kernel_tally *tally, const struct kernel_reading *reading, bool known)
{
	tally->turns++;
	if (tally->on && known && reading_follows(reading, &tally->last))
		counts_add(tally->sum, reading->value, tally->last.value);
	else
		tally->gaps++;
	tally->on = 0;
}

/*
 * The running thread's counts up to the reading in tally->now, into counts. turns: what the tally's was
 * before that reading was made; a switch since then makes the two differ, and false asks for another
 * reading. A stay whose beginning was not seen is counted from here on: a gap.
 */
static __always_inline bool tally_now(struct kernel_tally *tally, u32 turns, u64 *counts)
{
	volatile u32 *present = &tally->turns, *on = &tally->on;

	for (u32 i = 0; i < KERNEL_EVENTS; i++)
		counts[i] = tally->sum[i];
	if (*on && reading_follows(&tally->now, &tally->last)) {
		counts_add(counts, tally->now.value, tally->last.value);
		return *present == turns;
	}
	if (*present != turns)
		return false;
	*on = 0;
	tally->gaps++;
	tally->last = tally->now;
	*on = 1;
	if (*present == turns)
		return true;
	*on = 0; /* last may be of another stay */
	return false;
}

static __always_inline u64 counts_off_cpu(const struct kernel_counts *c)
{
	return c->preempted_ns + c->wakeup_wait_ns + c->blocked_io_ns + c->blocked_other_ns + c->throttled_ns;
}

static __always_inline u64 take_from(u64 *rest, u64 wanted)
{
	u64 taken = wanted < *rest ? wanted : *rest;

	*rest -= taken;
	return taken;
}

/* What was taken from a thread while it was on a CPU. */
static __always_inline u64 counts_taken(const struct kernel_counts *c)
{
	return c->steal_ns + c->irq_ns + c->hard_irq_ns + c->soft_irq_ns + c->slow_ns;
}

/* Makes the counts of a fragment a partition of its time: hard and soft interrupts are parts of all interrupts. */
static __always_inline void counts_bound(struct kernel_counts *c, u64 duration)
{
	u64 away = counts_off_cpu(c), rest = duration > away ? duration - away : 0, parts;

	c->steal_ns = take_from(&rest, c->steal_ns);
	parts = rest;
	c->irq_ns = take_from(&rest, c->irq_ns);
	c->hard_irq_ns = take_from(&parts, c->hard_irq_ns);
	c->soft_irq_ns = take_from(&parts, c->soft_irq_ns);
	if (parts < rest)
		rest = parts;
	c->slow_ns = take_from(&rest, c->slow_ns);
}

/*
 * Counts of the fragment that ends. The kernel adds up what is taken from a CPU at its ticks, so that more
 * may be found than the fragment has time: the rest is left for the next one, which has to look again.
 */
static __always_inline void counts_end(struct kernel_thread *thread, struct kernel_counts *c, u64 duration)
{
	u64 found;

	counts_delta(c, &thread->now, &thread->border);
	found = counts_taken(c);
	counts_bound(c, duration);
	if (counts_taken(c) == found)
		return;
	thread->noted = thread->border_noted + 1;
	thread->now.steal_ns = thread->border.steal_ns + c->steal_ns;
	thread->now.irq_ns = thread->border.irq_ns + c->irq_ns;
	thread->now.hard_irq_ns = thread->border.hard_irq_ns + c->hard_irq_ns;
	thread->now.soft_irq_ns = thread->border.soft_irq_ns + c->soft_irq_ns;
	thread->now.slow_ns = thread->border.slow_ns + c->slow_ns;
}

/*
 * Takes note of what the kernel counts for a task, what was taken from it by then included. All of it is
 * monotone, and nobody leaves a CPU without a switch that is counted: as long as the sum is the same nothing
 * has happened, as in most fragments.
 */
static __always_inline void counts_note(struct kernel_thread *thread, u64 minor_faults, u64 major_faults, u64 voluntary,
					u64 involuntary, u64 migrations)
{
	u64 sum = minor_faults + major_faults + voluntary + involuntary + migrations + counts_taken(&thread->now);

	if (sum == thread->noted)
		return;
	thread->noted = sum;
	thread->now.minor_faults = minor_faults;
	thread->now.major_faults = major_faults;
	thread->now.voluntary_switches = voluntary;
	thread->now.involuntary_switches = involuntary;
	thread->now.migrations = migrations;
}

/* Whether anything happened since the last border. */
static __always_inline bool counts_changed(const struct kernel_thread *thread)
{
	return thread->noted != thread->border_noted;
}

/* A fragment begins here. */
static __always_inline void counts_border(struct kernel_thread *thread)
{
	if (!counts_changed(thread))
		return;
	thread->border = thread->now;
	thread->border_noted = thread->noted;
}

static __always_inline void counts_sum(struct kernel_counts *sum, const struct kernel_counts *c)
{
	sum->preempted_ns += c->preempted_ns;
	sum->wakeup_wait_ns += c->wakeup_wait_ns;
	sum->blocked_io_ns += c->blocked_io_ns;
	sum->blocked_other_ns += c->blocked_other_ns;
	sum->throttled_ns += c->throttled_ns;
	sum->steal_ns += c->steal_ns;
	sum->irq_ns += c->irq_ns;
	sum->hard_irq_ns += c->hard_irq_ns;
	sum->soft_irq_ns += c->soft_irq_ns;
	sum->slow_ns += c->slow_ns;
	sum->minor_faults += c->minor_faults;
	sum->major_faults += c->major_faults;
	sum->voluntary_switches += c->voluntary_switches;
	sum->involuntary_switches += c->involuntary_switches;
	sum->migrations += c->migrations;
}

static __always_inline bool same_vertex(const struct kernel_vertex_key *a, const struct kernel_vertex_key *b)
{
	typedef u64 __attribute__((may_alias)) word;
	const word *x = (const word *)a, *y = (const word *)b;
	u64 differ = 0;

	_Static_assert(sizeof(*a) % sizeof(word) == 0, "compared word by word");
	for (u32 i = 0; i < sizeof(*a) / sizeof(word); i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

/* Where a vertex has its place among a thread's recent ones. */
static __always_inline u32 recent_place(const struct kernel_vertex_key *key)
{
	u32 of = (u32)key->site ^ (u32)key->site >> 5 ^ (u32)key->peer ^ (u32)key->cell << 1;

	return of & (KERNEL_RECENT - 1);
}

static __always_inline u32 recent_edge_place(const struct kernel_edge_key *key)
{
	return (key->to ^ key->from << 2) & (KERNEL_RECENT - 1);
}

static __always_inline u32 recent_call_place(u64 site)
{
	return ((u32)site ^ (u32)site >> 5) & (KERNEL_RECENT_CALLS - 1);
}

/* Whether a call comes as one before it did. cookie: of its probe; in: the argument registers. */
static __always_inline bool same_call(const struct kernel_recent_call *recent, u64 site, u32 cookie, const u64 *in)
{
	u64 differ = (recent->site ^ site) | (recent->function ^ (cookie & KERNEL_SITE_ROW));

	for (u32 i = 0; i < KERNEL_PLAIN_ARGUMENTS; i++)
		if (cookie & (1u << (KERNEL_SITE_READS + i)))
			differ |= recent->in[i] ^ in[i];
	return !differ;
}

/* Open MPI's datatypes are objects of a few hundred bytes, one after the other. */
static __always_inline u32 recent_type_place(u64 handle)
{
	return (u32)(handle >> 9) & (KERNEL_TYPES - 1);
}

/* Adds what a fragment counted to a bundle of its key. */
static __always_inline void bundle_merge_events(struct kernel_bundle *into, const struct kernel_bundle *one)
{
	for (u32 i = 0; i < KERNEL_MAGNITUDES; i++) {
		if (one->event_min[i] < into->event_min[i])
			into->event_min[i] = one->event_min[i];
		if (one->event_max[i] > into->event_max[i])
			into->event_max[i] = one->event_max[i];
	}
	for (u32 i = 0; i < KERNEL_EVENTS; i++)
		into->event_sum[i] += one->event_sum[i];
}

/* Adds a fragment to a bundle of its key. */
static __always_inline void bundle_merge(struct kernel_bundle *into, const struct kernel_bundle *one)
{
	if (one->start_ns < into->start_ns)
		into->start_ns = one->start_ns;
	if (one->end_ns > into->end_ns)
		into->end_ns = one->end_ns;
	into->sum_ns += one->sum_ns;
	if (one->min_ns < into->min_ns)
		into->min_ns = one->min_ns;
	if (one->max_ns > into->max_ns)
		into->max_ns = one->max_ns;
	if (one->bytes_min < into->bytes_min)
		into->bytes_min = one->bytes_min;
	if (one->bytes_max > into->bytes_max)
		into->bytes_max = one->bytes_max;
	if (one->first_call < into->first_call)
		into->first_call = one->first_call;
	if (one->last_call > into->last_call)
		into->last_call = one->last_call;
	counts_sum(&into->counts, &one->counts);
	into->n += one->n;
}

/*
 * Adds one fragment to a bundle of its key, the latest of its thread, in which nothing was counted: as
 * bundle_merge() does, without making a bundle of it first.
 */
static __always_inline void bundle_add(struct kernel_bundle *into, u64 start_ns, u64 end_ns, u64 bytes, u64 call)
{
	u64 duration = end_ns - start_ns;

	into->end_ns = end_ns;
	into->sum_ns += duration;
	if (duration < into->min_ns)
		into->min_ns = duration;
	if (duration > into->max_ns)
		into->max_ns = duration;
	if (bytes < into->bytes_min)
		into->bytes_min = bytes;
	if (bytes > into->bytes_max)
		into->bytes_max = bytes;
	into->last_call = call;
	into->n++;
}

/* The bin of a time (UTC); a thread's fragments mostly share the last one's. */
static __always_inline u32 bin_of_thread(struct kernel_thread *thread, u64 utc_ns)
{
	if (utc_ns - thread->bin_ns >= KERNEL_BIN_NS) {
		thread->bin = (u32)(utc_ns / KERNEL_BIN_NS);
		thread->bin_ns = utc_ns / KERNEL_BIN_NS * KERNEL_BIN_NS;
	}
	return thread->bin;
}

/* Whether a thread should tell its hits now. */
static __always_inline bool hits_due(const struct kernel_hits *hits, u64 now)
{
	return now - hits->told_ns >= KERNEL_HITS_NS || hits->enter >= KERNEL_HITS_HELD;
}

/* Excess under this is noise of the probe itself and never worth a record of its own. */
#define ABNORMAL_FLOOR_NS 20000
/* Records of abnormal fragments per thread and 200 ms; the excess merges. */
#define ABNORMAL_TOKENS 20

/* Over ratio_1024/1024 times the least of its cell (k_a of papers/000 section 4.3). */
static __always_inline bool is_abnormal(u64 duration, u64 least, u32 ratio_1024)
{
	return least && duration > least + ABNORMAL_FLOOR_NS && duration * 1024 > least * ratio_1024;
}

static __always_inline bool take_token(struct kernel_thread *thread, u64 now)
{
	if (now - thread->token_ns >= KERNEL_BIN_NS) {
		thread->token_ns = now;
		thread->tokens = ABNORMAL_TOKENS;
	}
	if (!thread->tokens)
		return false;
	thread->tokens--;
	return true;
}

#endif
