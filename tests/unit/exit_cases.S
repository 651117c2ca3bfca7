/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ways in which a function can be left, for test_exits.c. They are never called. */
	.text

	.macro	begin name
	.p2align 4
	.globl	\name
#if defined(__x86_64__)
	.type	\name, @function
#else
	.type	\name, %function
#endif
\name:
	.cfi_startproc
	.endm

	.macro	end name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	/* a function that is not exported; its name does not match that of the others */
	.p2align 4
#if defined(__x86_64__)
	.type	leaf, @function
leaf:
	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
#else
	.type	leaf, %function
leaf:
	.cfi_startproc
	nop
	ret
#endif
	.cfi_endproc
	.size	leaf, . - leaf

#if defined(__x86_64__)

begin two_returns
	push	%rbx
	.cfi_def_cfa_offset 16
	test	%rdi, %rdi
	je	1f
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
1:	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret	$8
end two_returns

	/* as compilers write loops for AVX-512: EVEX instructions, vzeroupper, two exits */
begin vectors
	push	%rbx
	.cfi_def_cfa_offset 16
1:	.byte	0x62, 0xf1, 0xfd, 0x48, 0x28, 0x04, 0x07	/* vmovapd (%rdi,%rax,1),%zmm0 */
	.byte	0x62, 0xf2, 0xf5, 0x49, 0x98, 0xc2	/* vfmadd132pd %zmm2,%zmm1,%zmm0{%k1} */
	.byte	0x62, 0xf3, 0xfd, 0x48, 0x39, 0xc1, 0x01	/* vextracti64x4 $1,%zmm0,%ymm1 */
	dec	%esi
	jnz	1b
	test	%rdi, %rdi
	je	2f
	pop	%rbx
	.cfi_def_cfa_offset 8
	.byte	0xc5, 0xf8, 0x77	/* vzeroupper */
	ret
2:	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
end vectors

	/* as a compiler names functions of parallel regions */
begin region._omp_fn.0
	push	%rbx
	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
end region._omp_fn.0

begin region._omp_fn.1
	nop
	.byte	0x06
	nop
	ret
end region._omp_fn.1

begin _ZN3sim4stepEiPd._omp_fn.2
	nop
	ret
end _ZN3sim4stepEiPd._omp_fn.2

	/* a type with a blank in its name: unsigned long */
begin _ZN3sim4stepEm._omp_fn.3
	nop
	ret
end _ZN3sim4stepEm._omp_fn.3

begin .omp_outlined..2
	nop
	ret
end .omp_outlined..2

begin padded_return
	push	%rbx
	pop	%rbx
	rep ret
end padded_return

	/* a return that is a jump: the stack is another */
begin thunk
	push	%rdi
	.cfi_def_cfa_offset 16
	ret
	.cfi_def_cfa_offset 8
	ret
end thunk

begin tail_call
	push	%rbx
	.cfi_def_cfa_offset 16
	pop	%rbx
	.cfi_def_cfa_offset 8
	jmp	leaf
end tail_call

begin tail_call_alone
	mov	%rdi, %rsi
	jmp	leaf
end tail_call_alone

begin jump_alone
	jmp	leaf
end jump_alone

begin tail_call_exported
	push	%rbx
	pop	%rbx
	jmp	other_family
end tail_call_exported

	.p2align 4
	.globl	other_family
	.type	other_family, @function
other_family:
	.cfi_startproc
	ret
	.cfi_endproc
	.size	other_family, . - other_family

begin tail_call_slot
	push	%rbx
	pop	%rbx
	jmp	*object@GOTPCREL(%rip)
end tail_call_slot

begin tail_call_register
	test	%rdi, %rdi
	je	1f
	jmp	*%rax
1:	ret
end tail_call_register

begin table_inside
	push	%rbx
	.cfi_def_cfa_offset 16
	jmp	*%rax
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
end table_inside

begin conditional
	test	%rdi, %rdi
	je	leaf
	ret
end conditional

begin with_cold_part
	push	%rbx
	.cfi_def_cfa_offset 16
	test	%rdi, %rdi
	jne	elsewhere
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
end with_cold_part

begin refused_return
	push	%rbx
	pop	%rbx
	.byte	0x2e, 0xc3
end refused_return

begin no_exit
	push	%rbx
1:	jmp	1b
end no_exit

begin undecodable
	push	%rbx
	pop	%rbx
	ret
	.byte	0x06
end undecodable

	.p2align 4
	.globl	no_size
	.type	no_size, @function
no_size:
	.cfi_startproc
	push	%rbx
	pop	%rbx
	ret
	.cfi_endproc

	.globl	no_size_no_frame
	.type	no_size_no_frame, @function
no_size_no_frame:
	ret

begin _Z5solvePdS_
	ret
end _Z5solvePdS_

	.section .text.unlikely, "ax", @progbits
	.type	elsewhere, @function
elsewhere:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	mov	%rdi, %rax
	pop	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	elsewhere, . - elsewhere

#else

begin two_returns
	cbz	x0, 1f
	ret
1:	ret
end two_returns

begin tail_call
	nop
	b	leaf
end tail_call

#endif

	.data
	.p2align 3
	.globl	object
object:
	.quad	0

#if defined(__x86_64__)
	.section .note.GNU-stack, "", @progbits
#else
	.section .note.GNU-stack, "", %progbits
#endif
