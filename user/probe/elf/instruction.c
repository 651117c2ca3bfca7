// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/elf/instruction.h"

#if defined(__x86_64__)

#include <Zydis/Zydis.h>

/* Number of the integer argument that a register or a part of it holds, or -1. */
static int argument_of(ZydisRegister whole)
{
	static const ZydisRegister registers[INSTRUCTION_ARGUMENTS] = {ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI,
								       ZYDIS_REGISTER_RDX, ZYDIS_REGISTER_RCX,
								       ZYDIS_REGISTER_R8,  ZYDIS_REGISTER_R9};

	for (int i = 0; i < INSTRUCTION_ARGUMENTS; i++)
		if (registers[i] == whole)
			return i;
	return -1;
}

/* A write that depends on a condition or on the operands counts as one. */
static void note_written(struct instruction *instruction, const ZydisDecodedOperand *operand)
{
	ZydisRegister whole;
	int argument;

	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER || !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return;
	whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand->reg.value);
	argument = argument_of(whole);
	if (argument >= 0)
		instruction->writes |= 1U << argument;
	instruction->writes_stack |= whole == ZYDIS_REGISTER_RSP;
}

static bool leaves_line(const ZydisDecodedInstruction *decoded)
{
	switch (decoded->mnemonic) {
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_XABORT:
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
		return true;
	default:
		break;
	}
	switch (decoded->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_INTERRUPT:
		return true;
	default:
		return false;
	}
}

static void find_target(struct instruction *instruction, const ZydisDecodedInstruction *decoded,
			const ZydisDecodedOperand *operand)
{
	switch (operand->type) {
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		instruction->target_kind = TARGET_DIRECT;
		if (!operand->imm.is_relative ||
		    ZYAN_FAILED(ZydisCalcAbsoluteAddress(decoded, operand, instruction->address, &instruction->target)))
			instruction->target_kind = TARGET_COMPUTED;
		break;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		if (operand->mem.index != ZYDIS_REGISTER_NONE)
			instruction->target_kind = TARGET_COMPUTED;
		else
			instruction->target_kind =
			    operand->mem.base == ZYDIS_REGISTER_RIP ? TARGET_SLOT : TARGET_POINTER;
		break;
	default:
		instruction->target_kind = TARGET_COMPUTED;
		break;
	}
}

bool instruction__decode(const uint8_t *code, size_t left, uint64_t address, struct instruction *instruction)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction decoded;
	ZydisDecoder decoder;

	if (ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
	    ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code, left, &decoded, operands)))
		return false;
	*instruction = (struct instruction){
	    .address = address,
	    .size = decoded.length,
	    .jump = decoded.meta.category == ZYDIS_CATEGORY_COND_BR ||
		    (decoded.meta.category == ZYDIS_CATEGORY_UNCOND_BR && decoded.mnemonic != ZYDIS_MNEMONIC_XABORT),
	    .always = decoded.mnemonic == ZYDIS_MNEMONIC_JMP,
	    .call = decoded.mnemonic == ZYDIS_MNEMONIC_CALL,
	    .returns = decoded.mnemonic == ZYDIS_MNEMONIC_RET,
	    .leaves_line = leaves_line(&decoded),
	    .system_call = decoded.mnemonic == ZYDIS_MNEMONIC_SYSCALL,
	    .mnemonic = ZydisMnemonicGetString(decoded.mnemonic),
	};
	for (unsigned int i = 0; i < decoded.operand_count; i++)
		note_written(instruction, &operands[i]);
	/* these set the stack pointer from the frame pointer, whatever a decoder lists as operands */
	instruction->writes_stack |=
	    decoded.mnemonic == ZYDIS_MNEMONIC_LEAVE || decoded.mnemonic == ZYDIS_MNEMONIC_ENTER;
	if ((instruction->jump || instruction->call) && decoded.operand_count_visible)
		find_target(instruction, &decoded, &operands[0]);
	return true;
}

#endif
