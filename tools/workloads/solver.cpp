// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that calls nothing outside itself but functions of its own, each in one of the ways in
 * which a function can be left: by several returns, by a tail call, by an exception. Prints how often
 * each was entered, and how many exceptions were thrown, caught and unwound through what they should.
 *
 *   solver --calls 1000 --delay 2 --every 1000     (times in ms and us)
 */
#include <getopt.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "common.h"

namespace
{

unsigned long long solved, advanced, tails, risky, thrown, caught, unwound;
volatile uint64_t sink;

struct frame {
	~frame()
	{
		unwound++;
	}
};

} // namespace

extern "C" __attribute__((noinline)) int solve_step(int n)
{
	solved++;
	sink = sink + 1;
	if (n % 3 == 0)
		return 1;
	if (n % 3 == 1) {
		sink = lcg(sink, LCG_STEPS_PER_US * 20);
		return 2;
	}
	sink = lcg(sink, LCG_STEPS_PER_US);
	return static_cast<int>(sink & 1);
}

namespace sim
{

__attribute__((noinline)) void advance(int n)
{
	advanced++;
	sink = lcg(sink, LCG_STEPS_PER_US * static_cast<uint64_t>(n % 4));
}

__attribute__((noinline)) int tail(int n)
{
	tails++;
	return solve_step(n + 1);
}

__attribute__((noinline)) void risk(int n)
{
	frame guard;

	risky++;
	if (n % 2) {
		thrown++;
		throw std::runtime_error("odd");
	}
	sink = sink + 1;
}

} // namespace sim

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"calls", required_argument, nullptr, 'n'},
	    {"delay", required_argument, nullptr, 'd'},
	    {"every", required_argument, nullptr, 'e'},
	    {nullptr, 0, nullptr, 0},
	};
	int calls = 1000, opt;
	double delay_s = 0, every_us = 0;

	while ((opt = getopt_long(argc, argv, "", options, nullptr)) != -1) {
		if (opt == 'n')
			calls = static_cast<int>(number("--calls", optarg, 1, 1e9));
		else if (opt == 'd')
			delay_s = number("--delay", optarg, 0, 100);
		else if (opt == 'e')
			every_us = number("--every", optarg, 0, 1e6);
		else
			return 2;
	}
	printf("{\"ready\":true,\"pid\":%d}\n", static_cast<int>(getpid()));
	fflush(stdout);
	wait_for_observer(delay_s);
	for (int i = 0; i < calls; i++) {
		solve_step(i);
		sim::advance(i);
		sim::tail(i);
		try {
			sim::risk(i);
		} catch (const std::exception &) {
			caught++;
		}
		if (every_us > 0)
			usleep(static_cast<useconds_t>(every_us));
	}
	printf(
	    "{\"program\":\"solver\",\"solve_step\":%llu,\"advance\":%llu,\"tail\":%llu,\"risk\":%llu,\"thrown\":%llu,"
	    "\"caught\":%llu,\"unwound\":%llu}\n",
	    solved, advanced, tails, risky, thrown, caught, unwound);
	return thrown == caught && unwound == risky ? 0 : 1;
}
