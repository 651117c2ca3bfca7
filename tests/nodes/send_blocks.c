// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sends captures to a broker as the blocks of nodes, in ways that brokers and networks have: late, twice, in another
 * order, with gaps. Each capture is a node of its own. For tests of vapro-worker.
 */
#include <errno.h>
#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "altered.h"
#include "base/grow.h"
#include "broker/connection.h"
#include "capture/capture.h"
#include "capture/capture_file.h"
#include "wire/split.h"

struct packed {
	char subject[WIRE_SUBJECT_MAX], id[WIRE_ID_MAX], host[WIRE_TEXT_MAX];
	struct block block;
	uint64_t last_ns, order;
};

/* Receives the blocks of one capture after the other. */
struct packer {
	struct wire_receiver receiver; /* first */
	struct packed *blocks;
	size_t count, capacity;
	uint64_t first_ns; /* of all blocks with a time */
	bool failed;
};

struct options {
	const char *nats, *cluster, *inbox;
	const char *late_host, *silent_host, *version_host, *older_host, *newer_host, *hostile_host;
	double speed, late_s, late_from_s, silent_at_s, silent_s;
	unsigned long shuffle, skip_every, skip_first, garbage;
	char version;
	bool twice, by_file;
};

static void take(struct wire_receiver *receiver, const struct wire_job *job, const char *host,
		 const struct block *block)
{
	struct packer *packer = (struct packer *)receiver;
	struct block_head head;
	struct packed *packed;
	char err[512];

	if (grow(&packer->blocks, &packer->capacity, packer->count + 1, sizeof(*packed)) ||
	    block__head(&head, block->bytes, block->size, err, sizeof(err))) {
		packer->failed = true;
		return;
	}
	packed = &packer->blocks[packer->count++];
	packed->block = *block;
	packed->last_ns = head.last_ns;
	/* one without times comes with the block before it */
	if (!packed->last_ns && block->sequence)
		packed->last_ns = packed[-1].last_ns;
	if (packed->last_ns && (!packer->first_ns || packed->last_ns < packer->first_ns))
		packer->first_ns = packed->last_ns;
	snprintf(packed->host, sizeof(packed->host), "%s", host);
	if (wire__subject(packed->subject, sizeof(packed->subject), WIRE_IN, job, host) ||
	    wire__message_id(packed->id, sizeof(packed->id), block->run, job, block->sequence))
		packer->failed = true;
}

/* A sink before the split that lets its time pass with the events'. */
struct ticker {
	struct stream_sink sink; /* first */
	struct wire_split *split;
};

static int tick(struct stream_sink *sink, const struct stream_event *event)
{
	struct ticker *ticker = (struct ticker *)sink;

	if (event->type == STREAM_BUNDLE)
		wire_split__tick(ticker->split, event->bundle.end_ns);
	return stream__put(wire_split__sink(ticker->split), event);
}

static int pack(struct packer *packer, const char *path, const char *cluster)
{
	char err[512] = "";
	struct capture_file *file = capture_file__open(path, CAPTURE_LAST_RUN, err, sizeof(err));
	struct ticker ticker = {.sink = {.put = tick}};
	int ret = -1;

	if (file)
		ticker.split = wire_split__new(cluster, "", capture_file__tunables(file), &packer->receiver);
	if (ticker.split)
		ret = capture__replay((const char *const[]){path}, 1, &ticker.sink, err, sizeof(err));
	if (!ret)
		ret = stream__close(wire_split__sink(ticker.split));
	if (ret || packer->failed)
		fprintf(stderr, "send_blocks: %s: %s\n", path, err[0] ? err : "could not be packed");
	wire_split__free(ticker.split);
	capture_file__close(file);
	return ret || packer->failed ? -1 : 0;
}

static int by_order(const void *a, const void *b)
{
	const struct packed *one = a, *other = b;

	if (one->order != other->order)
		return one->order < other->order ? -1 : 1;
	return one->block.sequence < other->block.sequence ? -1 : one->block.sequence > other->block.sequence;
}

static bool is_of(const struct packed *packed, const char *host)
{
	return host && !strcmp(packed->host, host);
}

/* When a host that says nothing for a while sends a block. */
static uint64_t after_silence(const struct packer *packer, uint64_t order, const struct options *options)
{
	uint64_t begin_ns = packer->first_ns + (uint64_t)(options->silent_at_s * 1e9);
	uint64_t end_ns = begin_ns + (uint64_t)(options->silent_s * 1e9);

	return order > begin_ns && order < end_ns ? end_ns : order;
}

/* Makes blocks those of nodes of other versions. Returns 0 or -1. */
static int alter(struct packer *packer, const struct options *options)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < packer->count; i++) {
		struct packed *packed = &packer->blocks[i];

		if (is_of(packed, options->version_host))
			altered__version(packed->block.bytes, options->version);
		else if (is_of(packed, options->older_host) || is_of(packed, options->newer_host))
			ret = altered__columns(&packed->block, is_of(packed, options->newer_host));
		else if (is_of(packed, options->hostile_host))
			altered__head(packed->block.bytes, 1 + (unsigned)i % 4);
	}
	if (ret)
		fprintf(stderr, "send_blocks: a block could not be altered\n");
	return ret;
}

static void arrange(struct packer *packer, const struct options *options)
{
	srandom((unsigned)options->shuffle);
	for (size_t i = 0; i < packer->count; i++) {
		struct packed *packed = &packer->blocks[i];

		packed->order = packed->last_ns ? packed->last_ns : packer->first_ns;
		if (options->by_file)
			packed->order = i;
		if (options->shuffle)
			packed->order = (uint64_t)random();
		if (is_of(packed, options->silent_host))
			packed->order = after_silence(packer, packed->order, options);
		if (is_of(packed, options->late_host) &&
		    (double)(packed->order - packer->first_ns) * 1e-9 >= options->late_from_s)
			packed->order += (uint64_t)(options->late_s * 1e9);
	}
	qsort(packer->blocks, packer->count, sizeof(*packer->blocks), by_order);
}

static int publish(jsCtx *js, const char *subject, const void *bytes, size_t size, const char *id)
{
	jsPubOptions options;
	jsErrCode code = 0;
	natsStatus status = NATS_ERR;

	jsPubOptions_Init(&options);
	options.MsgId = id;
	for (int try = 0; try < 120 && status != NATS_OK; try++) {
		status = js_Publish(NULL, js, subject, bytes, (int)size, &options, &code);
		if (status != NATS_OK)
			nanosleep(&(struct timespec){0, 500000000L}, NULL);
	}
	if (status != NATS_OK)
		fprintf(stderr, "send_blocks: %s: %s\n", subject, natsStatus_GetText(status));
	return status == NATS_OK ? 0 : -1;
}

static int send_all(jsCtx *js, struct packer *packer, const struct options *options)
{
	uint64_t before_ns = 0;
	size_t sent = 0;

	for (size_t i = 0; i < packer->count; i++) {
		struct packed *packed = &packer->blocks[i];
		char garbage[256];

		if (options->speed > 0 && before_ns && packed->order > before_ns) {
			double wait_s = (double)(packed->order - before_ns) * 1e-9 / options->speed;

			nanosleep(&(struct timespec){(time_t)wait_s, (long)((wait_s - (double)(time_t)wait_s) * 1e9)},
				  NULL);
		}
		before_ns = packed->order;
		if (options->skip_every && i % options->skip_every == options->skip_every - 1)
			continue;
		if (packed->block.sequence < options->skip_first)
			continue;
		if (publish(js, packed->subject, packed->block.bytes, packed->block.size, packed->id))
			return -1;
		sent++;
		if (options->twice && publish(js, packed->subject, packed->block.bytes, packed->block.size, NULL))
			return -1;
		if (options->garbage && i % options->garbage == 0) {
			/* the head of a block, and damage after it: under the subject of its host, and of another */
			size_t size = packed->block.size < sizeof(garbage) ? packed->block.size : sizeof(garbage);

			memcpy(garbage, packed->block.bytes, size);
			garbage[size / 2] ^= 0x55;
			if (publish(js, packed->subject, garbage, size, NULL) ||
			    publish(js, packer->blocks[(i + 1) % packer->count].subject, packed->block.bytes,
				    packed->block.size, NULL))
				return -1;
		}
	}
	printf("%zu blocks sent\n", sent);
	return 0;
}

static bool parse(struct options *options, int argc, char **argv, int *first)
{
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		const char *name = argv[i];

		if (!strcmp(name, "--twice"))
			options->twice = true;
		else if (!strcmp(name, "--by-file"))
			options->by_file = true;
		else if (i + 1 >= argc)
			return false;
		else if (!strcmp(name, "--nats"))
			options->nats = argv[++i];
		else if (!strcmp(name, "--cluster"))
			options->cluster = argv[++i];
		else if (!strcmp(name, "--inbox"))
			options->inbox = argv[++i];
		else if (!strcmp(name, "--speed"))
			options->speed = strtod(argv[++i], NULL);
		else if (!strcmp(name, "--shuffle"))
			options->shuffle = strtoul(argv[++i], NULL, 10);
		else if (!strcmp(name, "--skip-every"))
			options->skip_every = strtoul(argv[++i], NULL, 10);
		else if (!strcmp(name, "--garbage-every"))
			options->garbage = strtoul(argv[++i], NULL, 10);
		else if (!strcmp(name, "--skip-first"))
			options->skip_first = strtoul(argv[++i], NULL, 10);
		else if (!strcmp(name, "--silent-host"))
			options->silent_host = argv[++i];
		else if (!strcmp(name, "--silent-at"))
			options->silent_at_s = strtod(argv[++i], NULL);
		else if (!strcmp(name, "--silent"))
			options->silent_s = strtod(argv[++i], NULL);
		else if (!strcmp(name, "--version-host"))
			options->version_host = argv[++i];
		else if (!strcmp(name, "--version"))
			options->version = argv[++i][0];
		else if (!strcmp(name, "--older-host"))
			options->older_host = argv[++i];
		else if (!strcmp(name, "--newer-host"))
			options->newer_host = argv[++i];
		else if (!strcmp(name, "--hostile-host"))
			options->hostile_host = argv[++i];
		else if (!strcmp(name, "--late-host"))
			options->late_host = argv[++i];
		else if (!strcmp(name, "--late-from"))
			options->late_from_s = strtod(argv[++i], NULL);
		else if (!strcmp(name, "--late"))
			options->late_s = strtod(argv[++i], NULL);
		else
			return false;
	}
	*first = i;
	return options->nats && i < argc;
}

int main(int argc, char **argv)
{
	struct options options = {.cluster = "test", .version = '2'};
	struct packer packer = {.receiver = {take}};
	natsOptions *nats = NULL;
	char err[512];
	natsConnection *connection = NULL;
	jsCtx *js = NULL;
	natsStatus status;
	int first, ret = 0;

	if (!parse(&options, argc, argv, &first)) {
		fputs("Usage: send_blocks --nats URL [option]... CAPTURE...\n"
		      "  --cluster NAME     (test)\n"
		      "  --inbox PREFIX     of replies (_INBOX): a user of the role node has _INBOX_<its host>\n"
		      "  --speed X          X seconds of the captures in a second (as fast as possible)\n"
		      "  --by-file          one capture after the other, not by time\n"
		      "  --shuffle SEED     in any order\n"
		      "  --twice            each block twice\n"
		      "  --skip-every N     each N-th block is lost\n"
		      "  --garbage-every N  after each N-th block a damaged one, and one that another host has sent\n"
		      "  --skip-first N     the first N blocks of each run are lost\n"
		      "  --late-host HOST, --late SECONDS  of the captures\n"
		      "  --silent-host HOST, --silent-at SECONDS, --silent SECONDS  sends nothing for a while\n"
		      "  --version-host HOST, --version C  the wire format of this host has the version C (2)\n"
		      "  --older-host HOST, --newer-host HOST  has a column less, or more\n"
		      "  --hostile-host HOST  alters bytes in the heads, with a right checksum\n",
		      stderr);
		return 2;
	}
	for (int i = first; !ret && i < argc; i++)
		ret = pack(&packer, argv[i], options.cluster);
	arrange(&packer, &options);
	if (!ret)
		ret = alter(&packer, &options);
	/* a user of the role node reads its own inbox only */
	nats = broker__options(&(struct broker_options){.servers = options.nats, .inbox = options.inbox}, err,
			       sizeof(err));
	status = nats ? natsConnection_Connect(&connection, nats) : NATS_INVALID_ARG;
	natsOptions_Destroy(nats);
	if (status == NATS_OK)
		status = natsConnection_JetStream(&js, connection, NULL);
	if (status != NATS_OK) {
		fprintf(stderr, "send_blocks: %s: %s\n", options.nats, natsStatus_GetText(status));
		ret = -1;
	}
	if (!ret)
		ret = send_all(js, &packer, &options);
	for (size_t i = 0; i < packer.count; i++)
		free(packer.blocks[i].block.bytes);
	free(packer.blocks);
	jsCtx_Destroy(js);
	natsConnection_Destroy(connection);
	nats_Close();
	return ret ? 1 : 0;
}
