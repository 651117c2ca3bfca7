# SPDX-License-Identifier: GPL-2.0-or-later
# Test workloads and noise injectors, build/tools/NAME: included by the Makefile, also usable alone
# (make -f tools/workloads.mk workloads). MPI programs: demo_mpi random_work fifo_reader flat_out
# iterate rounds busy_calls hang sleepers hazards classes stalls paced throw stencil steps requests handed_over paths wrapped hybrid walk nested two_mpi large_counts, with the frame
# of loop.h posts sendrecv wrapped_twice kernels3 mpiio two_parts sweeps one_sided farm hybrid_steps (and omp_small, without MPI), and kernels that log their work: cg ft
# ep pagerank; plain ones: peers bystander late_mpi unmap hostile
# barriers crew many solver hog memory_hog fifo_writer pauser; with OpenMP: team, crew_omp and regions, and team_llvm, crew_llvm
# and regions_llvm, the same with the other library.

BUILD ?= build
MPICC ?= mpicc
MPICXX ?= mpicxx
MPICC_MPICH ?= mpicc.mpich
MPIF90 ?= mpif90
MPIF90_MPICH ?= mpif90.mpich
CLANG ?= clang

# the programs of make accept WHAT=programs
LOOPS_MPI := posts sendrecv wrapped_twice kernels3 mpiio two_parts sweeps one_sided farm
WORKLOAD_MPI_C := demo_mpi random_work fifo_reader flat_out iterate sleepers hazards steps requests handed_over wrapped classes \
	rounds busy_calls stalls paced walk cg ft ep pagerank nested hang two_mpi $(LOOPS_MPI)
WORKLOAD_MPI_CXX := throw stencil
# the same without debug information, and stripped
NAMELESS := $(BUILD)/tools/stencil_plain $(BUILD)/tools/stencil_stripped
WORKLOAD_C := peers bystander late_mpi unmap barriers crew many hostile
WORKLOAD_CXX := solver
INJECT_C := hog memory_hog fifo_writer pauser

WORKLOAD_FLAGS := -O2 -g -Wall -Wextra -Werror
WORKLOAD_CFLAGS := -std=c11 -D_GNU_SOURCE $(WORKLOAD_FLAGS)
WORKLOAD_CXXFLAGS := -std=c++17 $(WORKLOAD_FLAGS)

# the same programs under the other ABI
MPICH_TOO := $(addprefix $(BUILD)/tools/mpich_,demo_mpi steps requests handed_over iterate nested sleepers large_counts)
# and the same calls from Fortran, by each of its bindings
BINDINGS := h use f08
FORTRAN := $(foreach b,$(BINDINGS),$(BUILD)/tools/steps_$b)
MPICH_FORTRAN := $(foreach b,$(BINDINGS),$(BUILD)/tools/mpich_steps_$b)
# with and without frame pointers
PATHS := $(BUILD)/tools/paths $(BUILD)/tools/paths_unframed

# its wrappers' frames: without unwind information
NESTED := $(BUILD)/tools/nested_unseen

# a program with MPI linked in, which maps no MPI library
STATIC_MPI := $(BUILD)/tools/static_mpi
MPICH_DIR ?= /usr/lib/x86_64-linux-gnu
MPICH_INCLUDE ?= /usr/include/x86_64-linux-gnu/mpich

# libraries with the functions of MPI by which vaprod recognises one
UNMAPPED := $(BUILD)/tools/unmapped/libmpi.so.40
STAND_IN := $(BUILD)/tools/stand_in/libmpi.so.40

# the same programs, libgomp's and libomp's
TEAMS := $(addprefix $(BUILD)/tools/,team crew_omp omp_small regions \
	$(if $(filter x86_64,$(shell uname -m)),regions_avx512))
HYBRID := $(addprefix $(BUILD)/tools/,hybrid hybrid_steps)
TEAMS_LLVM := $(addprefix $(BUILD)/tools/,team_llvm crew_llvm regions_llvm)

WORKLOADS := $(NAMELESS) $(MPICH_TOO) $(FORTRAN) $(MPICH_FORTRAN) $(PATHS) $(NESTED) $(BUILD)/tools/libwrapper.so $(BUILD)/tools/libprofiler.so $(BUILD)/tools/libmoved.so $(STATIC_MPI) $(UNMAPPED) $(STAND_IN) $(TEAMS) $(TEAMS_LLVM) $(HYBRID) \
	$(addprefix $(BUILD)/tools/,$(WORKLOAD_MPI_C) $(WORKLOAD_MPI_CXX) $(WORKLOAD_C) $(WORKLOAD_CXX) $(INJECT_C))

.PHONY: workloads
workloads: $(WORKLOADS)

$(addprefix $(BUILD)/tools/,$(WORKLOAD_MPI_C)): $(BUILD)/tools/%: tools/workloads/%.c tools/workloads/truth.h tools/workloads/common.h
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(MPICC) $(WORKLOAD_CFLAGS) -o $@ $(filter %.c,$^) -lm

$(BUILD)/tools/hazards: tools/workloads/hazards_stacks.c tools/workloads/hazards.h

$(addprefix $(BUILD)/tools/,$(LOOPS_MPI) hybrid_steps omp_small peers): tools/workloads/loop.h tools/workloads/loop_mpi.h

# functions are bound before the first fragment
$(addprefix $(BUILD)/tools/,cg ft ep pagerank): tools/workloads/path.h
$(addprefix $(BUILD)/tools/,cg ft ep pagerank): WORKLOAD_CFLAGS += -Wl,-z,now

$(BUILD)/tools/walk: tools/workloads/lines.h

# the usual build of an application: frame pointers are nowhere
$(BUILD)/tools/wrapped_twice $(BUILD)/tools/sweeps: WORKLOAD_CFLAGS += -fomit-frame-pointer

# each marked line is one call-site, whatever the compiler
$(BUILD)/tools/steps $(BUILD)/tools/mpich_steps: WORKLOAD_CFLAGS += -fno-unroll-loops

$(MPICH_TOO): $(BUILD)/tools/mpich_%: tools/workloads/%.c tools/workloads/truth.h tools/workloads/common.h
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(MPICC_MPICH) $(WORKLOAD_CFLAGS) -o $@ $< -lm

$(STATIC_MPI): tools/workloads/flat_out.c tools/workloads/truth.h tools/workloads/common.h
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(WORKLOAD_CFLAGS) -I$(MPICH_INCLUDE) -o $@ $< $(MPICH_DIR)/libmpich.a -lhwloc -lucp -lucs -lm

$(UNMAPPED): tools/workloads/unmapped.c
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(WORKLOAD_CFLAGS) -shared -fPIC -o $@ $<

$(STAND_IN): tools/workloads/stand_in.c
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(WORKLOAD_CFLAGS) -fPIC -shared -Wl,-soname,libmpi.so.40 -o $@ $<

# each has a module directory of its own: they compile at the same time
FORTRAN_FLAGS = -O2 -g -ffree-line-length-none -fallow-argument-mismatch -DBINDING_$(shell echo $(1) | tr a-z A-Z)

$(FORTRAN): $(BUILD)/tools/steps_%: tools/workloads/steps.F90
	$(Q)mkdir -p $@.mod
	@echo "  CC    $@"
	$(Q)$(MPIF90) $(call FORTRAN_FLAGS,$*) -J$@.mod -o $@ $<

$(MPICH_FORTRAN): $(BUILD)/tools/mpich_steps_%: tools/workloads/steps.F90
	$(Q)mkdir -p $@.mod
	@echo "  CC    $@"
	$(Q)$(MPIF90_MPICH) $(call FORTRAN_FLAGS,$*) -J$@.mod -o $@ $<

$(BUILD)/tools/libmoved.so: tools/workloads/moved.c
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(WORKLOAD_CFLAGS) -fPIC -shared -o $@ $<

# with frame pointers, as some distributions build all they ship
$(BUILD)/tools/libwrapper.so $(BUILD)/tools/libprofiler.so: $(BUILD)/tools/lib%.so: tools/workloads/%.c
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(MPICC) $(WORKLOAD_CFLAGS) -fno-omit-frame-pointer -fPIC -shared -o $@ $<

$(BUILD)/tools/paths: tools/workloads/paths.c
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(MPICC) $(WORKLOAD_CFLAGS) -fno-omit-frame-pointer -fno-optimize-sibling-calls -o $@ $<

$(BUILD)/tools/paths_unframed: tools/workloads/paths.c
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(MPICC) $(WORKLOAD_CFLAGS) -fomit-frame-pointer -fno-optimize-sibling-calls -o $@ $<

$(BUILD)/tools/nested_unseen: tools/workloads/nested.c tools/workloads/common.h
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(MPICC) $(WORKLOAD_CFLAGS) -g0 -fno-asynchronous-unwind-tables -fno-unwind-tables -o $@ $<

$(addprefix $(BUILD)/tools/,$(WORKLOAD_MPI_CXX)): $(BUILD)/tools/%: tools/workloads/%.cpp
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(MPICXX) $(WORKLOAD_CXXFLAGS) -o $@ $<

$(BUILD)/tools/stencil_plain: $(BUILD)/tools/stencil
	$(Q)strip --strip-debug $< -o $@

$(BUILD)/tools/stencil_stripped: $(BUILD)/tools/stencil
	$(Q)strip $< -o $@

$(addprefix $(BUILD)/tools/,$(WORKLOAD_C)): $(BUILD)/tools/%: tools/workloads/%.c tools/workloads/truth.h tools/workloads/common.h
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(WORKLOAD_CFLAGS) -o $@ $< -pthread

$(addprefix $(BUILD)/tools/,$(WORKLOAD_CXX)): $(BUILD)/tools/%: tools/workloads/%.cpp tools/workloads/common.h
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CXX) $(WORKLOAD_CXXFLAGS) -o $@ $<

$(TEAMS): $(BUILD)/tools/%: tools/workloads/truth.h tools/workloads/common.h
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(WORKLOAD_CFLAGS) -fopenmp -o $@ $(filter %.c,$^)

$(TEAMS_LLVM): $(BUILD)/tools/%: tools/workloads/truth.h tools/workloads/common.h
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CLANG) $(WORKLOAD_CFLAGS) -fopenmp -o $@ $(filter %.c,$^)

$(BUILD)/tools/omp_small: tools/workloads/omp_small.c
$(BUILD)/tools/team $(BUILD)/tools/team_llvm: tools/workloads/team.c
$(BUILD)/tools/crew_omp $(BUILD)/tools/crew_llvm: tools/workloads/crew.c
$(BUILD)/tools/regions $(BUILD)/tools/regions_llvm $(BUILD)/tools/regions_avx512: tools/workloads/regions.c

# with instructions that not every decoder knows; it need not run here
$(BUILD)/tools/regions_avx512: WORKLOAD_CFLAGS += -O3 -march=x86-64-v4 -mprefer-vector-width=512

$(HYBRID): $(BUILD)/tools/%: tools/workloads/%.c tools/workloads/truth.h tools/workloads/common.h
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(MPICC) $(WORKLOAD_CFLAGS) -fopenmp -o $@ $<

$(addprefix $(BUILD)/tools/,$(INJECT_C)): $(BUILD)/tools/%: tools/inject/%.c tools/inject/eventlog.h tools/inject/stop.h tools/workloads/common.h tools/workloads/lines.h
	$(Q)mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(WORKLOAD_CFLAGS) -o $@ $<
