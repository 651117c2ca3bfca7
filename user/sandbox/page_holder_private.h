/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The orders to the process that holds pages; only its two sides include this file. */
#ifndef VAPRO_PAGE_HOLDER_PRIVATE_H
#define VAPRO_PAGE_HOLDER_PRIVATE_H

#include <stdint.h>
#include <sys/types.h>

#include "sandbox/page_holder.h"

#define PAGE_HOLDER_SERVICE "pages"

/* With offsets and a descriptor: to be held, which is answered by an int32_t. Without: to be released. */
struct page_order {
	uint64_t id;
	uint64_t count;
	uint64_t offsets[PAGE_HOLDER_OFFSETS_MAX];
};

/* Serves orders from a socket, and ends with it. */
void page_holder__serve(int socket) __attribute__((noreturn));

#endif
