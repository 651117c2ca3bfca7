#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
ticker.py CPU US HZ SECONDS: uses US microseconds of CPU time on a CPU HZ times a second, and prints how often it got that CPU
and for how many seconds, by /proc/self/schedstat. It starts and ends on other CPUs: the slices of the interpreter's own start
would not be printed.
"""
import os
import sys
import time


def got():
    with open("/proc/self/schedstat", encoding="utf-8") as file:
        return [int(x) for x in file.read().split()]


def main():
    cpu, burst, period, seconds = int(sys.argv[1]), float(sys.argv[2]) / 1e6, 1 / float(sys.argv[3]), float(sys.argv[4])
    elsewhere = os.sched_getaffinity(0)
    with open("/proc/self/comm", "w", encoding="utf-8") as file:
        file.write("ticker")
    os.sched_setaffinity(0, {cpu})
    begin, start = got(), time.monotonic()
    for i in range(int(seconds / period)):
        end = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) + burst
        while time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) < end:
            pass
        time.sleep(max(0, start + (i + 1) * period - time.monotonic()))
    end = got()
    os.sched_setaffinity(0, elsewhere)
    print(end[2] - begin[2], (end[0] - begin[0]) / 1e9)


if __name__ == "__main__":
    main()
