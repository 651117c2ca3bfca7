/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "capture/capture_format.h"

#define COLUMN(name, kind, member, unit)                                                                               \
	{                                                                                                              \
		name, kind, offsetof(struct stream_event, member), unit                                                \
	}

static const struct capture_column line_columns[] = {COLUMN("line", COLUMN_TEXT, line.text, "json")};

static const struct capture_column clock_columns[] = {
    COLUMN("mono_ns", COLUMN_U64, clock.mono_ns, "ns, CLOCK_MONOTONIC"),
    COLUMN("utc_ns", COLUMN_U64, clock.utc_ns, "ns since the epoch"),
};

static const struct capture_column thread_columns[] = {
    COLUMN("id", COLUMN_U32, thread.id, "id"),
    COLUMN("rank", COLUMN_I32, thread.rank, "rank, -1 unknown"),
    COLUMN("thread", COLUMN_I32, thread.thread, "number in its rank"),
    COLUMN("world_size", COLUMN_U32, thread.world_size, "ranks, 0 unknown"),
    COLUMN("pid", COLUMN_U32, thread.pid, "pid"),
    COLUMN("tid", COLUMN_U32, thread.tid, "tid"),
    COLUMN("job", COLUMN_TEXT, thread.job, "identity"),
    COLUMN("host", COLUMN_TEXT, thread.host, "name"),
    COLUMN("user", COLUMN_U32, thread.user, "uid + 1, 0 unknown: part of the job's identity"),
};

static const struct capture_column seen_columns[] = {
    COLUMN("thread", COLUMN_U32, seen.thread, "thread id"),
    COLUMN("from_ns", COLUMN_U64, seen.from_ns, "ns, CLOCK_MONOTONIC, 0 since its first fragment"),
    COLUMN("to_ns", COLUMN_U64, seen.to_ns, "ns, CLOCK_MONOTONIC, 0 still running"),
};

static const struct capture_column state_columns[] = {
    COLUMN("id", COLUMN_U32, state.id, "id"),
    COLUMN("class", COLUMN_U32, state.class, "0 computation, 1 communication, 2 io"),
    COLUMN("from", COLUMN_TEXT, state.from, "call-site, none for a vertex"),
    COLUMN("to", COLUMN_TEXT, state.to, "call-site"),
    COLUMN("labels", COLUMN_TEXT, state.labels, "key=value ..."),
    COLUMN("common", COLUMN_TEXT, state.common, "key=value ... that count across ranks"),
    COLUMN("from_symbol", COLUMN_TEXT, state.from_symbol, "for people"),
    COLUMN("to_symbol", COLUMN_TEXT, state.to_symbol, "for people"),
    COLUMN("from_path", COLUMN_TEXT, state.from_path, "image, as the process saw it"),
    COLUMN("to_path", COLUMN_TEXT, state.to_path, "image, as the process saw it"),
};

#define TIME(id, word) COLUMN(#word "_ns", COLUMN_DOUBLE, bundle.factor[VAPRO_##id], "ns"),
#define COUNT(id, word) COLUMN(#word, COLUMN_DOUBLE, bundle.factor[VAPRO_##id], "count"),
#define LEAST(name, index, unit) COLUMN("min_" name, COLUMN_DOUBLE, bundle.magnitude_min[index], unit)
#define MOST(name, index, unit) COLUMN("max_" name, COLUMN_DOUBLE, bundle.magnitude_max[index], unit)

static const struct capture_column bundle_columns[] = {
    COLUMN("thread", COLUMN_U32, bundle.thread, "thread id"),
    COLUMN("state", COLUMN_U32, bundle.state, "state id"),
    COLUMN("n", COLUMN_U32, bundle.n, "fragments"),
    COLUMN("flags", COLUMN_U32, bundle.flags, "bits: 1 abnormal, 2 open, 4 approx"),
    COLUMN("start_ns", COLUMN_U64, bundle.start_ns, "ns, CLOCK_MONOTONIC, of the first"),
    COLUMN("end_ns", COLUMN_U64, bundle.end_ns, "ns, CLOCK_MONOTONIC, of the last"),
    COLUMN("sum_ns", COLUMN_U64, bundle.sum_ns, "ns"),
    COLUMN("min_ns", COLUMN_U64, bundle.min_ns, "ns"),
    COLUMN("max_ns", COLUMN_U64, bundle.max_ns, "ns"),
    COLUMN("first_call", COLUMN_U64, bundle.first_call, "call number"),
    COLUMN("last_call", COLUMN_U64, bundle.last_call, "call number"),
    LEAST("instructions", VAPRO_INSTRUCTIONS, "instructions"),
    LEAST("bytes", VAPRO_BYTES, "bytes"),
    LEAST("named_1", VAPRO_NAMED, "the user's"),
    LEAST("named_2", VAPRO_NAMED + 1, "the user's"),
    MOST("instructions", VAPRO_INSTRUCTIONS, "instructions"),
    MOST("bytes", VAPRO_BYTES, "bytes"),
    MOST("named_1", VAPRO_NAMED, "the user's"),
    MOST("named_2", VAPRO_NAMED + 1, "the user's"),
    VAPRO_TIMES(TIME) VAPRO_COUNTS(COUNT)};

_Static_assert(sizeof(bundle_columns) / sizeof(bundle_columns[0]) == 11 + 2 * VAPRO_MAGNITUDES + VAPRO_FACTORS,
	       "a bundle has a member that captures do not know");
_Static_assert(sizeof(bundle_columns) / sizeof(bundle_columns[0]) <= CAPTURE_COLUMNS_MAX, "a bitmap has 64 bits");

static const struct capture_column interference_columns[] = {
    COLUMN("thread", COLUMN_U32, interference.thread, "thread id"), /* what differs from row to row comes first */
    COLUMN("preempted_ns", COLUMN_U64, interference.preempted_ns, "ns"),
    COLUMN("wakeup_wait_ns", COLUMN_U64, interference.wakeup_wait_ns, "ns"),
    COLUMN("slices", COLUMN_U32, interference.slices, "stays of the task on the CPU, or parts of stays"),
    COLUMN("longest_us", COLUMN_U32, interference.longest_us, "us, of one slice"),
    COLUMN("pid", COLUMN_U32, interference.pid, "pid of the task that ran instead"),
    COLUMN("bin", COLUMN_U64, interference.bin, "200 ms since the epoch"),
    COLUMN("comm", COLUMN_COMM, interference.comm, "name"),
    COLUMN("process", COLUMN_U32, interference.process, "pid of its process, 0 unknown"),
    COLUMN("monitor", COLUMN_U32, interference.monitor, "1: it is vaprod"),
};

#define LOST(name, index) COLUMN("lost_" name, COLUMN_U64, facts.lost[index], "count")

static const struct capture_column facts_columns[] = {
    COLUMN("pid", COLUMN_U32, facts.pid, "pid"),
    COLUMN("job", COLUMN_TEXT, facts.job, "identity"),
    COLUMN("wall_ns", COLUMN_U64, facts.wall_ns, "ns watched"),
    COLUMN("governed_ns", COLUMN_U64, facts.governed_ns, "ns with links closed"),
    COLUMN("thinned_ns", COLUMN_U64, facts.thinned_ns, "ns of threads, in suppressed calls and after them"),
    COLUMN("thinned", COLUMN_U64, facts.thinned, "fragments suppressed"),
    COLUMN("hits", COLUMN_U64, facts.hits, "count"),
    COLUMN("cost_ns", COLUMN_U64, facts.cost_ns, "ns"),
    LOST("ring_full", VAPRO_LOST_RING_FULL),
    LOST("map_full", VAPRO_LOST_MAP_FULL),
    LOST("no_storage", VAPRO_LOST_NO_STORAGE),
    LOST("argument", VAPRO_LOST_ARGUMENT),
    LOST("truncated", VAPRO_LOST_TRUNCATED),
    LOST("governed", VAPRO_LOST_GOVERNED),
    LOST("vanished", VAPRO_LOST_VANISHED),
    LOST("unaccounted", VAPRO_LOST_UNACCOUNTED),
    LOST("approximated", VAPRO_LOST_APPROXIMATED),
    LOST("unmatched", VAPRO_LOST_UNMATCHED),
    LOST("counter", VAPRO_LOST_COUNTER),
    LOST("states", VAPRO_LOST_STATES),
    LOST("published", VAPRO_LOST_PUBLISHED),
    LOST("interference", VAPRO_LOST_INTERFERENCE),
    COLUMN("user", COLUMN_U32, facts.user, "uid + 1, 0 unknown: part of the job's identity"),
    COLUMN("image", COLUMN_TEXT, facts.image, "file name of its MPI functions"),
    COLUMN("without", COLUMN_TEXT, facts.without, "functions of it that are not probed"),
    COLUMN("without_own", COLUMN_TEXT, facts.without_own, "those that the node's own governor left out"),
};

_Static_assert(sizeof(facts_columns) / sizeof(facts_columns[0]) == 12 + VAPRO_LOSSES,
	       "there is a cause of loss that captures do not know");

static const struct capture_column place_columns[] = {
    COLUMN("thread", COLUMN_U32, place.thread, "thread id"),
    COLUMN("cpu", COLUMN_I32, place.cpu, "number, -1 unknown"),
    COLUMN("socket", COLUMN_I32, place.socket, "number, -1 unknown"),
    COLUMN("numa", COLUMN_I32, place.numa, "number of the node, -1 unknown"),
    COLUMN("core_type", COLUMN_TEXT, place.core_type, "where the machine has several"),
    COLUMN("cgroup", COLUMN_TEXT, place.cgroup, "path"),
    COLUMN("cpu_model", COLUMN_TEXT, place.cpu_model, "as the kernel names it"),
    COLUMN("limit", COLUMN_TEXT, place.limit, "CPU quota, where there is one"),
    COLUMN("limit_cgroup", COLUMN_TEXT, place.limit_cgroup, "path of the one that has it"),
    COLUMN("cpus", COLUMN_TEXT, place.cpus, "CPUs that it may use, a list"),
};

static const struct capture_column window_columns[] = {
    COLUMN("begin_ns", COLUMN_U64, window.begin_ns, "ns since the epoch"),
    COLUMN("end_ns", COLUMN_U64, window.end_ns, "ns since the epoch"),
    COLUMN("last", COLUMN_BOOL, window.last, "0 or 1"),
    COLUMN("daemon_cpu_pct", COLUMN_DOUBLE, window.daemon_cpu_pct, "percent"),
    COLUMN("io_traced_pct", COLUMN_DOUBLE, window.io_traced_pct, "percent of the time"),
    COLUMN("io_tax_pct", COLUMN_DOUBLE, window.io_tax_pct, "percent of the node's CPU time"),
    COLUMN("bystander_hits", COLUMN_DOUBLE, window.bystander_hits, "in processes that are not watched"),
    COLUMN("bystander_pct", COLUMN_DOUBLE, window.bystander_pct, "percent of one CPU that these cost"),
};

static const struct capture_column stage_columns[] = {
    COLUMN("begin_ns", COLUMN_U64, stage.begin_ns, "ns, CLOCK_MONOTONIC: nothing is counted from here"),
    COLUMN("end_ns", COLUMN_U64, stage.end_ns, "ns, CLOCK_MONOTONIC: to here"),
    COLUMN("stage", COLUMN_U32, stage.stage, "1 to 3"),
    COLUMN("expand", COLUMN_TEXT, stage.expand, "factor whose parts are counted"),
    COLUMN("job", COLUMN_TEXT, stage.job, "identity, for whom"),
    COLUMN("variance", COLUMN_U64, stage.variance, "id, for which"),
    COLUMN("events", COLUMN_TEXT, stage.events, "names"),
    COLUMN("refused", COLUMN_TEXT, stage.refused, "why it cannot be counted"),
};

static const struct capture_column hop_columns[] = {
    COLUMN("begin_ns", COLUMN_U64, hop.begin_ns, "ns, CLOCK_MONOTONIC"),
    COLUMN("end_ns", COLUMN_U64, hop.end_ns, "ns, CLOCK_MONOTONIC"),
    COLUMN("hop", COLUMN_U32, hop.hop, "1 distinguished by callers, 2 and it stays so, 3 no more, 4 refused"),
    COLUMN("site", COLUMN_TEXT, hop.site, "call-site"),
    COLUMN("symbol", COLUMN_TEXT, hop.symbol, "for people"),
    COLUMN("reason", COLUMN_TEXT, hop.reason, "why it was refused"),
};

static const struct capture_column account_columns[] = {
    COLUMN("thread", COLUMN_U32, account.thread, "thread id"),
    COLUMN("bin", COLUMN_U64, account.bin, "200 ms since the epoch"),
    COLUMN("on_cpu_ns", COLUMN_U64, account.on_cpu_ns, "ns, without steal_ns"),
    COLUMN("preempted_ns", COLUMN_U64, account.preempted_ns, "ns"),
    COLUMN("wakeup_wait_ns", COLUMN_U64, account.wakeup_wait_ns, "ns"),
    COLUMN("throttled_ns", COLUMN_U64, account.throttled_ns, "ns"),
    COLUMN("stopped_ns", COLUMN_U64, account.stopped_ns, "ns"),
    COLUMN("steal_ns", COLUMN_U64, account.steal_ns, "ns"),
    COLUMN("blocked_io_ns", COLUMN_U64, account.blocked_io_ns, "ns"),
    COLUMN("blocked_other_ns", COLUMN_U64, account.blocked_other_ns, "ns"),
    COLUMN("stopped_by", COLUMN_U32, account.stopped_by, "stopped at its end by: 1 a signal, 2 a tracer, 3 the cgroup"),
};

static const struct capture_column name_columns[] = {
    COLUMN("site", COLUMN_TEXT, name.site, "call-site or caller"),
    COLUMN("depth", COLUMN_U32, name.depth, "0 holds the call, each further one has the one before inlined"),
    COLUMN("function", COLUMN_TEXT, name.function, "demangled"),
    COLUMN("offset", COLUMN_U64, name.offset, "of the return address in the function, 0 where the line is known"),
    COLUMN("file", COLUMN_TEXT, name.file, "as the compiler had it"),
    COLUMN("line", COLUMN_U32, name.line, "number, 0 unknown"),
};

static const struct capture_column inside_columns[] = {
    COLUMN("thread", COLUMN_U32, inside.thread, "thread id"),
    COLUMN("state", COLUMN_U32, inside.state, "id of the call after which the computation began"),
    COLUMN("site", COLUMN_TEXT, inside.site, "place, as of a call that returns there; none: places too rare"),
    COLUMN("samples", COLUMN_U64, inside.samples, "count in this window"),
};

static const struct capture_column host_clock_columns[] = {
    COLUMN("host", COLUMN_TEXT, host_clock.host, "name"),
    COLUMN("synchronised", COLUMN_BOOL, host_clock.synchronised, "by its own kernel"),
    COLUMN("error_ns", COLUMN_U64, host_clock.error_ns, "ns: how far off its clock is at most while it is"),
};

static const struct capture_column gone_columns[] = {
    COLUMN("state", COLUMN_U32, gone.state, "state id, not used from the next window on"),
};

#define TABLE(member)                                                                                                  \
	{                                                                                                              \
#member, member##_columns, sizeof(member##_columns) / sizeof(member##_columns[0]),                     \
		    sizeof(((struct stream_event *)0)->member)                                                         \
	}

const struct capture_table capture_tables[CAPTURE_TYPES] = {
    [STREAM_LINE] = TABLE(line),
    [STREAM_CLOCK] = TABLE(clock),
    [STREAM_THREAD] = TABLE(thread),
    [STREAM_SEEN] = TABLE(seen),
    [STREAM_STATE] = TABLE(state),
    [STREAM_BUNDLE] = TABLE(bundle),
    [STREAM_INTERFERENCE] = TABLE(interference),
    [STREAM_FACTS] = TABLE(facts),
    [STREAM_WINDOW] = TABLE(window),
    [STREAM_END] = {"end", NULL, 0, 0},
    [STREAM_PLACE] = TABLE(place),
    [STREAM_STAGE] = TABLE(stage),
    [STREAM_HOP] = TABLE(hop),
    [STREAM_ACCOUNT] = TABLE(account),
    [STREAM_NAME] = TABLE(name),
    [STREAM_INSIDE] = TABLE(inside),
    [STREAM_HOST_CLOCK] = TABLE(host_clock),
    [STREAM_GONE] = TABLE(gone),
};

const char *const capture_wire_name[WIRES] = {
    [WIRE_UINT] = "uint", [WIRE_INT] = "int", [WIRE_FLOAT] = "float", [WIRE_TEXT] = "text"};

bool capture__packs(enum stream_type type)
{
	return type == STREAM_INTERFERENCE || type == STREAM_ACCOUNT;
}

enum column_wire capture__wire(enum column_kind kind)
{
	switch (kind) {
	case COLUMN_U32:
	case COLUMN_U64:
	case COLUMN_BOOL:
		return WIRE_UINT;
	case COLUMN_I32:
		return WIRE_INT;
	case COLUMN_DOUBLE:
		return WIRE_FLOAT;
	case COLUMN_TEXT:
	case COLUMN_COMM:
		break;
	}
	return WIRE_TEXT;
}
