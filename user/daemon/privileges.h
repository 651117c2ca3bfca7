/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The capabilities that vaprod needs, by name. Root has them all, unless a service manager or a container
 * dropped some: then what fails is far from its reason, or nothing fails and nothing is seen.
 */
#ifndef VAPRO_PRIVILEGES_H
#define VAPRO_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct privilege {
	const char *name;
	const char *consequence;	/* consequence of its absence, a sentence without its end */
	uint64_t any_of;		/* bits of the capabilities each of which is enough */
	bool required;			/* no process can be tracked without it */
	int before_major, before_minor; /* only older kernels need it; 0: all do */
};

extern const struct privilege privileges[];
extern const size_t privilege_count;

/* Returns the effective capabilities of this process as bits; 0 where they cannot be read. */
uint64_t privileges__held(void);

/* Returns whether this kernel (release NULL: the running one) needs a capability that is not held. */
bool privileges__missing(const struct privilege *privilege, uint64_t held, const char *release);

/* Writes the names of the required ones that are missing, joined by ", ". Returns how many they are. */
size_t privileges__name_missing(uint64_t held, char *text, size_t size);

#endif
