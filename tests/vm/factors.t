#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
With instructions as workload, on an old and a new kernel: a busy program is reported as preempted, a CPU quota as throttled.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "live"), os.path.join(HERE, "..", "..", "tools", "vm")]
import guest  # noqa: E402
from live import ROOT, Tap, of_type, records  # noqa: E402
import truth as t  # noqa: E402

# before 6.6 another clock shows how long a run queue was throttled; from 6.18 on tasks are throttled one by one
SUITES = ("bookworm", "trixie-backports")


def text(directory, name):
    with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def moment(directory, name):
    return t.parse_time(text(directory, name).strip().replace("Z", ".000000000Z"))


def alarms_in(lines, directory, what):
    """[({factor}, [interferer], last diagnosis)] of the alarms whose middle lies in a disturbance."""
    begin, end = moment(directory, what + ".begin"), moment(directory, what + ".end") + 1e9
    found = []
    for variance in t.variances(lines).values():
        middle = (t.parse_time(variance["begin"]) + t.parse_time(variance["end"])) / 2
        if variance["alarm"] and begin <= middle <= end:
            last = [d for d in of_type(lines, "diagnosis") if d["variance"] == variance["id"]][-1]
            found.append((*t.diagnosis(lines, variance["id"]), last))
    return found


def lost(alarms, name):
    return sum(factors.get(name, {}).get("impact_seconds", 0) for factors, _, _ in alarms)


def throttled_s(directory, name):
    return int(re.search(r"^throttled_usec (\d+)", text(directory, name), re.M)[1]) / 1e6


def check(tap, suite):
    directory = guest.run("arm64", suite, os.path.join(HERE, "factors.sh"), name="factors-" + suite)
    tap.equal(text(directory, "vaprod.code").strip(), "0", f"{suite}: vaprod ends well")
    lines = records(os.path.join(directory, "out.ndjson"))
    tap.equal(lines[0]["workload_source"], "instructions", f"{suite}: instructions are the workload")
    throttled = [f for f in lines[0]["factors"] if f["name"] == "throttled"][0]
    tap.ok(throttled["available"] and throttled["approx"] == (suite == "bookworm"), f"{suite}: throttled can be reported", throttled)

    alarms = alarms_in(lines, directory, "hog")
    said = [(d["verdict"], factors) for factors, _, d in alarms]
    tap.ok(alarms and lost(alarms, "preempted") > 0.5, f"{suite}: a busy program: the loss is preempted", said)
    tap.ok(all(f["preempted"]["major"] for f, _, _ in alarms), f"{suite}: a busy program: preempted is major", said)
    tap.ok(any(i["comm"] == "hog" for _, some, _ in alarms for i in some), f"{suite}: the busy program is named", said)
    tap.ok(lost(alarms, "throttled") < 0.02 * lost(alarms, "preempted"),
           f"{suite}: nothing was throttled beside the busy program", said)

    alarms = alarms_in(lines, directory, "quota")
    said = [(d["verdict"], factors) for factors, _, d in alarms]
    reported = throttled_s(directory, "stat.after") - throttled_s(directory, "stat.before")
    tap.ok(alarms and all(f["throttled"]["major"] for f, _, _ in alarms), f"{suite}: a CPU quota: throttled is major", said)
    tap.ok(0.8 * reported < lost(alarms, "throttled") <= 1.02 * reported, f"{suite}: the throttled time is that of the kernel",
           f"{lost(alarms, 'throttled'):.3f} of {reported:.3f} s")
    tap.ok(lost(alarms, "preempted") + lost(alarms, "wakeup_wait") < 0.1 * reported,
           f"{suite}: under the quota preemption is a small part", said)
    tap.ok(any("/job" in d["advice"] and "cpu.max 3000 10000" in d["advice"] for _, _, d in alarms),
           f"{suite}: the advice names the cgroup and its quota", [d["advice"] for _, _, d in alarms])
    schema = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "schema_check.py"), os.path.join(directory, "out.ndjson")],
                            capture_output=True, text=True, check=False)
    tap.ok(schema.returncode == 0, f"{suite}: every line is valid by the schema", schema.stdout[-600:])


def main():
    tap = Tap()
    for suite in SUITES:
        try:
            check(tap, suite)
        except (guest.GuestFailed, OSError, KeyError, IndexError, TypeError) as failure:
            tap.ok(False, f"{suite}: the guest's results can be judged", repr(failure))
    print(f"1..{tap.count}")


main()
