// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Throws a C++ exception out of an MPI call: an error handler of the communicator throws, main catches.
 * A return probe breaks the unwinding through its frame (ARCHITECTURE section 2, 3): under --no-return
 * the program must behave as without an observer.
 *
 *   mpirun -n 1 throw --count 100 --seconds 5
 *
 * With --inside the handler catches what it throws: no frame of MPI is unwound, and return probes do no
 * harm.
 *
 * Throws in bursts of --count every 20 ms for --seconds; prints how many were thrown and caught, exits
 * with 0 where they agree.
 */
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <getopt.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <unistd.h>

#include "common.h"

namespace
{

struct mpi_error : std::runtime_error {
	int code;
	explicit mpi_error(int code) : std::runtime_error("MPI error"), code(code)
	{
	}
};

extern "C" void raise_error(MPI_Comm *, int *code, ...)
{
	throw mpi_error(*code);
}

unsigned long long caught_inside, unwound_inside;

double now()
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return static_cast<double>(ts.tv_sec) + static_cast<double>(ts.tv_nsec) / 1e9;
}

/* Counts its destructions: an exception must unwind the frames between throw and catch. */
struct frame {
	unsigned long long &count;
	explicit frame(unsigned long long &count) : count(count)
	{
	}
	~frame()
	{
		count++;
	}
};

__attribute__((noinline)) void throw_inside(int code)
{
	frame guard(unwound_inside);

	throw mpi_error(code);
}

extern "C" void handle_error(MPI_Comm *, int *code, ...)
{
	try {
		throw_inside(*code);
	} catch (const mpi_error &error) {
		caught_inside += error.code == *code;
	}
}

void send_to_nobody(int rank, unsigned long long &unwound)
{
	frame guard(unwound);
	char byte = 0;

	MPI_Send(&byte, 1, MPI_BYTE, rank, 1, MPI_COMM_WORLD);
}

} // namespace

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"count", required_argument, nullptr, 'n'},
	    {"seconds", required_argument, nullptr, 's'},
	    {"delay", required_argument, nullptr, 'd'},
	    {"inside", no_argument, nullptr, 'i'},
	    {nullptr, 0, nullptr, 0},
	};
	unsigned long long thrown = 0, caught = 0, unwound = 0;
	double seconds = 5, delay = 0, end;
	MPI_Errhandler handler;
	bool inside = false;
	int count = 100, size, opt;

	MPI_Init(&argc, &argv);
	while ((opt = getopt_long(argc, argv, "", options, nullptr)) != -1) {
		switch (opt) {
		case 'n':
			count = atoi(optarg);
			break;
		case 's':
			seconds = atof(optarg);
			break;
		case 'd':
			delay = atof(optarg);
			break;
		case 'i':
			inside = true;
			break;
		default:
			fprintf(stderr, "usage: mpirun -n 1 throw [--count N] [--seconds T] [--delay T] [--inside]\n");
			MPI_Finalize();
			return 2;
		}
	}
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_create_errhandler(inside ? handle_error : raise_error, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	printf("{\"ready\":true,\"pid\":%d}\n", static_cast<int>(getpid()));
	fflush(stdout);
	if (delay > 0)
		wait_for_observer(delay);
	end = now() + seconds;
	do {
		for (int i = 0; i < count; i++) {
			thrown++;
			try {
				send_to_nobody(size + 7, unwound);
			} catch (const mpi_error &error) {
				if (error.code != MPI_SUCCESS)
					caught++;
			}
		}
		usleep(20000);
	} while (now() < end);
	if (inside) {
		caught = caught_inside;
		unwound = unwound_inside;
	}
	printf("{\"program\":\"throw\",\"thrown\":%llu,\"caught\":%llu,\"unwound\":%llu}\n", thrown, caught, unwound);
	fflush(stdout);
	MPI_Errhandler_free(&handler);
	MPI_Finalize();
	return caught == thrown && unwound == thrown ? 0 : 1;
}
