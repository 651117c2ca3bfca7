/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One function per rule of ARCHITECTURE section 2.2, for test_site.c and test_image.c. They are
 * never called. Built with gcc -shared -nostdlib; instructions whose length matters are spelled out.
 */
#if defined(__x86_64__)

	.text

	.macro	begin name
	.p2align 4, 0xcc
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	.endm

	.macro	end name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.macro	push_pop_ret
	push	%rbx
	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.endm

begin push_first
	push_pop_ret
end push_first

begin push_rex
	push	%r15
	.cfi_def_cfa_offset 16
	pop	%r15
	.cfi_def_cfa_offset 8
	ret
end push_rex

begin push_immediate
	push	$1
	.cfi_def_cfa_offset 16
	pop	%rax
	.cfi_def_cfa_offset 8
	ret
end push_immediate

begin push_memory
	push	(%rdi)
	.cfi_def_cfa_offset 16
	pop	%rax
	.cfi_def_cfa_offset 8
	ret
end push_memory

	/* mov 7 bytes, as MPI_Waitall starts */
begin mov_push
	mov	.Lobject(%rip), %rax
	push_pop_ret
end mov_push

	/* two names for one place */
	.globl	mov_push_alias
	.type	mov_push_alias, @function
	.set	mov_push_alias, mov_push
	.size	mov_push_alias, 10

	/* AVX-512: vxorps %zmm0,%zmm0,%zmm0 (EVEX, 6 bytes) */
begin evex_push
	.byte	0x62, 0xf1, 0x7c, 0x48, 0x57, 0xc0
	push_pop_ret
end evex_push

	/* mov %rdi,%rax, vmovdqu64 (%rdi),%zmm0, then kmovw %k1,%esi: a mask register's value goes to an argument */
begin evex_writes_argument
	.byte	0x48, 0x89, 0xf8
	.byte	0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x07
	.byte	0xc5, 0xf8, 0x93, 0xf1
	push_pop_ret
end evex_writes_argument

	/* a site before EVEX instructions that a landing place may lie behind */
begin evex_behind_branch
	mov	$7, %eax
	push	%rbx
	.cfi_def_cfa_offset 16
1:	.byte	0x62, 0xf1, 0x7c, 0x48, 0x57, 0xc0
	dec	%eax
	jnz	1b
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
end evex_behind_branch

begin endbr_push
	endbr64
	push_pop_ret
end endbr_push

begin nop5_entry
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
	push_pop_ret
end nop5_entry

begin nop5_middle
	mov	%rdi, %rax
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
	push_pop_ret
end nop5_middle

begin nop5_only
	mov	%rdi, %rax
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
	ret
end nop5_only

begin nop4_middle
	mov	%rdi, %rax
	.byte	0x0f, 0x1f, 0x40, 0x00
	push_pop_ret
end nop4_middle

begin nop_entry
	nop
	ret
end nop_entry

begin nop2_entry
	.byte	0x66, 0x90
	ret
end nop2_entry

begin nop7_entry
	.byte	0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00
	push_pop_ret
end nop7_entry

begin cs_nop_entry
	.byte	0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00
	ret
end cs_nop_entry

	/* (a) */
begin ret_first
	ret
end ret_first

begin jump_indirect_first
	jmp	*%rax
end jump_indirect_first

begin call_indirect_before
	mov	%rdi, %rax
	call	*%rax
	push_pop_ret
end call_indirect_before

begin loop_before
	mov	%rdi, %rax
	loop	1f
	push	%rbx
1:	ret
end loop_before

begin jcc_later
	cmp	$0, %edi
	jne	1f
	xor	%eax, %eax
1:	ret
end jcc_later

begin jcc_far_later
	cmp	$0, %edi
	.byte	0x0f, 0x85
	.long	1f - . - 4
	xor	%eax, %eax
1:	ret
end jcc_far_later

begin call_later
	mov	%rdi, %rax
	call	hidden
	ret
end call_later

begin jump_later
	xor	%eax, %eax
	jmp	hidden
end jump_later

	/* (b) by the instruction */
begin stack_moved
	sub	$24, %rsp
	cmp	$0, %edi
	je	1f
	xor	%eax, %eax
1:	add	$24, %rsp
	ret
end stack_moved

	/* (b) by .eh_frame, which knows better than the instructions passed */
begin cfa_moved
	mov	%rdi, %rax
	.cfi_def_cfa_offset 16
	push	%rbx
	.cfi_def_cfa_offset 24
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
end cfa_moved

begin cfa_other_register
	mov	%rdi, %rax
	.cfi_def_cfa_register %rbp
	push	%rbx
	pop	%rbx
	ret
end cfa_other_register

	.p2align 4, 0xcc
	.globl	no_frame
	.type	no_frame, @function
no_frame:
	mov	%rdi, %rax
	push	%rbx
	pop	%rbx
	ret
	.size	no_frame, . - no_frame

	/* (c) */
begin branch_onto
	mov	%rsi, %rax
1:	push	%rbx
	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	dec	%rax
	jne	1b
	ret
end branch_onto

begin branch_before
	mov	%rsi, %rax
1:	mov	%rdi, %r10
	push	%rbx
	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	dec	%rax
	jne	1b
	ret
end branch_before

begin branch_after
	mov	%rsi, %rax
	push	%rbx
	.cfi_def_cfa_offset 16
1:	dec	%rax
	jne	1b
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
end branch_after

begin branch_entry
.Lbranch_entry:
	mov	%rsi, %rax
	push	%rbx
	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	jne	.Lbranch_entry
	ret
end branch_entry

begin call_onto
	mov	%rsi, %rax
1:	push	%rbx
	.cfi_def_cfa_offset 16
	call	1b
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
end call_onto

begin symbol_inside
	mov	%rsi, %rax
	.globl	second_entry
second_entry:
	push_pop_ret
end symbol_inside

begin table_same_stack
	mov	%edi, %eax
	cmp	$4, %eax
	ja	1f
	jmp	*%rdx
1:	ret
end table_same_stack

begin table_other_stack
	mov	%edi, %eax
	cmp	$4, %eax
	ja	1f
	push	%rbx
	.cfi_def_cfa_offset 16
	jmp	*%rdx
	.cfi_def_cfa_offset 8
1:	ret
end table_other_stack

begin tail_call_got
	mov	%edi, %eax
	cmp	$4, %eax
	ja	1f
	jmp	*.Lobject(%rip)
1:	ret
end tail_call_got

begin undecodable_later
	mov	%rsi, %rax
	push_pop_ret
	.byte	0x06, 0x06
end undecodable_later

	.p2align 4, 0xcc
	.globl	no_size
	.type	no_size, @function
no_size:
	.cfi_startproc
	mov	%rsi, %rax
	push_pop_ret
	.cfi_endproc

	/* (d) */
begin argument_written
	mov	$1, %esi
	push_pop_ret
end argument_written

begin argument_byte_written
	mov	$1, %dl
	push_pop_ret
end argument_byte_written

begin argument_implicit
	cqto
	push_pop_ret
end argument_implicit

begin argument_string
	rep stosb
	push_pop_ret
end argument_string

begin argument_exchanged
	xchg	%r8, %r10
	push_pop_ret
end argument_exchanged

begin argument_read
	mov	%rdi, %r10
	mov	%rsi, (%rdi)
	cmp	%rdx, %rcx
	push_pop_ret
end argument_read

	/* (e) and what must not be probed at all */
begin syscall_first
	syscall
	push_pop_ret
end syscall_first

begin syscall_before
	mov	$39, %eax
	syscall
	push_pop_ret
end syscall_before

begin lock_then_push
	lock incl (%rdi)
	push_pop_ret
end lock_then_push

begin lock_first
	lock incl (%rdi)
	ret
end lock_first

begin breakpoint_first
	int3
	ret
end breakpoint_first

begin halt_first
	hlt
end halt_first

begin invalid_first
	.byte	0x06
	ret
end invalid_first

begin exchange_like_nop
	.byte	0x41, 0x90
	ret
end exchange_like_nop

begin word_branch
	.byte	0x66, 0x70, 0x00
	ret
end word_branch

begin notrack_jump
	.byte	0x3e, 0xff, 0xe0
end notrack_jump

begin vector_refused
	vpxor	%xmm0, %xmm0, %xmm0
	ret
end vector_refused

begin vector_stepped
	vxorps	%xmm0, %xmm0, %xmm0
	ret
end vector_stepped

	.p2align 4, 0xcc
	.globl	chosen_late
	.type	chosen_late, @gnu_indirect_function
chosen_late:
	lea	hidden(%rip), %rax
	ret
	.size	chosen_late, . - chosen_late

	.p2align 4, 0xcc
	.hidden	hidden
	.globl	hidden
	.type	hidden, @function
hidden:
	.cfi_startproc
	ret
	.cfi_endproc
	.size	hidden, . - hidden

	/* a wrapper as libc has them: both paths, for iosites */
begin write
	cmpb	$0, .Lobject(%rip)
	je	1f
	mov	$1, %eax
	syscall
	ret
1:	sub	$40, %rsp
	.cfi_def_cfa_offset 48
	mov	$1, %eax
	syscall
	add	$40, %rsp
	.cfi_def_cfa_offset 8
	ret
end write

#else

	.text
	.globl	push_first
	.type	push_first, %function
push_first:
	.cfi_startproc
	ret
	.cfi_endproc
	.size	push_first, . - push_first

#endif

	.data
	.p2align 3
	.globl	object
#if defined(__x86_64__)
	.type	object, @object
#else
	.type	object, %object
#endif
object:
.Lobject:
	.quad	0
	.size	object, 8

#if defined(__x86_64__)
	.section .note.GNU-stack, "", @progbits
#else
	.section .note.GNU-stack, "", %progbits
#endif
