// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/elf/reader.h"

#include "probe/elf/frames.h"
#include "probe/elf/mpi_files.h"
#include "probe/elf/row_sites.h"
#include "probe/elf/survey.h"
#include "sandbox/confine.h"
#include "target/source.h"

static const struct confine_service services[] = {
    {SURVEY_SERVICE, survey__respond}, {ROW_SITES_SERVICE, row_sites__respond}, {SOURCE_SERVICE, source__respond},
    {FRAMES_SERVICE, frames__respond}, {MPI_FILES_SERVICE, mpi_files__respond}, {0},
};

void reader__main(int argc, char **argv)
{
	confine__main(argc, argv, services);
}
