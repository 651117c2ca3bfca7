// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chooses the instruction that a probe replaces. See site.h for the rules (a)-(e).
 *
 * Two things are decided from the instruction's bytes, as the kernel does it (arch/x86/kernel/
 * uprobes.c): whether it emulates the instruction, and whether it refuses it. The decoder says what an
 * instruction writes and where it leads.
 *
 * Indirect jumps and rule (c). The targets of a jump table are not in the code, so a function with
 * `jmp *reg` or `jmp *table(,reg,8)` could in principle land in (entry, k]. But a jump leaves the
 * stack pointer alone, and .eh_frame holds at every address: where the CFA at the jump is another
 * distance from sp than at the entry, no landing place of it has the entry's. Such jumps do no
 * harm. Where the distance is the same (a switch before any push, a tail call through a register)
 * or unknown, the function is probed at its entry. `jmp *slot(%rip)` is a tail call through the GOT.
 */
#include "probe/elf/site.h"

#include <stdbool.h>
#include <string.h>

const char *const site_class_name[SITE_CLASSES] = {
    [SITE_EMULATED] = "emulated",
    [SITE_NOP5] = "nop5",
    [SITE_STEPPED] = "stepped",
    [SITE_REFUSED] = "refused",
};

#if defined(__x86_64__)

#include "probe/elf/instruction.h"

#define WALK_INSTRUCTIONS 64	   /* a site further in is not worth the doubt */
#define FUNCTION_BYTES_MAX 1048576 /* larger ones are not searched for landing places */

/*
 * One-byte opcodes that the kernel refuses in 64-bit code: invalid ones, in/out, int, hlt, cli/sti,
 * iret, far calls. It tests the opcode byte of VEX and EVEX instructions against the same table, so
 * that vpxor at an entry is refused although it would be harmless.
 */
static bool opcode_refused(uint8_t opcode)
{
	static const uint8_t refused[] = {
	    0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x60, 0x61, 0x62,
	    0x6c, 0x6d, 0x6e, 0x6f, 0x82, 0x9a, 0xcc, 0xcd, 0xce, 0xcf, 0xd4, 0xd5, 0xd6, 0xe4,
	    0xe5, 0xe6, 0xe7, 0xea, 0xec, 0xed, 0xee, 0xef, 0xf1, 0xf4, 0xfa, 0xfb,
	};

	return memchr(refused, opcode, sizeof(refused)) != NULL;
}

/*
 * The kernel means to refuse these after 0f, but its one-byte table lets 0f itself through: syscall
 * is accepted, runs out of line with its return address relocated twice, and kills the target.
 */
static bool opcode2_refused(uint8_t opcode)
{
	static const uint8_t refused[] = {0x00, 0x01, 0x05, 0x06, 0x07, 0x08, 0x09,
					  0x0b, 0x30, 0x34, 0x35, 0x37, 0x78, 0x79};

	return memchr(refused, opcode, sizeof(refused)) != NULL;
}

static bool is_prefix(uint8_t byte)
{
	static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3};

	return memchr(prefixes, byte, sizeof(prefixes)) != NULL;
}

static const char not_in_table[] = "not in the kernel's table of instructions";

/* The parts of an instruction that decide how the kernel runs it. */
struct encoding {
	const uint8_t *bytes;
	size_t size;
	size_t prefixes, rex; /* numbers of bytes */
	uint8_t opcode, opcode2;
	bool operand16;
};

/* A nop that compilers put at the head of functions and that all kernels emulate. */
static bool is_emulated_nop(const uint8_t *bytes, size_t size)
{
	return (size == 1 && bytes[0] == 0x90) || (size == 2 && !memcmp(bytes, "\x66\x90", 2)) ||
	       (size == 4 && !memcmp(bytes, "\x0f\x1f\x40\x00", 4));
}

/* Splits an instruction; its size is set. Returns why the kernel refuses its prefixes, or NULL. */
static const char *split(struct encoding *code)
{
	size_t opcode;

	for (; code->prefixes < code->size && is_prefix(code->bytes[code->prefixes]); code->prefixes++) {
		uint8_t prefix = code->bytes[code->prefixes];

		code->operand16 |= prefix == 0x66;
		if (prefix == 0xf0)
			return "lock prefix";
		if (prefix == 0x26 || prefix == 0x2e || prefix == 0x36 || prefix == 0x3e)
			return "segment prefix";
	}
	code->rex = code->prefixes < code->size && (code->bytes[code->prefixes] & 0xf0) == 0x40;
	opcode = code->prefixes + code->rex;
	if (opcode >= code->size)
		return "not decodable";
	code->opcode = code->bytes[opcode];
	code->opcode2 = opcode + 1 < code->size ? code->bytes[opcode + 1] : 0;
	return NULL;
}

/* VEX in two or three bytes, EVEX in four; the opcode follows. */
static bool is_vector(const struct encoding *code)
{
	return code->opcode == 0xc5 || code->opcode == 0xc4 || code->opcode == 0x62;
}

static bool is_branch(const struct encoding *code)
{
	return code->opcode == 0xe8 || code->opcode == 0xe9 || code->opcode == 0xeb || (code->opcode & 0xf0) == 0x70 ||
	       (code->opcode == 0x0f && (code->opcode2 & 0xf0) == 0x80);
}

static const char *vector_refusal(const struct encoding *code)
{
	size_t at = code->prefixes + code->rex + (code->opcode == 0xc5 ? 2 : code->opcode == 0xc4 ? 3 : 4);

	return at >= code->size || opcode_refused(code->bytes[at]) ? not_in_table : NULL;
}

/* Returns why the kernel refuses an instruction, or NULL. */
static const char *refusal(const struct encoding *code)
{
	if (code->rex && code->opcode == 0x90 && (code->bytes[code->prefixes] & 1))
		return "xchg that the kernel takes for a nop";
	if (is_vector(code))
		return vector_refusal(code);
	if (code->opcode == 0x0f && code->opcode2 == 0x05)
		return "system call instruction";
	if (code->opcode == 0x0f ? opcode2_refused(code->opcode2) : opcode_refused(code->opcode))
		return not_in_table;
	if (code->opcode == 0x8e && (code->opcode2 >> 3 & 7) == 2)
		return "move to the stack segment";
	return is_branch(code) && code->operand16 ? "16-bit branch" : NULL;
}

/* A push of a register, or a branch; f2 is MPX's bnd, which some PLTs still carry. */
static bool is_emulated(const struct encoding *code)
{
	if (is_vector(code))
		return false;
	if ((code->opcode & 0xf8) == 0x50 && (code->size == 1 || (code->size == 2 && code->bytes[0] == 0x41)))
		return true;
	return is_branch(code) && !code->rex &&
	       (code->prefixes == 0 || (code->prefixes == 1 && code->bytes[0] == 0xf2));
}

/*
 * Class of one instruction. Only nops that compilers put at the head of functions count: kernels
 * before 6.17 single-step 0f 1f 40 00, and those before 6.2 refuse 66 90.
 */
enum site_class site__classify(const uint8_t *bytes, size_t size, const char **why)
{
	struct encoding code = {.bytes = bytes, .size = size};

	*why = NULL;
	if (size == 5 && !memcmp(bytes, "\x0f\x1f\x44\x00\x00", 5))
		return SITE_NOP5;
	if (is_emulated_nop(bytes, size))
		return SITE_EMULATED;
	*why = split(&code);
	if (!*why)
		*why = refusal(&code);
	if (*why)
		return SITE_REFUSED;
	return is_emulated(&code) ? SITE_EMULATED : SITE_STEPPED;
}

/* Input of rule (c) for a function; filled in for the first candidate. */
struct landings {
	bool known;
	uint64_t first;	    /* the first landing place after the entry, UINT64_MAX where there is none */
	const char *reason; /* why nothing can be said, or NULL */
};

/* Whether an indirect jump of this function could land where the stack is as at the entry. */
static bool may_land_at_head(struct image *image, const struct instruction *jump, uint64_t entry)
{
	int64_t here, there;

	if (jump->target_kind == TARGET_SLOT)
		return false;
	if (image__cfa(image, jump->address, &here) || image__cfa(image, entry, &there))
		return true;
	return here == there;
}

static void find_landings(struct image *image, const struct image_symbol *function, const uint8_t *code,
			  size_t available, struct landings *landings)
{
	struct instruction instruction;

	landings->known = true;
	landings->first = UINT64_MAX;
	if (!function->size || function->size > available || function->size > FUNCTION_BYTES_MAX) {
		landings->reason = function->size ? "size out of range" : "size unknown";
		return;
	}
	for (uint64_t k = 0; k < function->size; k += instruction.size) {
		if (!instruction__decode(code + k, function->size - k, function->vaddr + k, &instruction)) {
			landings->reason = "not all decodable";
			return;
		}
		if (!instruction.call && !instruction.jump)
			continue;
		if (instruction.target_kind == TARGET_DIRECT) {
			if (instruction.target > function->vaddr && instruction.target < landings->first)
				landings->first = instruction.target;
		} else if (!instruction.call && may_land_at_head(image, &instruction, function->vaddr)) {
			landings->reason = "indirect jump";
			return;
		}
	}
}

/* Checks rules (b) and (c) for an otherwise fit instruction. Returns NULL or why not. */
static const char *check_site(struct image *image, uint64_t entry, uint64_t vaddr, const struct landings *landings)
{
	int64_t at_entry, here;

	if (landings->reason)
		return landings->reason;
	if (landings->first <= vaddr)
		return "a branch lands before it";
	if (image__symbol_between(image, entry, vaddr))
		return "a symbol lies before it";
	if (image__cfa(image, entry, &at_entry) || image__cfa(image, vaddr, &here))
		return "no frame information";
	return at_entry == here ? NULL : "stack pointer moved";
}

/* Returns why a walk does not pass an instruction, or NULL. */
static const char *end_of_walk(const struct instruction *instruction, unsigned int arguments)
{
	if (instruction->leaves_line)
		return "control leaves the line";
	if (instruction->writes_stack)
		return "stack pointer moved";
	return instruction->writes & arguments ? "argument written" : NULL;
}

/* Walks straight from the entry until a site is found or the walk must end; then the reason is why it found none. */
static void walk(struct image *image, const struct image_symbol *function, unsigned int arguments, const uint8_t *code,
		 size_t available, struct site *site)
{
	const char *reason = "nothing the kernel emulates", *refused = NULL;
	struct landings landings = {0};
	struct instruction instruction;
	uint64_t k = 0;

	for (int i = 0; i < WALK_INSTRUCTIONS; i++, k += instruction.size) {
		enum site_class class;
		const char *why;

		if (i && k >= function->size) {
			reason = function->size ? "end of the function" : "size unknown";
			break;
		}
		if (k >= available ||
		    !instruction__decode(code + k, available - k, function->vaddr + k, &instruction)) {
			reason = "not decodable";
			if (!i)
				site->reason = reason;
			break;
		}
		class = site__classify(code + k, instruction.size, &why);
		if (!i) {
			site->class = class;
			site->reason = why;
			site->instruction = instruction.mnemonic;
			if (class == SITE_EMULATED || class == SITE_NOP5)
				return;
		} else if (class == SITE_EMULATED) {
			if (!landings.known)
				find_landings(image, function, code, available, &landings);
			why = check_site(image, function->vaddr, instruction.address, &landings);
			if (!why) {
				site->vaddr = instruction.address;
				site->shift = (uint32_t)k;
				site->class = class;
				site->instruction = instruction.mnemonic;
				site->reason = NULL;
				return;
			}
			if (!refused)
				refused = why;
		}
		why = end_of_walk(&instruction, arguments);
		if (why) {
			reason = why;
			break;
		}
	}
	if (refused)
		reason = refused;
	if (!site->reason && site->class == SITE_STEPPED)
		site->reason = reason;
}

static void choose(struct image *image, const struct image_symbol *function, unsigned int arguments, struct site *site)
{
	size_t available;
	const uint8_t *code = image__bytes(image, function->vaddr, &available);

	if (code)
		walk(image, function, arguments, code, available, site);
	else
		site->reason = "no code in the file";
}

#else

/* Only branches are simulated: b, bl, b.cond, cbz, tbz, br, blr, ret. */
enum site_class site__classify(const uint8_t *bytes, size_t size, const char **why)
{
	uint32_t word;

	*why = NULL;
	if (size != sizeof(word)) {
		*why = "not decodable";
		return SITE_REFUSED;
	}
	memcpy(&word, bytes, sizeof(word));
	if ((word & 0x7c000000) == 0x14000000 || (word & 0xff000010) == 0x54000000 ||
	    (word & 0x7c000000) == 0x34000000 || (word & 0xff9ffc1f) == 0xd61f0000)
		return SITE_EMULATED;
	return SITE_STEPPED;
}

/* arm64: the link register holds the return address only at the entry, and traps cost alike. */
static void choose(struct image *image, const struct image_symbol *function, unsigned int arguments, struct site *site)
{
	size_t available;

	(void)arguments;
	if (!image__bytes(image, function->vaddr, &available) || available < 4) {
		site->reason = "no code in the file";
		return;
	}
	site->class = SITE_STEPPED;
	site->reason = "always the entry on this machine";
}

#endif

void site__choose(struct image *image, const struct image_symbol *function, unsigned int arguments, struct site *site)
{
	*site = (struct site){
	    .vaddr = function->vaddr,
	    .offset = function->offset,
	    .class = SITE_REFUSED,
	    .instruction = "",
	};
	if (function->ifunc) {
		site->reason = "chosen at load time (IFUNC)";
		return;
	}
	choose(image, function, arguments, site);
	if (image__offset_of(image, site->vaddr, &site->offset)) {
		site->class = SITE_REFUSED;
		site->reason = "no code in the file";
	}
}
