/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the attacher of MPI functions only. */
#ifndef VAPRO_ATTACHER_PRIVATE_H
#define VAPRO_ATTACHER_PRIVATE_H

#include "base/grow.h"
#include "probe/attach/attacher.h"
#include "probe/attach/attachments.h"
#include "probe/elf/site.h"
#include "probe/attach/mpi_image.h"

struct attacher {
	struct attachments base;
	uint64_t learn_ns; /* how long polling calls are learnt */
};

static inline struct mpi_image *attacher__image(const struct attacher *attacher, size_t i)
{
	return (struct mpi_image *)attacher->base.images[i];
}

#endif
