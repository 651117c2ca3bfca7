#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# NEEDS: little
"""Completions carry the number and the bytes of the requests they are about, as the program itself counts them."""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import stg_compare  # noqa: E402
from live import capture_run, graph, losses, main, tool  # noqa: E402

ROUNDS, POSTED_UNSEEN, BEYOND = 20, 2 * 2, 6 * 2
HANDED = 1000  # bytes of each completion of handed_over


def book(logs, rank):
    """{(site, requests): (calls, least bytes, most bytes)} as the program printed it."""
    with open(os.path.join(logs, f"truth.{rank}"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.startswith("{")]
    return {(x["site"], x["requests"]): (x["calls"], x["min_bytes"], x["max_bytes"]) for x in lines}


def label(state, key):
    found = dict(pair.split("=", 1) for pair in state["labels"].split())
    return found.get(key)


def seen(states, markers):
    found = {}
    for state in states:
        n = label(state, "requests")
        if "at" in state and n is not None:
            key = (markers[state["at"]], int(n))
            calls, least, most = found.get(key, (0, float("inf"), 0))
            found[key] = (calls + state["n"], min(least, state["min_bytes"]), max(most, state["max_bytes"]))
    return found


def check(tap, jobs, name):
    capture, lines, logs = capture_run(tap, jobs, name)
    markers = stg_compare.markers_of(graph(jobs, capture), tool(name))
    for rank in range(2):
        wanted, found = book(logs, rank), seen(graph(jobs, capture, "--rank", str(rank)), markers)
        wrong = {key: (wanted.get(key), found.get(key)) for key in set(wanted) | set(found) if wanted.get(key) != found.get(key)}
        tap.ok(len(wanted) > 15 and not wrong, f"{name}: rank {rank}: number and bytes of every completion", wrong)
    return lines, {markers.get(s["at"]): s for s in graph(jobs, capture) if "at" in s}


def polled(jobs, capture, markers):
    """[(marker it begins at, class)] of the edges in which polling calls were seen."""
    return [(markers.get(s["from"]), s["class"]) for s in graph(jobs, capture) if "from" in s and label(s, "polls")]


def test_polls(tap, jobs):
    capture, _, _ = capture_run(tap, jobs, "requests")
    markers = stg_compare.markers_of(graph(jobs, capture), tool("requests"))
    tap.equal(polled(jobs, capture, markers), [(17, "communication")], "computation with calls of MPI_Test is communication")
    capture, _, _ = capture_run(tap, jobs, "requests", "--learn", "0")
    tap.equal(polled(jobs, capture, markers), [], "--learn 0 does not look for polling calls")


def test_open_mpi(tap, jobs):
    lines, states = check(tap, jobs, "requests")
    lost = losses(lines)
    tap.equal(lost.get("truncated"), ROUNDS * BEYOND, "requests beyond the followed ones are counted")
    # requests that MPI_Test completed, and those beyond the followed ones of a completion
    tap.equal(lost.get("unmatched"), ROUNDS * (POSTED_UNSEEN + BEYOND), "requests whose completion was not seen are counted")
    tap.equal(states[14]["max_bytes"], 192, "a derived datatype has its size")


def test_mpich(tap, jobs):
    lines, states = check(tap, jobs, "mpich_requests")
    lost = losses(lines)
    tap.equal(lost.get("truncated"), ROUNDS * BEYOND, "MPICH: requests beyond the followed ones are counted")
    tap.equal(lost.get("unmatched"), ROUNDS * (POSTED_UNSEEN + BEYOND),
              "MPICH: requests whose completion was not seen are counted")
    tap.equal((states[14]["max_bytes"], label(states[14], "unit"), states[14]["approx"]), (6, "elements", True),
              "MPICH: the size of a derived datatype is marked as not known")
    tap.ok(lost.get("approximated", 0) >= 2 * ROUNDS, "MPICH: unknown sizes are counted", lost)


def test_other_thread(tap, jobs, name="handed_over"):
    """Another thread completes what one has posted: what the first had kept for itself is lost once, and counted."""
    capture, lines, _ = capture_run(tap, jobs, name)
    markers = stg_compare.markers_of(graph(jobs, capture), tool(name))
    found = {}
    for state in graph(jobs, capture):
        if "at" in state and label(state, "requests") == "2":
            found.setdefault(markers.get(state["at"]), []).append((state["n"], state["min_bytes"], state["max_bytes"]))
    wanted = [(2 * ROUNDS, HANDED, HANDED)]
    tap.equal([found.get(1), found.get(3), found.get(4)], [wanted] * 3, f"{name}: the bytes of completions in the posting thread")
    tap.equal(found.get(2), [(2 * ROUNDS, 0, HANDED)], f"{name}: completions in another thread, the first of which finds nothing")
    tap.equal(losses(lines).get("unmatched"), 2 * (2 + 2),
              f"{name}: the two requests of the first, in each rank, are counted as not posted and as not completed")


def test_other_thread_mpich(tap, jobs):
    test_other_thread(tap, jobs, "mpich_handed_over")


main(test_polls, test_open_mpi, test_mpich, test_other_thread, test_other_thread_mpich)
