# SPDX-License-Identifier: GPL-2.0-or-later
# make            build/vaprod and build/vapro; installs nothing, V=1 shows commands
# make deps       installs the packages that are missing (Debian 12, as root)
# make demo       the main job, for a stranger; make demo-nodes  one job on two nodes, analysed by a worker
# make check      all tests; make check-quick  those without root and without programs of vapro, in some minutes
# make coverage   the share of lines that unit tests execute; make tidy  what clang-tidy finds, by .clang-tidy
# make accept, make bench: figures, no tests (WHAT=demo, WHAT="programs:coverage --program posts")
# make accuracy   what it finds of what is known to be there: simulated, papers, live
# make check-vm   other kernels and CPUs, in emulated machines
# make fuzz       hostile captures, checkpoints, blocks, lines and requests (WHAT="block lines" MINUTES=10)
# make ARCH=arm64 build/arm64/vaprod and build/arm64/vapro, cross-built; needs no arm64 packages here
# make install PREFIX=/usr DESTDIR=; make deb  packages of Debian, in build/deb
# make format, make clean, make help

PREFIX ?= /usr/local
UNITS ?= $(PREFIX)/lib/systemd/system
VERSION := $(shell sed -n 's/^.define VAPRO_VERSION "\(.*\)"/\1/p' include/vapro/version.h)
Q = $(if $(V),,@)
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
CLANG_WARNINGS := -Wall -Wextra -Werror -Wstrict-prototypes -Wmissing-prototypes
WARNINGS = $(CLANG_WARNINGS)

# Debian's names of CPUs: amd64, arm64; the kernel's BPF headers say x86.
debian_arch = $(patsubst x86_64,amd64,$(patsubst x86,amd64,$(patsubst aarch64,arm64,$(1))))
HERE := $(call debian_arch,$(shell uname -m))
ARCH ?= $(HERE)
override ARCH := $(call debian_arch,$(ARCH))
BPF_ARCH := $(patsubst amd64,x86,$(ARCH))
ifeq ($(ARCH),$(HERE))
B = build
CC = gcc
WARNINGS += -Wshadow=local -Wno-format-truncation
# LTO="-flto=auto -ffat-lto-objects" optimises the programs as a whole: gcc then takes 2.5 times as long to build them,
# and an analysis takes 2 % less time.
LTO =
DEPS = build
MPICC_MPICH = mpicc.mpich -Wno-stringop-overflow
else
B = build/$(ARCH)
TRIPLE := $(patsubst amd64,x86_64,$(patsubst arm64,aarch64,$(ARCH)))-linux-gnu
SYSROOT = build/vm/sysroot-$(ARCH)
CC = $(CLANG) --target=$(TRIPLE) --sysroot=$(SYSROOT) -fuse-ld=lld -Wno-unused-command-line-argument
BPF_INCLUDES = -I$(SYSROOT)/usr/include
DEPS = cross
# The sysroot's compiler wrappers run there only. MPI's own dependencies are the loader's to find.
MPI_LIBS = $(SYSROOT)/usr/lib/$(TRIPLE)
MPICC = $(CC) -I$(MPI_LIBS)/openmpi/include -Wl,--allow-shlib-undefined $(MPI_LIBS)/libmpi.so.40
MPICXX = $(subst $(CLANG),$(CLANG)++,$(MPICC))
MPICH_DIR = $(MPI_LIBS)
MPICH_INCLUDE = $(SYSROOT)/usr/include/$(TRIPLE)/mpich
MPICC_MPICH = $(CC) -I$(MPICH_INCLUDE) -Wl,--allow-shlib-undefined $(MPI_LIBS)/libmpich.so.12
# gfortran's modules are text, the same for every CPU; it links with the libraries of its own packages.
MPI_MODULES = $(wildcard $(MPI_LIBS)/fortran/gfortran-mod-*)
GFORTRAN = $(TRIPLE)-gfortran -Wl,--allow-shlib-undefined -Wl,--no-as-needed
MPIF90 = $(GFORTRAN) -I$(MPI_LIBS)/openmpi/include -I$(MPI_MODULES)/openmpi $(addprefix $(MPI_LIBS)/, \
	libmpi_usempif08.so.40 libmpi_usempi_ignore_tkr.so.40 libmpi_mpifh.so.40 libmpi.so.40)
MPIF90_MPICH = $(GFORTRAN) -I$(MPICH_INCLUDE) -I$(MPI_MODULES)/mpich $(addprefix $(MPI_LIBS)/,libmpichfort.so.12 libmpich.so.12)
endif

CPPFLAGS = -D_GNU_SOURCE -Iinclude -Iuser -I$(B)
# Optimisation costs half of the building time. It is felt where bundles come in bulk: an analysis with -O2 there takes 5 %
# more instructions. What runs once a command or a window has -O1. CFLAGS of the environment hold for all.
ifeq ($(origin CFLAGS),undefined)
BULK = analysis base capture collect detect model node
$(patsubst %,$(B)/user/%/%.o,$(filter-out $(BULK),$(notdir $(wildcard user/*)))): CFLAGS += -O1
endif
CFLAGS ?= -O3 -g
CFLAGS += -std=gnu11 $(WARNINGS)
# the decoder of instructions, by CPU
DECODER = $(if $(filter amd64,$(ARCH)),-lZydis,-lcapstone)
LDLIBS = -lbpf -ldw -lelf -liberty $(DECODER) -lcjson -lgsl -lgslcblas -lnats -lzstd -lz -lm
# What sanitizers report needs functions and lines: the types take a quarter of the compiler's time, and of the disk.
SANITIZE = -fsanitize=address,undefined -fno-omit-frame-pointer -O1 -g1

LIB_SOURCES := $(filter-out user/cli/vaprod.c user/cli/vapro.c user/cli/vapro-worker.c,$(wildcard user/*/*.c user/*/*/*.c))
LIB_OBJECTS := $(LIB_SOURCES:%.c=$(B)/%.o)
TEST_OBJECTS := $(LIB_SOURCES:%.c=$(B)/test/%.o)
# A room of unit tests is a program; so is each test that lies beside the rooms, for its linking.
UNIT_ROOMS := $(sort $(patsubst tests/unit/%/,%,$(dir $(wildcard tests/unit/*/test_*.c))))
UNIT_ALONE := $(patsubst tests/unit/%.c,$(B)/test/%,$(wildcard tests/unit/test_*.c))
unit_files = $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/$(1)/test_*.c))
UNIT_SHARED := $(patsubst tests/unit/%.c,$(B)/test/shared/%.o,$(filter-out tests/unit/test_%.c tests/unit/room.c,$(wildcard tests/unit/*.c)))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all deb deps help demo demo-nodes check check-unit check-quick check-clang tidy check-live check-vm coverage unit-run fuzz guest-programs accept accuracy bench slurm install clean format

all: $(B)/vaprod $(B)/vapro $(B)/vapro-worker $(if $(SYSROOT),,$(B)/vapro.schema.json)

# The script alone knows package names. What only builds installs nothing: it names what is missing, and `make deps`
# installs it; so do the targets that set up a fresh Debian 12 machine by themselves.
MORE_THAN_BUILDS = $(filter-out all help install clean format,$(or $(MAKECMDGOALS),all))
DEPS_MODE = $(if $(MORE_THAN_BUILDS),,missing)

$(B)/.deps-build: tools/deps.sh
	$(Q)mkdir -p $(B)
	$(Q)tools/deps.sh $(DEPS_MODE) $(DEPS)
	$(Q)$(if $(SYSROOT),tools/vm/fetch.sh sysroot $(ARCH) >/dev/null)
	$(Q)touch $@

# one after the other: packages are installed by one at a time
$(B)/.deps-test: $(B)/.deps-build
	$(Q)tools/deps.sh $(DEPS_MODE) test
	$(Q)touch $@

$(B)/.deps-bench: $(B)/.deps-test
	$(Q)tools/deps.sh $(DEPS_MODE) bench
	$(Q)touch $@

$(B)/.deps-package: $(B)/.deps-build
	$(Q)tools/deps.sh $(DEPS_MODE) package
	$(Q)touch $@

$(B)/.deps-tidy: $(B)/.deps-build
	$(Q)tools/deps.sh $(DEPS_MODE) tidy
	$(Q)touch $@

deps: $(B)/.deps-test

help:
	$(Q)sed -n '2,/^$$/s/^# //p' Makefile

$(B)/vapro.bpf.o: bpf/vapro.bpf.c $(wildcard bpf/*.h) tools/bpf_stack.awk $(wildcard include/vapro/bpf/*.h) vmlinux/vmlinux.h | $(B)/.deps-build
	@echo "  BPF   $@"
	$(Q)$(CLANG) -g -O2 -mcpu=v3 -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -Ivmlinux -Iinclude -Ibpf $(BPF_INCLUDES) -Wall -Werror -c $< -o $@
	$(Q)llvm-objdump -dr --no-show-raw-insn $@ | awk -f tools/bpf_stack.awk

$(B)/vapro.skel.h: $(B)/vapro.bpf.o
	@echo "  SKEL  $@"
	$(Q)$(BPFTOOL) gen skeleton $< name vapro_bpf > $@.tmp
	$(Q){ echo '#include <vapro/bpf/abi.h>'; cat $@.tmp; } > $@ && rm $@.tmp

# The report page is a part of the program.
$(B)/page_web.h: tools/page.py $(wildcard user/page/web/*) | $(B)/.deps-build
	@echo "  PAGE  $@"
	$(Q)tools/page.py user/page/web > $@.tmp && mv $@.tmp $@

$(B)/user/page/page.o $(B)/test/user/page/page.o $(B)/fuzz/user/page/page.o: $(B)/page_web.h

# The skeleton is made before the first object; who includes it is in the dependency files.
$(B)/%.o: %.c | $(B)/vapro.skel.h $(B)/.deps-build
	$(Q)mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LTO) -MMD -MP -c $< -o $@

$(B)/test/%.o: %.c | $(B)/vapro.skel.h $(B)/.deps-build
	$(Q)mkdir -p $(@D)
	@echo "  CC    $< (sanitizers)"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(SANITIZE) -MMD -MP -c $< -o $@

$(B)/test/shared/%.o: tests/unit/%.c | $(B)/.deps-build
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(SANITIZE) -MMD -MP -c $< -o $@

$(B)/libvapro.a: $(LIB_OBJECTS)
	$(Q)rm -f $@
	$(Q)ar rcsP $@ $^ # files of one name lie in several folders

$(B)/test/libvapro.a: $(TEST_OBJECTS)
	$(Q)rm -f $@
	$(Q)ar rcsP $@ $^ # files of one name lie in several folders

# the live view, which the daemon has not
$(B)/vapro: LDLIBS += -lncursesw

$(B)/vaprod $(B)/vapro $(B)/vapro-worker: $(B)/%: $(B)/user/cli/%.o $(B)/libvapro.a
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LTO) $(LDFLAGS) $^ $(LDLIBS) -o $@

# ---- tests

$(B)/test/%_cases.so: tests/unit/%_cases.S | $(B)/.deps-build
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -nostdlib -o $@ $<

# Programs whose call-sites test_source names, with debug information in all the places where it may be, and without
SOURCE_CASES := $(addprefix $(B)/test/source_cases,_gcc _clang _fortran _plain _stripped _split _linked)
$(B)/test/source_cases_gcc: tests/unit/source_cases.cpp | $(B)/.deps-test
	$(Q)mkdir -p $(@D)
	$(Q)g++ -std=c++17 -O2 -g $< -o $@

$(B)/test/source_cases_clang: tests/unit/source_cases.cpp | $(B)/.deps-test
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -std=c++17 -O2 -g $< -lstdc++ -o $@

$(B)/test/source_cases_fortran: tests/unit/source_cases.F90 | $(B)/.deps-test
	$(Q)mkdir -p $(@D)
	$(Q)gfortran -O1 -fno-inline -g -J$(@D) $< -o $@

$(B)/test/source_cases_plain: $(B)/test/source_cases_gcc
	$(Q)strip --strip-debug $< -o $@

$(B)/test/source_cases_stripped: $(B)/test/source_cases_gcc
	$(Q)strip $< -o $@

# found by its link, beside the program and in .debug
$(B)/test/source_cases_split $(B)/test/source_cases_linked: $(B)/test/source_cases_%: $(B)/test/source_cases_gcc
	$(Q)mkdir -p $(@D)/.debug
	$(Q)objcopy --only-keep-debug $< $(@D)/$(if $(filter linked,$*),.debug/)source_cases_$*.debug
	$(Q)cd $(@D) && strip source_cases_gcc -o source_cases_$* && objcopy \
		--add-gnu-debuglink=$(if $(filter linked,$*),.debug/)source_cases_$*.debug source_cases_$*

# Its own allocator counts, and fails where a test requests it.
$(B)/test/test_memory: TEST_LINK = -Wl,$(subst $() ,$(comma),$(addprefix --wrap=,malloc calloc realloc aligned_alloc strdup free))
# Ends each window with a checkpoint where a test requests it.
$(B)/test/test_checkpoint $(B)/test/test_checkpoint_damage: TEST_LINK = -Wl,--wrap=analysis__end_window,--wrap=analysis__new
$(B)/test/test_checkpoint_damage: TEST_LINK += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
comma := ,

$(UNIT_ALONE): $(B)/test/test_%: tests/unit/test_%.c $(UNIT_SHARED) $(B)/test/libvapro.a | $(B)/.deps-test
	$(Q)mkdir -p $(@D)
	@echo "  TEST  $@"
	$(Q)$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) $(SANITIZE) -MMD -MP $< $(UNIT_SHARED) $(TEST_LINK) $(B)/test/libvapro.a -lcmocka $(LDLIBS) -o $@

# room.c calls the main() of each file by the file's name.
$(B)/test/unit/%.o: tests/unit/%.c | $(B)/vapro.skel.h $(B)/.deps-test
	$(Q)mkdir -p $(@D)
	@echo "  CC    $< (sanitizers)"
	$(Q)$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) $(SANITIZE) -Dmain=main_of_$(notdir $*) -Wno-missing-prototypes -MMD -MP -c $< -o $@

define unit_room
$(B)/test/$(1): tests/unit/room.c $(patsubst %,$(B)/test/unit/%.o,$(call unit_files,$(1))) $(UNIT_SHARED) $(B)/test/libaccuracy.a $(B)/test/libvapro.a
	@echo "  TEST  $$@"
	$$(Q)$$(CC) $$(CPPFLAGS) $$(CFLAGS) $$(SANITIZE) '-DUNIT_FILES=$(patsubst %,UNIT_FILE(%),$(notdir $(call unit_files,$(1))))' \
		$$^ -lcmocka $$(LDLIBS) -o $$@
endef
$(foreach room,$(UNIT_ROOMS),$(eval $(call unit_room,$(room))))

$(B)/tests/%: tests/counters/%.c $(B)/libvapro.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $< $(B)/libvapro.a $(LDLIBS) -o $@

$(B)/tests/%: tests/sites/%.c $(B)/libvapro.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $< $(B)/libvapro.a $(LDLIBS) -o $@

$(B)/tests/%: tests/moves/%.c $(B)/libvapro.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $< $(B)/libvapro.a $(LDLIBS) -o $@

$(B)/tests/%: tests/nodes/%.c $(B)/libvapro.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $< $(B)/libvapro.a $(LDLIBS) -o $@

$(B)/tests/%: tests/bench/%.c $(B)/libvapro.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $< $(B)/libvapro.a $(LDLIBS) -o $@

# An independent count of MPI calls, one library for each MPI.
$(B)/tests/list_functions: tests/count/list_functions.c $(B)/libvapro.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $< $(B)/libvapro.a $(LDLIBS) -o $@

$(B)/tests/count_functions.h: $(B)/tests/list_functions
	$(Q)$< > $@

COUNT := $(B)/tests/count_openmpi.so $(B)/tests/count_mpich.so
$(B)/tests/count_openmpi.so: COUNT_CC = mpicc.openmpi
$(B)/tests/count_mpich.so: COUNT_CC = mpicc.mpich
$(COUNT): tests/count/count.c $(B)/tests/count_functions.h | $(B)/.deps-test
	$(Q)$(COUNT_CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -I$(B)/tests -shared -fPIC \
		-Wl,--no-as-needed -o $@ $<

# The unit test once more without sanitizers, which stand in the way of some limits
$(B)/tests/confine: tests/unit/sandbox/test_confine.c $(B)/libvapro.a $(B)/test/site_cases.so | $(B)/.deps-test
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests/unit $(CFLAGS) $< $(B)/libvapro.a -lcmocka $(LDLIBS) -o $@

$(B)/tests/slow_rank: tests/vm/slow_rank.c tools/workloads/common.h | $(B)/.deps-test
	$(Q)mkdir -p $(@D)
	$(Q)$(MPICC) $(CPPFLAGS) $(CFLAGS) -Itools/workloads $< -o $@

$(B)/tests/score_clusters: tests/counters/score_clusters.c $(B)/tools/accuracy/v_measure.o $(B)/libvapro.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $^ $(LDLIBS) -o $@

# make accuracy: synthetic jobs of known truth
ACCURACY_SOURCES := $(wildcard tools/accuracy/*.c)
ACCURACY_TESTED := $(filter-out tools/accuracy/main.c,$(ACCURACY_SOURCES))
$(B)/tools/accuracy/accuracy: $(ACCURACY_SOURCES:%.c=$(B)/%.o) $(B)/libvapro.a
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(B)/test/libaccuracy.a: $(ACCURACY_TESTED:%.c=$(B)/test/%.o)
	$(Q)rm -f $@
	$(Q)ar rcsP $@ $^

$(B)/tests/make_skewed: tests/nodes/make_skewed.c $(ACCURACY_TESTED:%.c=$(B)/%.o) $(B)/libvapro.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $^ $(LDLIBS) -o $@

# make bench: its target, probes on demand, and the library it is compared with
BENCH := $(addprefix $(B)/tests/bench/,calls probes shim.so)
$(B)/tests/bench/calls: tests/bench/calls.c tools/workloads/truth.h tools/workloads/common.h | $(B)/.deps-test
	$(Q)mkdir -p $(@D)
	$(Q)mpicc -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -Itools/workloads -o $@ $< -lm

$(B)/tests/bench/shim.so: tests/bench/shim.c | $(B)/.deps-bench
	$(Q)mkdir -p $(@D)
	$(Q)mpicc -std=gnu11 -O2 -g -Wall -Wextra -Werror -shared -fPIC -o $@ $<

$(B)/tests/bench/probes: tests/bench/probes.c $(B)/libvapro.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $< $(B)/libvapro.a $(LDLIBS) -o $@

$(B)/tests/changed_text: tests/vm/changed_text.c | $(B)/.deps-build
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $< -o $@

# A libbpf whose kernel takes no code that reads counters, for tests of what is done then
$(B)/tests/refuse_counting.so: tests/counters/refuse_counting.c | $(B)/.deps-build
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -shared -fPIC $< -o $@

# what stands in for nodes, without any
NODE_PROGRAMS := $(addprefix $(B)/tests/,make_capture send_blocks play_nodes unpack_blocks make_skewed)

check: check-unit check-live

# The compiler of the cross-build warns of what gcc does not.
check-clang: all
	$(Q)printf '%s\n' $(LIB_SOURCES) $(wildcard user/cli/*.c) | sort -u | \
		xargs -P2 -n16 $(CLANG) $(CPPFLAGS) -std=gnu11 $(CLANG_WARNINGS) -fsyntax-only

tidy: all | $(B)/.deps-tidy
	$(Q)printf '%s\n' $(LIB_SOURCES) $(wildcard user/cli/*.c) | sort -u | \
		xargs -P2 -I{} clang-tidy --quiet {} -- $(CPPFLAGS) -std=gnu11

# Tests of programs get the build directory; the longest come first. Half of the time they wait: four at once.
TESTS_OF_PROGRAMS := $(patsubst %,tests/nodes/test_%.py,worker faults from publish) \
	$(patsubst %,tests/tools/test_%.py,speed page exports brokers site_logs examples options records variability fragments completion settings metrics unit mistakes many_causes node_check)
TESTS_OF_SOURCES := $(patsubst %,tests/tools/test_%.py,install programs layers words citations new_key live_runner shape coverage contradictions constants)

# a room and a file of it, by words of make's
UNIT_RUNS = $(foreach room,$(UNIT_ROOMS),$(patsubst %,$(B)/test/$(room):%,$(notdir $(call unit_files,$(room))))) $(UNIT_ALONE)
UNIT_PROGRAMS = $(addprefix $(B)/test/,$(UNIT_ROOMS)) $(UNIT_ALONE)
# What they read is always in build.
UNIT_INPUT = build/test/site_cases.so build/test/exit_cases.so $(SOURCE_CASES:$(B)/%=build/%)
RUN_TESTS = xargs -P4 -L1 tests/run.sh $(B)/test

check-unit: all check-clang $(UNIT_PROGRAMS) $(UNIT_INPUT) $(B)/tests/print_events $(NODE_PROGRAMS)
	$(Q){ printf '%s $(B)\n' $(TESTS_OF_PROGRAMS); printf '%s\n' $(subst :,' ',$(UNIT_RUNS)) $(TESTS_OF_SOURCES); } | $(RUN_TESTS)
	$(Q)tests/counters/compare_events.py $(B)/tests/print_events

# between commits, in some minutes: all but the tests that start programs of vapro
check-quick: all check-clang $(UNIT_PROGRAMS) $(UNIT_INPUT)
	$(Q)printf '%s\n' $(subst :,' ',$(UNIT_RUNS)) $(TESTS_OF_SOURCES) | $(RUN_TESTS)

# Lines of the product that the unit tests execute. Built without sanitizers, in a directory of its own.
coverage:
	$(Q)$(MAKE) --no-print-directory $(UNIT_INPUT)
	$(Q)$(MAKE) --no-print-directory B=build/coverage SANITIZE="--coverage -O0 -g1" unit-run
	$(Q)tools/coverage.py build/coverage

unit-run: $(UNIT_PROGRAMS)
	$(Q)find $(B) -name '*.gcda' -delete
	$(Q)printf '%s\n' $(subst :,' ',$(UNIT_RUNS)) | $(RUN_TESTS) >/dev/null || echo "some tests failed: $(B)/test/*.out"

# WHAT: names of some live tests. What fails gets a second chance, and is reported: build/flaky.json.
check-live: all workloads $(addprefix $(B)/tests/,print_sites confine sum_counts move_probes refuse_counting.so)
	$(Q)tests/live/run.py $(WHAT)

# Guests of this CPU run what is built here, the others the cross-build; tools/vm/guest.py packs these.
GUEST_FORTRAN = steps_f08 mpich_steps_h
KERNELS = cg ft ep pagerank
GUEST_PROGRAMS = $(addprefix tools/,classes hog iterate flat_out stalls mpich_demo_mpi steps mpich_steps $(GUEST_FORTRAN)) \
	tests/changed_text tests/slow_rank tests/refuse_counting.so $(addprefix tools/,$(KERNELS))

$(B)/.deps-vm: tools/deps.sh
	$(Q)mkdir -p $(B)
	$(Q)tools/deps.sh vm
	$(Q)touch $@

guest-programs: all $(addprefix $(B)/,$(GUEST_PROGRAMS))

check-vm: $(B)/.deps-vm guest-programs
	$(Q)$(MAKE) --no-print-directory ARCH=arm64 guest-programs
	$(Q)$(MAKE) --no-print-directory $(addprefix $(B)/tests/,sum_counts print_fragments score_clusters)
	$(Q)prove --timer tests/vm/*.t

# libFuzzer on what others may send, each fuzzer for so many minutes; corpora and findings stay in build/fuzz. The check
# of pointer overflow is off: clang's also reports NULL + 0, the end of an empty list.
FUZZERS := $(filter-out fuzz,$(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c)))
MINUTES = 1
FUZZ_CC = $(CLANG) $(CPPFLAGS) -std=gnu11 $(CLANG_WARNINGS) -fno-omit-frame-pointer -O1 -g1 -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined -fno-sanitize=pointer-overflow

$(B)/fuzz/%.o: %.c | $(B)/vapro.skel.h $(B)/.deps-build
	$(Q)mkdir -p $(@D)
	@echo "  CC    $< (fuzzer)"
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@

$(B)/fuzz/libvapro.a: $(LIB_SOURCES:%.c=$(B)/fuzz/%.o)
	$(Q)rm -f $@
	$(Q)ar rcsP $@ $^

$(addprefix $(B)/fuzz/,$(FUZZERS)): $(B)/fuzz/%: $(B)/fuzz/tests/fuzz/%.o $(B)/fuzz/tests/fuzz/fuzz.o $(B)/fuzz/libvapro.a
	@echo "  LINK  $@"
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer $^ $(LDLIBS) -o $@

fuzz: $(addprefix $(B)/fuzz/,$(or $(filter $(FUZZERS),$(WHAT)),$(FUZZERS)))
	$(Q)status=0; for fuzzer in $^; do \
		mkdir -p $$fuzzer.corpus; echo "== $$fuzzer"; \
		$$fuzzer -max_total_time=$$((60 * $(MINUTES))) -max_len=4000000 -len_control=0 -timeout=20 -rss_limit_mb=4096 \
			-verbosity=0 -print_final_stats=1 -artifact_prefix=$$fuzzer- $$fuzzer.corpus || status=1; \
	done; exit $$status

BUILD = $(B)
include tools/workloads.mk
$(WORKLOADS): | $(B)/.deps-$(if $(SYSROOT),build,test)
$(addprefix $(B)/tools/,$(GUEST_FORTRAN)): | $(if $(SYSROOT),$(B)/.deps-vm)

demo: $(B)/vaprod $(B)/vapro $(B)/tools/demo_mpi $(B)/tools/hog
	$(Q)tools/demo.sh

# two network namespaces as nodes, a broker and a worker
demo-nodes: all $(B)/tools/demo_mpi $(B)/tools/hog
	$(Q)tools/demo_nodes.py

accept: all workloads $(NODE_PROGRAMS) $(addprefix $(B)/tests/,print_sites bench/calls bench/probes) $(COUNT)
	$(Q)tools/accept.py $(or $(WHAT),all)

# WHAT: simulated, papers, shapes or live (nothing: all of them), with options of that part behind it, as
# WHAT="simulated --case hog --mode counts --seed 1,3" or WHAT="live --only late"; build/accuracy has what it found.
# WHAT=sensitivity moves each constant of the judgement instead.
ACCURACY_PART := $(firstword $(filter simulated papers shapes live sensitivity,$(firstword $(WHAT))))
accuracy: $(if $(filter live,$(ACCURACY_PART)),,$(B)/tools/accuracy/accuracy) $(if $(filter-out live,$(or $(ACCURACY_PART),$(firstword $(WHAT)))),,all workloads)
ifeq ($(strip $(WHAT)),)
	$(Q)status=0; $(B)/tools/accuracy/accuracy || status=$$?; tools/accuracy_live.py || status=$$?; exit $$status
else ifeq ($(ACCURACY_PART),live)
	$(Q)tools/accuracy_live.py $(wordlist 2,$(words $(WHAT)),$(WHAT))
else ifeq ($(ACCURACY_PART),sensitivity)
	$(Q)tools/sensitivity.py $(wordlist 2,$(words $(WHAT)),$(WHAT))
else
	$(Q)$(B)/tools/accuracy/accuracy $(if $(ACCURACY_PART),--part) $(WHAT)
endif

# Captures to analyse come from a generator, where there is one
bench: all workloads $(BENCH) $(NODE_PROGRAMS) $(patsubst tests/bench/%.c,$(B)/tests/%,$(wildcard tests/bench/make_capture.c))
	$(Q)tools/bench.py $(or $(WHAT),all)

# ---- the rest

# The example has every setting with its default.
$(B)/vapro.conf: $(B)/vaprod
	$(Q)$< --print-config --config /dev/null > $@

# The options of the man pages come from the tables: a line "@OPTIONS vapro view@" stands for those of this command.
$(B)/vaprod.8 $(B)/vapro.1 $(B)/vapro-worker.8: $(B)/%: deploy/%.in $(B)/vaprod $(B)/vapro $(B)/vapro-worker
	$(Q)sed 's/@VERSION@/$(VERSION)/' $< | while IFS= read -r line; do case "$$line" in \
		"@OPTIONS "*@) command=$${line#@OPTIONS }; $(B)/$${command%@} --help=man || exit 1 ;; \
		*) printf '%s\n' "$$line" ;; esac; done > $@

COMPLETIONS := $(foreach shell,bash zsh fish,$(addprefix $(B)/completion/$(shell)/,vapro vaprod vapro-worker))
$(COMPLETIONS): $(B)/completion/%: $(B)/vaprod $(B)/vapro $(B)/vapro-worker
	$(Q)mkdir -p $(@D)
	$(Q)$(B)/$(@F) --completion $(notdir $(@D)) > $@

# The schema is made from the table of records, the man page from the schema.
$(B)/tools/print_schema: tools/print_schema.c $(B)/libvapro.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $< $(B)/libvapro.a -lcjson -lm -o $@

$(B)/vapro.schema.json: $(B)/tools/print_schema
	$(Q)$< > $@

$(B)/vapro-records.5: deploy/records.py $(B)/vapro.schema.json
	$(Q)$^ $(VERSION) > $@

MAN_PAGES := $(addprefix $(B)/,vapro.1 vaprod.8 vapro-worker.8 vapro-records.5)

# Slurm's plugin, where its headers are installed; the scripts beside it need no build.
SPANK = $(if $(wildcard /usr/include/slurm/spank.h),$(B)/vapro_spank.so)

$(B)/vapro_spank.so: deploy/slurm/vapro_spank.c
	@echo "  SPANK $@"
	$(Q)$(CC) $(CFLAGS) -Wno-missing-prototypes -fPIC -shared $< -o $@

slurm: $(SPANK)
	$(Q)$(if $(SPANK),,echo "no header of Slurm (slurm/spank.h, package libslurm-dev): the plugin is not built")

install: all $(SPANK) $(MAN_PAGES) $(B)/vapro.conf $(COMPLETIONS)
	install -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 \
		$(DESTDIR)$(PREFIX)/share/man/man5 $(DESTDIR)$(PREFIX)/share/man/man8 $(DESTDIR)$(PREFIX)/share/vapro
	install -m 755 $(B)/vaprod $(DESTDIR)$(PREFIX)/sbin/vaprod
	install -m 755 $(B)/vapro $(DESTDIR)$(PREFIX)/bin/vapro
	install -m 755 $(B)/vapro-worker $(DESTDIR)$(PREFIX)/bin/vapro-worker
	install -m 644 $(B)/vapro.1 $(DESTDIR)$(PREFIX)/share/man/man1/vapro.1
	install -m 644 $(B)/vapro-records.5 $(DESTDIR)$(PREFIX)/share/man/man5/vapro-records.5
	install -m 644 $(B)/vaprod.8 $(B)/vapro-worker.8 $(DESTDIR)$(PREFIX)/share/man/man8
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	install -m 644 $(addprefix $(B)/completion/bash/,vapro vaprod vapro-worker) $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	for name in vapro vaprod vapro-worker; do \
		install -m 644 $(B)/completion/zsh/$$name $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$name; \
		install -m 644 $(B)/completion/fish/$$name $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$name.fish; \
	done
	install -m 644 $(B)/vapro.schema.json $(B)/vapro.conf $(DESTDIR)$(PREFIX)/share/vapro
	install -m 755 deploy/systemd/publish-unit.sh $(DESTDIR)$(PREFIX)/share/vapro
	install -m 644 deploy/vapro.logrotate deploy/vapro-worker.env $(DESTDIR)$(PREFIX)/share/vapro
	for folder in nats prometheus grafana; do \
		install -d $(DESTDIR)$(PREFIX)/share/vapro/$$folder && \
		install -m 644 deploy/$$folder/* $(DESTDIR)$(PREFIX)/share/vapro/$$folder || exit 1; \
	done
	chmod 755 $(DESTDIR)$(PREFIX)/share/vapro/nats/add_user.sh
	install -d $(DESTDIR)$(PREFIX)/share/vapro/slurm
	install -m 755 deploy/slurm/prolog.sh deploy/slurm/epilog.sh deploy/slurm/comment.sh $(DESTDIR)$(PREFIX)/share/vapro/slurm
	$(if $(SPANK),install -d $(DESTDIR)$(PREFIX)/lib/vapro)
	$(if $(SPANK),install -m 755 $(SPANK) $(DESTDIR)$(PREFIX)/lib/vapro)
	install -d $(DESTDIR)$(UNITS)
	for unit in vaprod vapro-worker; do \
		sed 's|^ExecStart=/usr/local/|ExecStart=$(PREFIX)/|' deploy/$$unit.service >$(B)/$$unit.service && \
		install -m 644 $(B)/$$unit.service $(DESTDIR)$(UNITS) || exit 1; \
	done

# What is in /etc/vapro/vapro.conf of a package: where the records go; every other setting with its default.
$(B)/site.conf: $(B)/vapro.conf
	$(Q)sed 's|^#output =.*|output = /var/log/vapro/vapro.ndjson|' $< > $@

# Packages of Debian in build/deb, from the files that git has: no changelog but that of the version.
DEB = $(B)/deb/vapro-$(VERSION)
deb: | $(B)/.deps-package
	$(Q)rm -rf $(DEB) && mkdir -p $(DEB)
	$(Q)git ls-files -z | xargs -0 cp --parents -t $(DEB)
	$(Q)cp -r deploy/debian $(DEB)/debian
	$(Q)deploy/debian-changelog.sh $(VERSION) < CHANGELOG.md > $(DEB)/debian/changelog
	$(Q)cd $(DEB) && dpkg-buildpackage -us -uc -b $(if $(V),,>../build.log 2>&1) || { tail -20 $(B)/deb/build.log; exit 1; }
	$(Q)lintian --allow-root --fail-on error,warning $(B)/deb/vapro_$(VERSION)_$(HERE).changes
	$(Q)ls $(B)/deb/*.deb

$(B)/vapro.spec: deploy/rpm/vapro.spec.in include/vapro/version.h
	$(Q)mkdir -p $(B)
	$(Q)sed 's/@VERSION@/$(VERSION)/' $< > $@

format:
	$(Q)clang-format -i $(shell git ls-files '*.c' '*.h' '*.cpp' | grep -v '^vmlinux/')

clean:
	rm -rf $(B)

# the parts with dependency files; build/vm holds whole systems
-include $(shell find $(B)/user $(B)/test $(B)/fuzz $(B)/tests $(B)/tools/accuracy -name '*.d' 2>/dev/null)
