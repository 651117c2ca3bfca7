// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The text is disassembled from end to end: a binding's functions need not be in any symbol table.
 * Data between functions can only give entries that no call ever returns to.
 */
#include "probe/elf/transparent.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "probe/elf/frames.h"

/* Fortran bindings of Open MPI, MPICH and those that descend from it. */
static const char *const bindings[] = {"libmpi_mpifh*.so*", "libmpi_usempi*.so*", "libmpichfort*.so*",
				       "libmpifort*.so*",   "libmpichf90*.so*",	  "libmpi_f77*.so*",
				       "libmpi_f90*.so*"};

#define GLOB_MAX 256

bool transparent__is(const char *basename, const char *more)
{
	char glob[GLOB_MAX];
	size_t length;

	for (size_t i = 0; i < sizeof(bindings) / sizeof(bindings[0]); i++)
		if (!fnmatch(bindings[i], basename, 0))
			return true;
	for (; *more; more += length + (more[length] == ',')) {
		length = strcspn(more, ",");
		if (!length || length >= sizeof(glob))
			continue;
		memcpy(glob, more, length);
		glob[length] = '\0';
		if (!fnmatch(glob, basename, 0))
			return true;
	}
	return false;
}

struct found {
	struct image *image;
	struct transparent_call *calls;
	size_t count, room;
};

/* Notes a call that returns to `after`. 0 or -ENOMEM. */
static int note_call(struct found *found, uint64_t after)
{
	struct kernel_hop hop;

	if (after > UINT32_MAX || frames__of(found->image, after, &hop) != FRAME_FOUND)
		return 0;
	if (grow(&found->calls, &found->room, found->count + 1, sizeof(*found->calls)))
		return -ENOMEM;
	found->calls[found->count++] = (struct transparent_call){(uint32_t)after, hop};
	return 0;
}

#if defined(__x86_64__)

#include "probe/elf/instruction.h"

static int read_text(struct found *found, const uint8_t *code, uint64_t vaddr, uint64_t size)
{
	int status = 0;

	for (uint64_t k = 0; k < size && !status;) {
		struct instruction instruction;

		if (!instruction__decode(code + k, size - k, vaddr + k, &instruction)) {
			k++; /* data */
			continue;
		}
		k += instruction.size;
		if (instruction.call)
			status = note_call(found, vaddr + k);
	}
	return status;
}

#elif defined(__aarch64__)

#include <capstone/capstone.h>

static int read_text(struct found *found, const uint8_t *code, uint64_t vaddr, uint64_t size)
{
	int status = -ENOMEM;
	size_t left = size;
	cs_insn *insn;
	csh handle;

	if (cs_open(CS_ARCH_ARM64, CS_MODE_ARM, &handle))
		return -ENOMEM;
	cs_option(handle, CS_OPT_SKIPDATA, CS_OPT_ON);
	insn = cs_malloc(handle);
	if (insn)
		status = 0;
	while (!status && cs_disasm_iter(handle, &code, &left, &vaddr, insn))
		if (insn->id == ARM64_INS_BL || insn->id == ARM64_INS_BLR)
			status = note_call(found, vaddr);
	if (insn)
		cs_free(insn, 1);
	cs_close(&handle);
	return status;
}

#else
#error "unknown CPU: add its call instructions"
#endif

int transparent__find(struct image *image, struct transparent_call **calls)
{
	struct found found = {.image = image};
	uint64_t vaddr, size;
	int status = 0;

	*calls = NULL;
	for (size_t i = 0; image__text(image, i, &vaddr, &size) && !status; i++) {
		size_t left;
		const uint8_t *code = image__bytes(image, vaddr, &left);

		if (code && size <= left)
			status = read_text(&found, code, vaddr, size);
	}
	if (status) {
		free(found.calls);
		return status;
	}
	*calls = found.calls;
	return (int)found.count;
}
