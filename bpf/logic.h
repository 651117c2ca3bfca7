/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The decisions of the kernel side as plain functions of their arguments: they compile into the BPF
 * object and, natively, into the unit tests. No helper is called here.
 */
#ifndef VAPRO_LOGIC_H
#define VAPRO_LOGIC_H

#include "account.h"
#include "counts.h"

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

/* Returns the cell of bytes or on-CPU time: within 12.5 %. */
static __always_inline u16 cell_of(u64 value)
{
	return log_linear(value, 3);
}

/* Returns the cell of counted work: within 0.8 %, far less than the 5 % between workloads. */
static __always_inline u16 work_cell_of(u64 value)
{
	return log_linear(value, 7);
}

/* Returns a state's mean span after one more, which weighs an eighth; saturates at 4 s. */
static __always_inline u32 span_after(u32 mean, u64 span)
{
	u32 one = span < 0xffffffffULL ? (u32)span : 0xffffffffU;

	if (!mean)
		return one;
	return one > mean ? mean + (one - mean) / 8 : mean - (mean - one) / 8;
}

/* Returns a span's octave, of KERNEL_SPANS. */
static __always_inline u32 span_octave(u64 span)
{
	u32 octave = log_linear(span >> 11, 0);

	return octave < KERNEL_SPANS ? octave : KERNEL_SPANS - 1;
}

/*
 * While no call is suppressed, the spans of one call in so many are enough. These are spread evenly
 * among a program's calls (multiples of the golden ratio), whatever their period.
 */
#define KERNEL_SPAN_EACH 8

static __always_inline bool span_due(u64 call)
{
	return (u32)call * 0x9e3779b1u < 0xffffffffu / KERNEL_SPAN_EACH;
}

/* A probed entry relative to its thread's open call (ARCHITECTURE section 3, nesting by stack pointer). */
enum nesting { NEST_OUTER, NEST_INNER, NEST_VANISHED };

/* A longjmp seldom goes further up a stack, and no two stacks that call MPI are as near. */
#define STACK_NEAR 8192

/*
 * sp: stack pointer at this entry. top: the open call's return address as its frame has it now;
 * expected: what top must be, 0 where unknown: the kernel's trampoline, or the return address of a
 * call whose exits are sites. Any other top means that the frame is gone (longjmp, exception). At the
 * open call's own stack pointer the trampoline proves that this entry is the open call's tail call; a
 * return address does not, since a repeated call from the same place has the same.
 *
 * A frame that still holds the trampoline may be a live call's although this entry is higher: the
 * entry came from a callback of the open call, on another stack (swapcontext). To hijack its return
 * would make the kernel forget the open call's, which kills the process when the open call returns.
 */
static __always_inline enum nesting nest(const struct bpf_thread_state *thread, u64 sp, u64 top, u64 expected)
{
	if (thread->open != KERNEL_CALL)
		return NEST_OUTER;
	if (!expected || thread->own_sites)
		return sp >= thread->sp || (expected && top != expected) ? NEST_VANISHED : NEST_INNER;
	if (top != expected)
		return NEST_VANISHED;
	return sp > thread->sp && sp - thread->sp < STACK_NEAR ? NEST_VANISHED : NEST_INNER;
}

/*
 * Returns whether a thread's wait for its team is known to be one, when something else begins; enters: a region's
 * function begins. A thread that began a region and was not seen in the region's function may have computed there,
 * unseen; so may a thread that was last seen in an earlier region than the last but `enters`.
 */
static __always_inline bool waited(const struct bpf_thread_state *thread, u32 regions, u32 enters)
{
	if (!thread->region)
		return true;
	return thread->unentered ? enters : regions - thread->region <= enters;
}

#define SWITCH_COSTS_NS 50000 /* most that a preemption costs when it is over: caches that others used */

/*
 * Returns how long an open call that lasted so long may have waited: less the time for which others had its CPU, which
 * it wanted all the time, and what that costs.
 */
static __always_inline u64 call_waited(const struct bpf_thread_state *thread, u64 lasted)
{
	u64 away = thread->now.preempted_ns - thread->border.preempted_ns + thread->now.throttled_ns -
		   thread->border.throttled_ns;

	if (away)
		away += SWITCH_COSTS_NS;
	return away < lasted ? lasted - away : 0;
}

/* Whether a computation is open: the time since the last call of a thread that made one. */
static __always_inline bool computes(const struct bpf_thread_state *thread)
{
	return thread->open == KERNEL_NOTHING && thread->vertex;
}

/* Returns a predefined MPICH datatype's size; 1 for derived ones, whose handle has none. */
static __always_inline u64 mpich_size(u32 handle)
{
	return handle >> 30 == 1 ? (handle >> 8) & 0xff : 1;
}

static __always_inline bool mpich_sized(u32 handle)
{
	return handle >> 30 == 1;
}

#define STANDARD_TYPES 0x200 /* the least handle of a datatype */
#define STANDARD_SIZED 64    /* from there on: types whose size the platform decides */
#define STANDARD_TYPES_END 0x300

/*
 * Returns the size of a predefined datatype in the standard ABI (MPI 5.0, Application Binary Interface), where C and
 * Fortran have their sizes of 64-bit Unix; 0 for all others. Types of fixed size have its logarithm in three bits.
 */
static __always_inline u64 standard_size(u64 handle)
{
	static const u8 sizes[STANDARD_SIZED] = {
	    [0x01] = 8,	 [0x02] = 8,  [0x03] = 8,  [0x07] = 1,		   /* AINT, COUNT, OFFSET, PACKED */
	    [0x08] = 2,	 [0x09] = 4,  [0x0a] = 8,  [0x0b] = 8,		   /* SHORT, INT, LONG, LONG_LONG */
	    [0x0c] = 2,	 [0x0d] = 4,  [0x0e] = 8,  [0x0f] = 8,		   /* the same, unsigned */
	    [0x10] = 4,	 [0x12] = 8,  [0x13] = 8,			   /* FLOAT, complex of C and C++ */
	    [0x14] = 8,	 [0x16] = 16, [0x17] = 16,			   /* DOUBLE, complex of C and C++ */
	    [0x18] = 4,	 [0x19] = 4,  [0x1a] = 4,  [0x1b] = 8,		   /* LOGICAL, INTEGER, REAL, COMPLEX */
	    [0x1c] = 8,	 [0x1d] = 16,					   /* DOUBLE_PRECISION, DOUBLE_COMPLEX */
	    [0x20] = 16, [0x24] = 32, [0x25] = 32,			   /* LONG_DOUBLE, complex of C and C++ */
	    [0x28] = 8,	 [0x29] = 12, [0x2a] = 12, [0x2b] = 8, [0x2c] = 6, /* FLOAT_INT to SHORT_INT */
	    [0x2d] = 20, [0x30] = 8,  [0x31] = 16, [0x32] = 8,		   /* LONG_DOUBLE_INT, 2REAL to 2INTEGER */
	    [0x38] = 1,	 [0x39] = 1,  [0x3c] = 4,			   /* C_BOOL, CXX_BOOL, WCHAR */
	};
	u64 number = handle - STANDARD_TYPES;

	if (number < STANDARD_SIZED)
		return sizes[number];
	if (number >= STANDARD_TYPES_END - STANDARD_TYPES ||
	    (number >= 2 * STANDARD_SIZED && number < 3 * STANDARD_SIZED))
		return 0;
	return 1ULL << (handle >> 3 & 7);
}

/* Returns the range that holds an address, or NULL. */
static __always_inline const struct kernel_text *range_of(const struct kernel_transparent *transparent, u64 address)
{
	for (u32 i = 0; i < KERNEL_TRANSPARENT; i++) {
		const struct kernel_text *range = &transparent->ranges[i];

		if (i < transparent->count && address >= range->begin && address < range->end)
			return range;
	}
	return 0;
}

#define FRAME_MAX (1 << 20) /* no frame is larger; other contents of the register are */

/* Returns whether a frame pointer can lie on the stack above `below`. */
static __always_inline bool is_frame(u64 frame, u64 below)
{
	return frame >= below && frame - below < FRAME_MAX && !(frame & 7);
}

/*
 * Returns the bytes of one operation of a shared handle, while nothing shows which one: the mean,
 * so that all operations together have the posted bytes.
 */
static __always_inline u64 request_share(u64 bytes, u32 count)
{
	return count ? bytes / count : 0;
}

/*
 * Returns whether a process with `made` entries of a table may make another, where all processes of its owner together
 * use `used` of `size`: an eighth of what is free, so that later processes find as much as earlier ones.
 */
static __always_inline bool has_share(u32 made, u32 used, u32 size, u32 most)
{
	return made < most && used < size && made < (size - used) / 8;
}

/* Entries that are counted by bin: none are used at the begin of one. */
static __always_inline void begin_bin(u32 *counted, u32 *used, u32 bin)
{
	if (*counted == bin)
		return;
	*counted = bin;
	*used = 0;
}

/* Returns an owner's room in a table of so many entries. */
static __always_inline u32 room_of(const struct kernel_owner *owner, u32 size)
{
	return (u32)((u64)size * owner->share / KERNEL_SHARE_ALL);
}

/* Returns the number of the n-th handle: numbers repeat after 64 Ki. */
static __always_inline u32 handle_number_of(u32 n)
{
	return KERNEL_FIRST_UNKNOWN + n % (KERNEL_OTHER_HANDLES - 1 - KERNEL_FIRST_UNKNOWN);
}

static __always_inline u16 coarse_handle(u16 handle)
{
	return handle > KERNEL_FIRST_UNKNOWN ? KERNEL_OTHER_HANDLES : handle;
}

/* Makes a vertex the one for all further values of arguments. */
static __always_inline void coarsen_vertex(struct kernel_vertex_key *key)
{
	key->peer = key->root = 0;
	key->comm = coarse_handle(key->comm);
	key->op = coarse_handle(key->op);
	key->mode = 0;
	key->file = 0;
	if (key->path)
		key->path = KERNEL_OTHER_PATHS;
	key->flags |= KERNEL_VERTEX_OTHERS;
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

/* Returns a vertex's index among a thread's recent ones. */
static __always_inline u32 recent_place(const struct kernel_vertex_key *key)
{
	u32 of = (u32)key->site ^ (u32)key->site >> 5 ^ (u32)key->peer ^ (u32)key->cell << 1;

	return of & (KERNEL_RECENT - 1);
}

static __always_inline u32 recent_edge_place(const struct kernel_edge_key *key)
{
	return (key->to ^ key->from << 3) & (KERNEL_RECENT_EDGES - 1);
}

/* Returns a plain call's index among a thread's recent ones: one call-site may have several peers, and sizes. */
static __always_inline u32 recent_call_place(u64 site, u32 cookie, const u64 *in)
{
	u32 of = (u32)site ^ (u32)site >> 5;

	for (u32 i = 0; i < KERNEL_PLAIN_ARGUMENTS; i++)
		if (cookie & (1u << (KERNEL_SITE_READS + i)))
			of += (u32)in[i] ^ (u32)in[i] >> 4;
	return of & (KERNEL_RECENT_CALLS - 1);
}

/* Returns the index of a variable among those that hold posted operations: next to each other in an array. */
static __always_inline u32 posted_place(u64 at)
{
	return (u32)(at >> 2 ^ at >> 7) & (KERNEL_POSTED - 1);
}

/* Returns the weight of misses after a completion that missed its posted operations or not. */
static __always_inline u32 misses_after(u32 misses, bool missed)
{
	if (missed)
		return misses + KERNEL_POSTED_MISS;
	return misses ? misses - 1 : 0;
}

static __always_inline bool same_bundle(const struct kernel_bundle_key *a, const struct kernel_bundle_key *b)
{
	typedef u32 __attribute__((may_alias)) word;
	const word *x = (const word *)a, *y = (const word *)b;
	u32 differ = 0;

	_Static_assert(sizeof(*a) == 5 * sizeof(word), "compared word by word, nothing in between");
	for (u32 i = 0; i < sizeof(*a) / sizeof(word); i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

/* Returns the index of a function that a team is given among a thread's recent ones. */
static __always_inline u32 recent_outlined_place(u64 address)
{
	return (u32)(address >> 4 ^ address >> 6) & (KERNEL_RECENT_OUTLINED - 1);
}

/* Returns a bundle's index among a thread's recent ones: ids are consecutive. */
static __always_inline u32 recent_bundle_place(const struct kernel_bundle_key *key)
{
	u32 half = KERNEL_RECENT_BUNDLES / 2;

	return ((key->state ^ key->cell << 2 ^ key->abnormal << 5) & (half - 1)) |
	       (key->state & KERNEL_EDGE ? half : 0);
}

/* Returns whether a bin comes after another, by low halves. */
static __always_inline bool bin_after(u32 bin, u32 other)
{
	return (s32)(bin - other) > 0;
}

/* Returns whether a call equals an earlier one. cookie: its probe's; in: argument registers. */
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

/* Adds a fragment's events to a bundle of its key. */
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
 * Adds one fragment, the latest of its thread and without counts, to a bundle of its key: as
 * bundle_merge() does, without making a bundle of the fragment first.
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

/* Returns the bin of a time (UTC), mostly that of the last fragment. */
static __always_inline u32 bin_of_thread(struct bpf_thread_state *thread, u64 utc_ns)
{
	if (utc_ns - thread->bin_ns >= KERNEL_BIN_NS) {
		thread->bin = (u32)(utc_ns / KERNEL_BIN_NS);
		thread->bin_ns = utc_ns / KERNEL_BIN_NS * KERNEL_BIN_NS;
	}
	return thread->bin;
}

/* Returns the class of a pause of at least KERNEL_PAUSE_NS. */
static __always_inline u32 pause_class(u64 pause)
{
	u32 class = 0;

	while (class < KERNEL_PAUSES - 1 && pause >= (2ULL * KERNEL_PAUSE_NS) << class)
		class ++;
	return class;
}

/* Returns whether a thread's hits are due. */
static __always_inline bool hits_due(const struct kernel_hits *hits, u64 now)
{
	return now - hits->reported_ns >= KERNEL_HITS_NS || hits->enter >= KERNEL_HITS_HELD;
}

/* Returns whether a thread's hits by weight reach a number with these ones. 0: there is no such number. */
static __always_inline bool hits_reach(u64 before, u64 weight, u32 number)
{
	return number && before < number && before + weight >= number;
}

/* Excess under this is noise of the probe itself and never worth a record of its own. */
#define ABNORMAL_FLOOR_NS 20000

/* Returns whether a duration is over ratio_1024/1024 times the cell's least (k_a of VAPRO (PPoPP'22) section 4.3). */
static __always_inline bool is_abnormal(u64 duration, u64 least, u32 ratio_1024)
{
	return least && duration > least + ABNORMAL_FLOOR_NS && duration * 1024 > least * ratio_1024;
}

/* Returns whether an abnormal fragment may be a record of its own: so many of a thread may in 200 ms, the excess
 * merges. */
static __always_inline bool take_token(struct bpf_thread_state *thread, u64 now, u32 tokens)
{
	if (now - thread->token_ns >= KERNEL_BIN_NS) {
		thread->token_ns = now;
		thread->tokens = tokens;
	}
	if (!thread->tokens)
		return false;
	thread->tokens--;
	return true;
}

#endif
