// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/io_tracing.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <unistd.h>

#include "probe/bpf/kernel_side.h"

void io_tracing__init(struct io_tracing *io, struct kernel_side *side, const struct costs *costs,
		      enum vapro_tristate mode, double bound, uint64_t now_ns)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*io = (struct io_tracing){
	    .side = side, .costs = costs, .mode = mode, .looked_ns = now_ns, .cpus = cpus > 0 ? (double)cpus : 1};
	io_tax__init(&io->tax, bound);
}

/* Returns the system calls of the whole node that were traced so far. */
static uint64_t count_calls(const struct io_tracing *io)
{
	int cpus = libbpf_num_possible_cpus(), map = kernel_side__map(io->side, KERNEL_MAP_SYSCALL_COUNTS);
	uint64_t *counts = cpus > 0 ? calloc((size_t)cpus, sizeof(*counts)) : NULL, sum = 0;
	uint32_t zero = 0;

	if (counts && !bpf_map_lookup_elem(map, &zero, counts))
		for (int i = 0; i < cpus; i++)
			sum += counts[i];
	free(counts);
	return sum;
}

static void report_given_up(const struct io_tracing *io, struct tracker *tracker)
{
	tracker__warn(
	    tracker, "io_not_worth", 0,
	    "IO tracing paused for %.0f s: it costs %.2g %% of the node's CPU time (%.0f system calls/s of all "
	    "processes, "
	    "%.0f ns each), and the tracked processes spend %.2g %% of one CPU in IO",
	    io->tax.idle_s, io->tax.tax * 100, io->tax.calls_s, io->costs->bystander_ns, io->tax.learnt * 100);
}

void io_tracing__second(struct io_tracing *io, struct tracker *tracker, const struct watch_second *second,
			uint64_t now_ns)
{
	bool on = kernel_side__watches_syscalls(io->side);
	struct io_second last = {.seconds = (double)(now_ns - io->looked_ns) * 1e-9,
				 .requested = second->io_worth,
				 .inside = second->in_io,
				 .learnt_ns = (double)second->io_ns,
				 .cpus = io->cpus,
				 .each_ns = io->costs->bystander_ns};
	uint64_t calls;

	io->looked_ns = now_ns;
	if (on) {
		calls = count_calls(io);
		last.calls = (double)(calls - io->calls);
		io->calls = calls;
		io->traced_s += last.seconds;
		io->taxed_s += last.calls * last.each_ns * 1e-9;
	}
	if (io->mode != VAPRO_AUTO)
		return;
	if (io_tax__second(&io->tax, &last) == IO_GIVEN_UP)
		report_given_up(io, tracker);
	if ((io->tax.traced_s > 0) != on)
		kernel_side__watch_syscalls(io->side, io->tax.traced_s > 0);
}

void io_tracing__end_window(struct io_tracing *io, struct stream_window *window, double seconds)
{
	window->io_traced_pct = seconds > 0 ? 100 * (io->traced_s < seconds ? io->traced_s : seconds) / seconds : 0;
	window->io_tax_pct = seconds > 0 ? 100 * io->taxed_s / (seconds * io->cpus) : 0;
	io->traced_s = io->taxed_s = 0;
}
