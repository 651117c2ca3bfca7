// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/elf/exits.h"

#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 32
#define BYTES_MAX 1048576 /* bytes of all parts */
#define FAMILY_LETTERS 5  /* GOMP_, pthre, sem_w, __kmp */

/* Where control goes after an instruction. */
enum flow {
	FLOW_ON,
	FLOW_RETURN,
	FLOW_JUMP,	 /* to target, always */
	FLOW_BRANCH,	 /* to target, or on */
	FLOW_THROUGH,	 /* a jump through a pointer that is a tail call */
	FLOW_COMPUTED,	 /* a jump through a register: a tail call, or within the function */
	FLOW_UNREADABLE, /* not an instruction */
};

struct step {
	enum flow flow;
	size_t size;
	uint64_t target;
};

struct part {
	uint64_t start, size;
	bool own; /* the function's, else that of a function it calls last */
};

struct search {
	struct image *image;
	struct exits *exits;
	const struct image_symbol *function;
	bool follow;
	bool framed; /* frame information gives the stack at entry */
	int64_t at_entry;
	struct part parts[PARTS_MAX];
	size_t part_count;
	uint64_t bytes;
};

#if defined(__x86_64__)

#include "probe/elf/instruction.h"

static struct step step_at(uint64_t vaddr, const uint8_t *code, size_t left)
{
	struct step step = {FLOW_UNREADABLE, 0, 0};
	struct instruction instruction;

	if (!instruction__decode(code, left, vaddr, &instruction))
		return step;
	step.size = instruction.size;
	step.flow = instruction.returns ? FLOW_RETURN : FLOW_ON;
	if (!instruction.jump)
		return step;
	switch (instruction.target_kind) {
	case TARGET_DIRECT:
		step.flow = instruction.always ? FLOW_JUMP : FLOW_BRANCH;
		step.target = instruction.target;
		break;
	case TARGET_SLOT:    /* linker's table */
	case TARGET_POINTER: /* object's method */
		step.flow = FLOW_THROUGH;
		break;
	default:
		step.flow = FLOW_COMPUTED;
		break;
	}
	return step;
}

#elif defined(__aarch64__)

static uint64_t branch_target(uint64_t vaddr, uint32_t word, int low, int bits)
{
	int64_t distance = (int64_t)((uint64_t)(word >> low) << (64 - bits)) >> (64 - bits);

	return vaddr + 4 * (uint64_t)distance;
}

static struct step step_at(uint64_t vaddr, const uint8_t *code, size_t left)
{
	struct step step = {FLOW_ON, 4, 0};
	uint32_t word;

	if (left < sizeof(word))
		return (struct step){FLOW_UNREADABLE, 0, 0};
	memcpy(&word, code, sizeof(word));
	if ((word & 0xfffffc1f) == 0xd65f0000 || word == 0xd65f0bff || word == 0xd65f0fff) {
		step.flow = FLOW_RETURN;
	} else if ((word & 0xfc000000) == 0x14000000) {
		step.flow = FLOW_JUMP;
		step.target = branch_target(vaddr, word, 0, 26);
	} else if ((word & 0xff000010) == 0x54000000 || (word & 0x7e000000) == 0x34000000) {
		step.flow = FLOW_BRANCH;
		step.target = branch_target(vaddr, word, 5, 19);
	} else if ((word & 0x7e000000) == 0x36000000) {
		step.flow = FLOW_BRANCH;
		step.target = branch_target(vaddr, word, 5, 14);
	} else if ((word & 0xfffffc1f) == 0xd61f0000) {
		step.flow = FLOW_COMPUTED;
	}
	return step;
}

#else
#error "unknown CPU: add its returns and jumps"
#endif

static bool inside(const struct search *search, uint64_t vaddr)
{
	for (size_t i = 0; i < search->part_count; i++)
		if (vaddr - search->parts[i].start < search->parts[i].size)
			return true;
	return false;
}

/* Whether the stack at an instruction is known to differ from that at entry. */
static bool stack_moved(struct search *search, uint64_t vaddr)
{
	int64_t here;

	return search->framed && !image__cfa(search->image, vaddr, &here) && here != search->at_entry;
}

static void not_seen(struct search *search, const char *why)
{
	if (!search->exits->unseen)
		search->exits->unseen = why;
}

static void add_exit(struct search *search, uint64_t vaddr, const uint8_t *code, size_t size, bool tail)
{
	struct exits *exits = search->exits;
	struct exit_site site = {.vaddr = vaddr, .tail = tail};
	const char *why;

	site.class = site__classify(code, size, &why);
	if (site.class == SITE_REFUSED || image__offset_of(search->image, vaddr, &site.offset)) {
		not_seen(search, "an exit lies at an instruction that must not be probed");
		return;
	}
	for (size_t i = 0; i < exits->count; i++)
		if (exits->sites[i].vaddr == vaddr)
			return;
	if (exits->count == EXITS_MAX) {
		exits->reason = "too many exits";
		return;
	}
	exits->sites[exits->count++] = site;
}

/* A stub of the linker: a jump through a slot, and perhaps a landing mark before it. */
static bool is_stub(const struct search *search, uint64_t vaddr)
{
	size_t left;
	const uint8_t *code = image__bytes(search->image, vaddr, &left);

	for (int i = 0; code && i < 4; i++) {
		struct step step = step_at(vaddr, code, left);

		if (step.flow == FLOW_THROUGH || (i && step.flow == FLOW_COMPUTED))
			return true;
		if (step.flow != FLOW_ON)
			return false;
		code += step.size;
		vaddr += step.size;
		left -= step.size;
	}
	return false;
}

static bool add_part(struct search *search, uint64_t vaddr, bool own)
{
	uint64_t start, size;

	if (is_stub(search, vaddr) || image__extent(search->image, vaddr, &start, &size) ||
	    search->part_count == PARTS_MAX || search->bytes + size > BYTES_MAX)
		return false;
	search->parts[search->part_count++] = (struct part){start, size, own};
	search->bytes += size;
	return true;
}

static bool is_cold_part(const struct search *search, uint64_t vaddr)
{
	uint64_t distance;
	const char *name = image__symbolise(search->image, vaddr, &distance);

	return name && strstr(name, ".cold");
}

/*
 * Whether a tail call may be followed: into an internal function, or an exported one of the same
 * family. Others have many callers, which would pay for exits that are not theirs.
 */
static bool may_follow(const struct search *search, uint64_t vaddr)
{
	uint64_t distance;
	const char *name = image__symbolise(search->image, vaddr, &distance);

	return !name || distance || !strncmp(name, search->function->name, FAMILY_LETTERS) ||
	       !image__is_exported(search->image, vaddr);
}

/* Handles a jump elsewhere: to a part of the function, or a tail call. */
static void leave(struct search *search, const struct part *from, const struct step *step, uint64_t vaddr,
		  const uint8_t *code)
{
	bool own = from->own && (stack_moved(search, vaddr) || is_cold_part(search, step->target));

	if (own || (search->follow && may_follow(search, step->target))) {
		if (add_part(search, step->target, own))
			return;
		if (own) {
			not_seen(search, "a part of it lies elsewhere, its extent is not known");
			return;
		}
	}
	if (step->flow == FLOW_JUMP)
		add_exit(search, vaddr, code, step->size, true);
	else
		not_seen(search, "a conditional tail call");
}

/* The function must be left alone: its exits are not known. */
static void undecodable(struct search *search, uint64_t vaddr, const uint8_t *code, size_t left)
{
	struct exits *exits = search->exits;

	exits->reason = "not all decodable";
	exits->undecoded = vaddr;
	exits->undecoded_count = left < sizeof(exits->undecoded_bytes) ? left : sizeof(exits->undecoded_bytes);
	memcpy(exits->undecoded_bytes, code, exits->undecoded_count);
}

static void read_part(struct search *search, const struct part *part)
{
	uint64_t vaddr = part->start, end = part->start + part->size;
	size_t left;
	const uint8_t *code = image__bytes(search->image, vaddr, &left);
	struct step step;

	if (!code || left < part->size) {
		search->exits->reason = "size out of range";
		return;
	}
	for (; vaddr < end && !search->exits->reason; vaddr += step.size, code += step.size) {
		step = step_at(vaddr, code, end - vaddr);
		switch (step.flow) {
		case FLOW_UNREADABLE:
			if (part->own)
				undecodable(search, vaddr, code, end - vaddr);
			else
				not_seen(search, "what it calls last is not all decodable");
			return;
		case FLOW_RETURN:
			if (!stack_moved(search, vaddr))
				add_exit(search, vaddr, code, step.size, false);
			break;
		case FLOW_JUMP:
		case FLOW_BRANCH:
			if (!inside(search, step.target))
				leave(search, part, &step, vaddr, code);
			break;
		case FLOW_THROUGH:
			if (!stack_moved(search, vaddr))
				add_exit(search, vaddr, code, step.size, true);
			break;
		case FLOW_COMPUTED:
			if (search->framed && !stack_moved(search, vaddr))
				not_seen(search, "a jump through a register may leave it");
			break;
		case FLOW_ON:
			break;
		}
	}
}

static int compare(const void *a, const void *b)
{
	const struct exit_site *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

void exits__find(struct image *image, const struct image_symbol *function, bool follow, struct exits *exits)
{
	struct search search = {.image = image, .exits = exits, .function = function, .follow = follow};
	uint64_t start, size = function->size;

	memset(exits, 0, sizeof(*exits));
	if (!size && (image__extent(image, function->vaddr, &start, &size) || start != function->vaddr)) {
		exits->reason = "size unknown";
		return;
	}
	if (size > BYTES_MAX) {
		exits->reason = "size out of range";
		return;
	}
	search.framed = !image__cfa(image, function->vaddr, &search.at_entry);
	search.parts[search.part_count++] = (struct part){function->vaddr, size, true};
	search.bytes = size;
	for (size_t i = 0; i < search.part_count && !exits->reason; i++) {
		struct part part = search.parts[i];

		read_part(&search, &part);
	}
	if (!exits->reason && !exits->count)
		exits->reason = "no exit found";
	qsort(exits->sites, exits->count, sizeof(*exits->sites), compare);
}
