/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * External functions as data (ARCHITECTURE section 5): one row per function says what each argument
 * means. The kernel side reads arguments by these roles; nothing else knows a function by name.
 */
#ifndef VAPRO_FUNCTIONS_H
#define VAPRO_FUNCTIONS_H

#include <stddef.h>
#include <vapro/bundle.h>
#include <vapro/bpf/abi.h>

struct function_row {
	const char *symbol; /* MPI_Send */
	const char *image;  /* glob of the image's base name; `exe` is the main executable; NULL: an MPI library */
	enum vapro_class class;
	bool threads; /* communication of the threads of one process */
	enum kernel_row_kind kind;
	uint8_t forked;		  /* KERNEL_ROW_FORK: the argument that is the outlined function */
	bool own_sites;		  /* exits are probes of their own, returns are not hijacked */
	bool blocking;		  /* may wait for a peer */
	bool polling;		  /* off by default: called in loops, or bookkeeping only */
	bool progress;		  /* a polling function that queries how far communication is; learnt at the start */
	bool common;		  /* one of the few to probe where each probe is expensive */
	struct vapro_roles roles; /* which argument means what; shared with the kernel side */
};

extern const struct function_row function_rows[];
extern const unsigned int function_row_count;

#define FUNCTIONS_COMMON_MAX 40

/*
 * Rows of thread libraries, and rows added while running: a site's own and the functions that
 * compilers outlined. All rows share one number space, which probes' cookies carry: the table above,
 * then thread rows, then added ones. There is one table, as there is one kernel side.
 */
extern const struct function_row thread_rows[];
extern const unsigned int thread_row_count;

/* The row of a number, or NULL. */
const struct function_row *functions__row(unsigned int number);

/* One more than the largest number in use. */
unsigned int functions__end(void);

/* Adds a row; its texts are copied. Returns its number, -ENOSPC where the table is full, or -ENOMEM. */
int functions__add(const struct function_row *row);

/* Frees an added row's number, which is reused as late as possible: records may still be under way. */
void functions__drop(unsigned int number);

/* Forgets all added rows. */
void functions__clear(void);

/* Index of the row of a symbol, or -1. PMPI_X finds MPI_X. */
int functions__find(const char *symbol);

/* Bit i is set where the row reads argument i (site__choose). Arguments on the stack are not counted. */
unsigned int functions__arguments(const struct function_row *row);

/* Whether a call of the row returns without waiting for anything: it begins an operation, or ends none. */
bool functions__never_waits(const struct function_row *row);

/*
 * Functions may be left out, unit by unit, where calls cost too much. Those that never wait: each one that loops call
 * is a unit, and one unit is all others. Of those that can wait, each that programs call in short loops has a unit: it
 * is left out only where its calls are measured to wait hardly ever. A bitmap of units says which are left out; it
 * means the same to all ranks and runs of one version. All other functions have unit -1.
 */
#define FUNCTIONS_UNITS 16
#define FUNCTIONS_UNITS_TEXT 192			      /* bytes of the names of all units */
#define FUNCTIONS_UNITS_WAITING (0xffffu & ~KERNEL_SET_POSTS) /* units of functions that can wait */

static inline bool functions__unit_waits(int unit)
{
	return unit >= 0 && FUNCTIONS_UNITS_WAITING >> unit & 1;
}

int functions__unit(unsigned int number);
int functions__other_unit(void);

/* What a program's image begins with: its earlier run showed what is too expensive. */
struct functions_spared {
	uint32_t units;				/* left out */
	bool closed;				/* the functions below are not probed at first */
	uint64_t costly[KERNEL_FUNCTIONS / 64]; /* rows that are closed in duty cycles, as a bitmap */
};

static inline bool functions__is_costly(const struct functions_spared *spared, uint64_t row)
{
	return spared->costly[row / 64] >> row % 64 & 1;
}

/* "Isend,Irecv,others"; what does not fit is left out. */
void functions__name_units(uint32_t set, char *text, size_t size);

/* Reads such a text. Returns false where it names anything but units, or nothing. */
bool functions__read_units(const char *text, uint32_t *set);

/* Argument bits for a probe's cookie and KERNEL_SITE_PLAIN, or 0 where a call needs more than registers. */
uint32_t functions__plain(const struct function_row *row);

#endif
