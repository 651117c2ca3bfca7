// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzer of what root's vaprod reads from other users and from a broker: requests over its two sockets, a worker's
 * requests and subjects. What is accepted is written again, and must then read as the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "query/protocol.h"
#include "query/status.h"
#include "wire/request.h"

static const char *const origins[] = {
    "vapro/1 diagnose\nregion 8-15,3@12.5..20\njob slurm:1234.0\nformat json\nwidth 100\n\n",
    "vapro/1 diagnose\njobs all\n\n",
    "vapro/1 status\ninterval_ms 1000\n\n",
    "vapro/1 report\n\n",
    "{\"version\":1,\"kind\":\"stage\",\"job\":\"slurm:7\",\"user\":1001,\"stage\":2,\"expand\":\"backend\","
    "\"variance\":1,"
    "\"interrupts\":true}",
    "{\"version\":1,\"kind\":\"inside\",\"job\":\"slurm:7\",\"user\":1001,\"tids\":[100,101]}",
    "{\"version\":1,\"kind\":\"hop\",\"job\":\"slurm:7\",\"user\":1001,\"site\":\"a@1+0x1\",\"symbol\":\"f\",\"hop\":"
    "\"up\"}",
    "{\"version\":1,\"kind\":\"set\",\"job\":\"slurm:7\",\"user\":1001,\"image\":\"libmpi.so\",\"without\":\"MPI_"
    "Isend\","
    "\"host\":\"n1\",\"worker\":\"w\"}",
    "vapro.v1.in.main.slurm=3A7==1001.n1=2Esite",
    "error refused a sentence that says why",
};

const uint8_t *fuzz__origin(size_t *size)
{
	static unsigned next;
	const char *origin = origins[next++ % (sizeof(origins) / sizeof(origins[0]))];

	*size = strlen(origin);
	return (const uint8_t *)origin;
}

static void read_query(const char *text, size_t size)
{
	static struct query_request request, again;
	char written[QUERY_REQUEST_MAX], err[512];
	int length;

	memset(&request, 0, sizeof(request));
	memset(&again, 0, sizeof(again));
	if (query_request__parse(text, size, &request, err, sizeof(err)))
		return;
	length = query_request__format(&request, written, sizeof(written));
	fuzz__require(length > 0);
	fuzz__require(!query_request__parse(written, (size_t)length, &again, err, sizeof(err)));
	fuzz__require(!strcmp(request.region_text, again.region_text) && !strcmp(request.job, again.job));
	fuzz__require(request.json == again.json && request.jobs == again.jobs && request.width == again.width);
}

static void read_status(const char *text, size_t size)
{
	struct status_request request = {0}, again = {0};
	char written[STATUS_REQUEST_MAX], err[512];
	int length;

	if (status_request__parse(text, size, &request, err, sizeof(err)))
		return;
	length = status_request__format(&request, written, sizeof(written));
	fuzz__require(length > 0);
	fuzz__require(!status_request__parse(written, (size_t)length, &again, err, sizeof(err)));
	fuzz__require(request.report == again.report && request.interval_ms == again.interval_ms);
}

static void read_wire(const char *text, size_t size)
{
	static struct wire_request request, again;
	char written[WIRE_REQUEST_MAX], why[512];
	int length;

	memset(&request, 0, sizeof(request));
	memset(&again, 0, sizeof(again));
	if (wire_request__parse(&request, text, size, why, sizeof(why)))
		return;
	length = wire_request__format(written, sizeof(written), &request);
	if (length == -ENOSPC) /* what is written is escaped, and may be longer */
		return;
	fuzz__require(length > 0);
	fuzz__require(!wire_request__parse(&again, written, (size_t)length, why, sizeof(why)));
	fuzz__require(!memcmp(&request, &again, sizeof(request))); /* unused bytes are zero in both */
}

static void read_subject(const char *text)
{
	static struct wire_subject subject, again;
	char written[WIRE_SUBJECT_MAX];

	if (wire_subject__parse(&subject, text) || subject.cut)
		return;
	fuzz__require(!wire__subject(written, sizeof(written), subject.role, &subject.job, subject.host));
	fuzz__require(!wire_subject__parse(&again, written));
	if (again.cut) /* a token that is longer than any that vapro writes */
		return;
	fuzz__require(subject.role == again.role && wire_job__equal(&subject.job, &again.job) &&
		      !strcmp(subject.host, again.host));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct query_head head;
	char *text = malloc(size + 1);

	fuzz__require(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	read_query(text, size);
	read_status(text, size);
	read_wire(text, size);
	if (strlen(text) == size) {
		read_subject(text);
		(void)query_head__parse(text, &head);
	}
	free(text);
	return 0;
}
