// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The text is disassembled from end to end: a binding's functions need not be in any symbol table.
 * Data between functions can only give entries that no call ever returns to.
 */
#include "probe/transparent.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "model/grow.h"
#include "probe/frames.h"

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

#if defined(__x86_64__)

static int open_disassembler(csh *handle)
{
	return cs_open(CS_ARCH_X86, CS_MODE_64, handle);
}

static bool is_call(const cs_insn *insn)
{
	return insn->id == X86_INS_CALL;
}

#elif defined(__aarch64__)

static int open_disassembler(csh *handle)
{
	return cs_open(CS_ARCH_ARM64, CS_MODE_ARM, handle);
}

static bool is_call(const cs_insn *insn)
{
	return insn->id == ARM64_INS_BL || insn->id == ARM64_INS_BLR;
}

#else
#error "no such CPU here: say which instructions call"
#endif

int transparent__find(struct image *image, struct transparent_call **calls)
{
	size_t count = 0, room = 0, left;
	uint64_t vaddr, size;
	cs_insn *insn = NULL;
	int ret = -ENOMEM;
	csh handle;

	*calls = NULL;
	if (open_disassembler(&handle))
		return -ENOMEM;
	cs_option(handle, CS_OPT_SKIPDATA, CS_OPT_ON);
	insn = cs_malloc(handle);
	if (!insn)
		goto cleanup;
	for (size_t i = 0; image__text(image, i, &vaddr, &size); i++) {
		const uint8_t *code = image__bytes(image, vaddr, &left);

		if (!code || size > left)
			continue;
		left = size;
		while (cs_disasm_iter(handle, &code, &left, &vaddr, insn)) {
			struct kernel_hop hop;

			if (!is_call(insn) || vaddr > UINT32_MAX || frames__of(image, vaddr, &hop) != FRAME_FOUND)
				continue;
			if (grow(calls, &room, count + 1, sizeof(**calls)))
				goto cleanup;
			(*calls)[count++] = (struct transparent_call){(uint32_t)vaddr, hop};
		}
	}
	ret = (int)count;
cleanup:
	if (insn)
		cs_free(insn, 1);
	cs_close(&handle);
	if (ret < 0) {
		free(*calls);
		*calls = NULL;
	}
	return ret;
}
