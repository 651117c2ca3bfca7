// SPDX-License-Identifier: GPL-2.0-or-later
/* Event tables and formulas: each CPU's table, and shares that are a partition with the right parts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include <vapro/config.h>

#include "config/tunables.h"
#include "probe/pmu/events.h"
#include "probe/pmu/pmu.h"

static const struct event_cpu *x86(const char *vendor, unsigned family, unsigned model, unsigned stepping)
{
	struct cpu_id id = {.family = family, .model = model, .stepping = stepping};

	snprintf(id.vendor, sizeof(id.vendor), "%s", vendor);
	return events__match(&id);
}

static const struct event_cpu *arm(uint32_t midr)
{
	struct cpu_id id = {.midr = midr};

	return events__match(&id);
}

static void cpus_are_matched(void **state)
{
	static const struct {
		const char *vendor;
		unsigned family, model, stepping;
		const char *name;
	} known[] = {
	    {"GenuineIntel", 6, 0x55, 4, "SKX"},	{"GenuineIntel", 6, 0x55, 7, "CLX"},
	    {"GenuineIntel", 6, 0x6a, 6, "ICX"},	{"GenuineIntel", 6, 0x6c, 1, "ICX"},
	    {"GenuineIntel", 6, 0x8f, 8, "SPR"},	{"GenuineIntel", 6, 0xcf, 2, "EMR"},
	    {"GenuineIntel", 6, 0xad, 1, "GNR"},	{"AuthenticAMD", 0x17, 0x31, 0, "amdzen2"},
	    {"AuthenticAMD", 0x17, 0x71, 0, "amdzen2"}, {"AuthenticAMD", 0x19, 0x01, 1, "amdzen3"},
	    {"AuthenticAMD", 0x19, 0x21, 0, "amdzen3"}, {"AuthenticAMD", 0x19, 0x44, 1, "amdzen3"},
	    {"AuthenticAMD", 0x19, 0x11, 1, "amdzen4"}, {"AuthenticAMD", 0x19, 0xa0, 2, "amdzen4"},
	    {"AuthenticAMD", 0x1a, 0x02, 1, "amdzen5"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct event_cpu *cpu = x86(known[i].vendor, known[i].family, known[i].model, known[i].stepping);

		assert_non_null(cpu);
		assert_string_equal(cpu->name, known[i].name);
	}
	assert_null(x86("GenuineIntel", 6, 0x9e, 10));	 /* a desktop */
	assert_null(x86("AuthenticAMD", 0x17, 0x01, 2)); /* Zen 1 */
	assert_null(x86("GenuineIntel", 0x19, 0x11, 1));
	assert_null(x86("", 0, 0, 0));
	assert_string_equal(arm(0x413fd0c1)->name, "neoverse_n1");
	assert_string_equal(arm(0x411fd401)->name, "neoverse_v1");
	assert_string_equal(arm(0x410fd4f0)->name, "neoverse_v2");
	assert_string_equal(arm(0x410fd8e1)->name, "neoverse_n3");
	assert_string_equal(arm(0x410fd840)->name, "neoverse_v3");
	assert_string_equal(arm(0x461f0010)->name, "a64fx");
	/* r0p2 has the erratum, r0p3 has it no more */
	assert_ptr_not_equal(arm(0x410fd492), arm(0x410fd493));
	assert_ptr_equal(arm(0x410fd490), arm(0x410fd492));
	assert_ptr_equal(arm(0x411fd490), arm(0x410fd493));
	assert_null(arm(0x410fd034)); /* Cortex-A53 */
}

static void cpuinfo_is_read(void **state)
{
	static const char intel[] = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
				    "model name\t: Intel(R) Xeon(R)\nstepping\t: 8\n\nprocessor\t: 1\nstepping\t: 9\n";
	static const char grace[] =
	    "processor\t: 0\nBogoMIPS\t: 2000.00\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
	    "CPU variant\t: 0x0\nCPU part\t: 0xd4f\nCPU revision\t: 0\n\n";
	char path[] = "/tmp/vapro_cpuinfo_XXXXXX", text[64];
	int fd = mkstemp(path);
	struct cpu_id id;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, intel, sizeof(intel) - 1, 0), sizeof(intel) - 1);
	events__read_cpu(path, &id);
	assert_string_equal(events__match(&id)->name, "SPR");
	assert_int_equal(id.stepping, 8);
	events__format_cpu(&id, text, sizeof(text));
	assert_string_equal(text, "GenuineIntel 6-8f-8");
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, grace, sizeof(grace) - 1, 0), sizeof(grace) - 1);
	events__read_cpu(path, &id);
	assert_int_equal(id.midr, 0x410fd4f0);
	assert_string_equal(events__match(&id)->name, "neoverse_v2");
	close(fd);
	unlink(path);
	events__read_cpu(path, &id);
	assert_null(events__match(&id));
}

static void tables_are_well_formed(void **state)
{
	(void)state;
	for (size_t i = 0; i < event_cpu_count; i++) {
		const struct event_cpu *cpu = event_cpus[i];
		int stage = 0;

		assert_true(cpu->width > 0);
		assert_non_null(cpu->instructions.name);
		assert_ptr_equal(events__find(cpu, cpu->instructions.name), &cpu->instructions);
		assert_int_equal(cpu->groups[0]->stage, 1);
		for (const struct event_group *const *at = cpu->groups; *at; at++) {
			size_t count = events__group_size(*at), optional = 0;

			assert_true((*at)->stage >= stage && (*at)->stage <= 3);
			stage = (*at)->stage;
			assert_true(count >= 2);
			assert_true((stage == 1) == !(*at)->parent);
			assert_non_null((*at)->formula);
			for (size_t e = 0; e < count; e++) {
				optional += (*at)->events[e].flags & EVENT_OPTIONAL;
				assert_true(event__config(&(*at)->events[e]) >> 32 <= 0xf);
			}
			assert_true(optional < count);
		}
	}
	assert_ptr_equal(events__find(event_cpus[0], "loads"),
			 events__find(event_cpus[0], "MEM_INST_RETIRED.ALL_LOADS"));
	assert_null(events__find(event_cpus[0], "nonsense"));
}

static void partitions(double *share, size_t parts)
{
	double sum = 0;

	for (size_t i = 0; i < parts; i++) {
		assert_true(share[i] >= 0 && share[i] <= 1);
		sum += share[i];
	}
	assert_true(fabs(sum - 1) < 1e-9);
}

static double at_random(double most)
{
	return most * rand() / RAND_MAX;
}

/* The result of any counts is a partition or nothing. */
static void any_counts_make_a_partition(void **state)
{
	(void)state;
	srand(1);
	for (size_t i = 0; i < event_cpu_count; i++) {
		for (const struct event_group *const *at = event_cpus[i]->groups; *at; at++) {
			struct topdown about = {.width = event_cpus[i]->width, .instructions = 1e6, .retiring = 0.4};
			double count[EVENTS_IN_GROUP] = {0}, share[TOPDOWN_PARTS] = {0};
			size_t parts = 0;

			while (parts < TOPDOWN_PARTS && (*at)->parts[parts])
				parts++;
			assert_false((*at)->formula(count, &about, share)); /* nothing was counted */
			for (int round = 0; round < 2000; round++) {
				about.smt = round & 1;
				about.l2_share = round & 2 ? at_random(1) : 0;
				for (int e = 0; e < EVENTS_IN_GROUP; e++)
					count[e] = at_random(4e6);
				if ((*at)->formula(count, &about, share))
					partitions(share, parts);
			}
		}
	}
}

#define NEAR(value, wanted) assert_true(fabs((value) - (wanted)) < 1e-9)

/* Counts that satisfy a CPU's identities give back their original shares. */
static void level1_gives_back_the_shares(void **state)
{
	static const double truth[][4] = {
	    {0.25, 0.25, 0.25, 0.25}, {0.7, 0.1, 0.05, 0.15}, {0.1, 0, 0, 0.9}, {0.3, 0.4, 0.2, 0.1}, {1, 0, 0, 0}};

	(void)state;
	for (size_t t = 0; t < sizeof(truth) / sizeof(truth[0]); t++) {
		double ret = truth[t][0], fe = truth[t][1], bad = truth[t][2], be = truth[t][3], c = 1e9, share[5];
		struct topdown about = {.width = 4};
		double slots, recovery = 0.01 * bad * c;

		/* Skylake: half of the speculation loss is issued, the rest recovery */
		slots = about.width * c;
		{
			double count[7] = {c, fe * slots, ret * slots + bad * slots - 4 * recovery, ret * slots,
					   recovery};

			assert_true(topdown__skylake(count, &about, share));
			for (int i = 0; i < 4; i++)
				NEAR(share[i], truth[t][i]);
			/* two threads of one core: cycles and recovery of both */
			count[0] *= 2;
			count[4] *= 2;
			about.smt = true;
			assert_true(topdown__skylake(count, &about, share));
			for (int i = 0; i < 4; i++)
				NEAR(share[i], truth[t][i]);
		}
		about = (struct topdown){.width = 6};
		slots = 6 * c;
		{
			/* uops dropped are counted as not delivered, and are not the frontend's */
			double count[7] = {slots, ret * slots, fe * slots + 1000, be * slots, 1000};

			assert_true(topdown__icelake(count, &about, share));
			for (int i = 0; i < 4; i++)
				NEAR(share[i], truth[t][i]);
		}
		{
			double count[7] = {c, fe * slots, be * slots, ret * slots};

			assert_true(topdown__zen4(count, &about, share));
			for (int i = 0; i < 4; i++)
				NEAR(share[i], truth[t][i]);
		}
		{
			double count[7] = {c, fe * c, ret * slots};

			assert_true(topdown__zen2(count, &about, share));
			NEAR(share[0], ret);
			NEAR(share[1], fe);
			NEAR(share[2], 0);
			NEAR(share[3], be + bad);
		}
		if (ret > 0) {
			double count[7] = {c, fe * c, be * c, 1e9 * (ret + bad) / ret};

			about.instructions = 1e9;
			assert_true(topdown__neoverse_n1(count, &about, share));
			for (int i = 0; i < 4; i++)
				NEAR(share[i], truth[t][i]);
		}
		{
			double count[7] = {c, (1 - ret) * c, 0.75 * be * c, 0.25 * be * c, bad * c};

			assert_true(topdown__a64fx(count, &about, share));
			for (int i = 0; i < 4; i++)
				NEAR(share[i], truth[t][i]);
		}
		/* Neoverse: all of bad speculation is refilling after mispredictions, so all ops are useful */
		{
			double v1[7] = {c, (fe + bad) * 8 * c, be * 8 * c, 1e9, 1e9, bad * c / 4};
			double v2[7] = {c, (fe + bad / 4) * 8 * c, (be + 3 * bad / 4) * 8 * c, 1e9, 1e9, bad * c / 4};
			double early[7] = {c,	       (fe + bad / 4) * 5 * c + c, (be + 3 * bad / 4) * 5 * c, 1e9, 1e9,
					   bad * c / 4};
			double v3[7] = {c, (fe + bad) * 10 * c, be * 10 * c, 1e9, 1e9, bad * c};

			about.width = 8;
			assert_true(topdown__neoverse_v1(v1, &about, share));
			for (int i = 0; i < 4; i++)
				NEAR(share[i], truth[t][i]);
			assert_true(topdown__neoverse_v2(v2, &about, share));
			for (int i = 0; i < 4; i++)
				NEAR(share[i], truth[t][i]);
			about.width = 5;
			assert_true(topdown__neoverse_n2_early(early, &about, share));
			for (int i = 0; i < 4; i++)
				NEAR(share[i], truth[t][i]);
			about.width = 10;
			assert_true(topdown__neoverse_v3(v3, &about, share));
			for (int i = 0; i < 4; i++)
				NEAR(share[i], truth[t][i]);
		}
	}
}

static void later_stages_part_their_parent(void **state)
{
	struct topdown about = {.width = 4, .instructions = 900, .retiring = 0.5};
	double share[TOPDOWN_PARTS];

	(void)state;
	/* memory / (all + stores + busy cycles): 300+100 of 500+100+100+0.5*200 */
	assert_true(topdown__skylake_backend((double[]){300, 100, 500, 100, 200, 0, 0}, &about, share));
	NEAR(share[0], 0.5);
	assert_true(topdown__skylake_frontend((double[]){10, 100, 0, 0, 0, 0, 0}, &about, share));
	NEAR(share[0], 0.4);
	assert_true(topdown__skylake_retiring((double[]){1000, 100, 0, 0, 0, 0, 0}, &about, share));
	NEAR(share[0], 0.2);
	assert_true(topdown__icelake_frontend((double[]){15, 110, 10, 0, 0, 0, 0}, &about, share));
	NEAR(share[0], 0.5);
	assert_true(topdown__two_parts((double[]){30, 10, 0, 0, 0, 0, 0}, &about, share));
	NEAR(share[0], 0.75);
	assert_true(topdown__part_of((double[]){30, 40, 0, 0, 0, 0, 0}, &about, share));
	NEAR(share[0], 0.75);
	/* 1000 stalls on loads: 400 in the first cache, 300 second, 200 third, 100 memory; 250 on stores */
	assert_true(topdown__stalls_by_level((double[]){1000, 600, 300, 100, 250, 0, 0}, &about, share));
	NEAR(share[0], 0.32);
	NEAR(share[1], 0.24);
	NEAR(share[2], 0.16);
	NEAR(share[3], 0.08);
	NEAR(share[4], 0.20);
	/* two thirds of the second cache's stalls waited for memory */
	about.l2_share = 1.0 / 3;
	assert_true(topdown__stalls_by_level((double[]){1000, 600, 300, 100, 250, 0, 0}, &about, share));
	NEAR(share[1], 0.08);
	NEAR(share[3], 0.24);
	assert_true(topdown__l2_share((double[]){100, 50, 100, 150, 0, 0, 0}, &about, share));
	NEAR(share[0], 0.5);
	assert_true(topdown__a64fx_memory((double[]){100, 30, 50, 0, 0, 0, 0}, &about, share));
	NEAR(share[0], 0.2);
	assert_true(topdown__fills((double[]){1, 2, 3, 4, 0, 0, 0}, &about, share));
	NEAR(share[3], 0.4);
}

static void put(const char *root, const char *path, const char *text)
{
	char full[512];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

#define DEVICES "/sys/bus/event_source/devices/"

static void sysfs_has_pmus_and_encodings(void **state)
{
	char root[] = "/tmp/vapro_sysfs_XXXXXX", err[256], command[64];
	struct pmu_event event;
	struct pmu pmus[4];

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_int_equal(pmu__find(root, pmus, 4), 0);
	put(root, "/sys/devices/system/cpu/online", "0-3\n");
	put(root, DEVICES "software/type", "1\n");
	put(root, DEVICES "uncore_imc_0/type", "14\n");
	put(root, DEVICES "uncore_imc_0/cpumask", "0\n");
	put(root, DEVICES "cpu/type", "4\n");
	put(root, DEVICES "cpu/format/event", "config:0-7,32-35\n");
	put(root, DEVICES "cpu/format/umask", "config:8-15\n");
	put(root, DEVICES "cpu/format/cmask", "config:24-31\n");
	put(root, DEVICES "cpu/format/ldlat", "config1:0-15\n");
	put(root, DEVICES "cpu/events/instructions", "event=0xc0\n");
	assert_int_equal(pmu__find(root, pmus, 4), 1);
	assert_int_equal(pmus[0].type, 4);
	assert_int_equal(pmus[0].cpus.count, 4);
	assert_false(pmus[0].hybrid);
	assert_int_equal(pmu__encode(root, "cpu/event=0x1a0,umask=0x1e,cmask=6/", &event, err, sizeof(err)), 0);
	assert_int_equal(event.config, 0x106001ea0);
	assert_int_equal(event.type, 4);
	assert_int_equal(pmu__encode(root, "cpu/event=0xcd,ldlat=30/", &event, err, sizeof(err)), 0);
	assert_int_equal(event.config1, 30);
	assert_int_equal(pmu__encode(root, "cpu/instructions/", &event, err, sizeof(err)), 0);
	assert_int_equal(event.config, 0xc0);
	assert_int_equal(pmu__encode(root, "cpu/config=0x1234/", &event, err, sizeof(err)), 0);
	assert_int_equal(event.config, 0x1234);
	assert_int_not_equal(pmu__encode(root, "cpu/umask=0x100/", &event, err, sizeof(err)), 0);
	assert_int_not_equal(pmu__encode(root, "cpu/nonsense=1/", &event, err, sizeof(err)), 0);
	assert_int_not_equal(pmu__encode(root, "gpu/event=1/", &event, err, sizeof(err)), 0);
	assert_int_not_equal(pmu__encode(root, "../cpu/event=1/", &event, err, sizeof(err)), 0);
	assert_int_not_equal(pmu__encode(root, "cpu/event=x/", &event, err, sizeof(err)), 0);
	assert_int_not_equal(pmu__encode(root, "cpu", &event, err, sizeof(err)), 0);
	/* two kinds of cores instead */
	put(root, DEVICES "cpu_core/type", "4\n");
	put(root, DEVICES "cpu_core/cpus", "0-1\n");
	put(root, DEVICES "cpu_atom/type", "10\n");
	put(root, DEVICES "cpu_atom/cpus", "2-3\n");
	put(root, DEVICES "cpu_atom/caps/slots", "a\n");
	snprintf(command, sizeof(command), "rm -r %s" DEVICES "cpu", root);
	assert_int_equal(system(command), 0);
	assert_int_equal(pmu__find(root, pmus, 4), 2);
	assert_string_equal(pmus[0].name, "cpu_atom");
	assert_true(pmus[0].hybrid && pmus[1].hybrid);
	assert_int_equal(pmus[0].slots, 10);
	assert_true(pmu__has_cpu(&pmus[0].cpus, 3) && !pmu__has_cpu(&pmus[0].cpus, 1));
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static void lists_of_cpus(void **state)
{
	struct cpu_list list;

	(void)state;
	assert_true(pmu__parse_cpu_list("0,2-3,130", &list));
	assert_int_equal(list.count, 4);
	assert_true(pmu__has_cpu(&list, 130) && !pmu__has_cpu(&list, 1) && !pmu__has_cpu(&list, 100000));
	assert_false(pmu__parse_cpu_list("", &list));
	assert_false(pmu__parse_cpu_list("3-1", &list));
	assert_false(pmu__parse_cpu_list("1;2", &list));
	assert_false(pmu__parse_cpu_list("99999", &list));
}

static void sites_override_events(void **state)
{
	struct vapro_config config;
	char path[] = "/tmp/vapro_events_XXXXXX", err[256];
	static const char text[] = "event INST_RETIRED.ANY_P=cpu/event=0xc0,umask=0x1/ # ours\n"
				   "event stalls = cpu/event=0xa3,umask=4,cmask=4/\nworkload = instructions,stalls\n"
				   "event stalls=cpu/event=0xa2/\ncounters = none\n";
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	config__init(&config);
	assert_int_equal(config.counters, VAPRO_COUNTERS_AUTO);
	assert_string_equal(config.workload, "instructions");
	assert_int_equal(config__read(&config, path, NULL, err, sizeof(err)), 0);
	assert_int_equal(config.event_count, 2);
	assert_string_equal(config.events[0].name, "INST_RETIRED.ANY_P");
	assert_string_equal(config.events[0].spec, "cpu/event=0xc0,umask=0x1/");
	assert_string_equal(config.events[1].spec, "cpu/event=0xa2/"); /* the last event */
	assert_string_equal(config.workload, "instructions,stalls");
	assert_int_equal(config.counters, VAPRO_COUNTERS_NONE);
	assert_int_not_equal(config__set(&config, "event ", "cpu/event=1/", err, sizeof(err)), 0);
	assert_int_not_equal(config__set(&config, "counters", "some", err, sizeof(err)), 0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(cpus_are_matched),
	    cmocka_unit_test(cpuinfo_is_read),
	    cmocka_unit_test(tables_are_well_formed),
	    cmocka_unit_test(any_counts_make_a_partition),
	    cmocka_unit_test(level1_gives_back_the_shares),
	    cmocka_unit_test(later_stages_part_their_parent),
	    cmocka_unit_test(sysfs_has_pmus_and_encodings),
	    cmocka_unit_test(lists_of_cpus),
	    cmocka_unit_test(sites_override_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
