// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * To be preloaded: acts as a kernel that refuses vapro's BPF object with the code that reads counters, and
 * accepts it without. No kernel in the tests does so.
 */
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

int bpf_object__load_skeleton(struct bpf_object_skeleton *skeleton)
{
	int (*load)(struct bpf_object_skeleton *) =
	    (int (*)(struct bpf_object_skeleton *))dlsym(RTLD_NEXT, "bpf_object__load_skeleton");
	struct bpf_map *counters = bpf_object__find_map_by_name(*skeleton->obj, "perf_events");

	/* user/probe/counters.c gives this map entries only where counters are used */
	if (counters && bpf_map__max_entries(counters) > 1) {
		errno = E2BIG;
		return -E2BIG;
	}
	return load(skeleton);
}
