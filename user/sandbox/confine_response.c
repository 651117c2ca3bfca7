// SPDX-License-Identifier: GPL-2.0-or-later
/* Bytes of a reader's response, which are received as they come, and what they mean. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/confine_private.h"

#define AT_ONCE (64U << 10)
#define BYTES_MAX (sizeof(struct confine_head) + CONFINE_RESPONSE_BYTES_MAX)

/* How many bytes the response has by its head; 0 where the head makes no sense, BYTES_MAX while there is none. */
static size_t size_of(const struct confine_inbox *inbox)
{
	struct confine_head head;

	if (inbox->size < sizeof(head))
		return BYTES_MAX;
	memcpy(&head, inbox->data, sizeof(head));
	if (head.size > (head.status ? CONFINE_SENTENCE_MAX - 1 : CONFINE_RESPONSE_BYTES_MAX))
		return 0;
	return sizeof(head) + (size_t)head.size;
}

static int make_room(struct confine_inbox *inbox)
{
	size_t wanted = inbox->size + AT_ONCE, room = inbox->room * 2 > wanted ? inbox->room * 2 : wanted;
	uint8_t *more;

	if (inbox->room >= wanted)
		return 0;
	more = realloc(inbox->data, room);
	if (!more)
		return -ENOMEM;
	inbox->data = more;
	inbox->room = room;
	return 0;
}

int confine_inbox__receive(struct confine_inbox *inbox, int pipe)
{
	for (;;) {
		ssize_t got;

		if (make_room(inbox))
			return -ENOMEM;
		got = read(pipe, inbox->data + inbox->size, AT_ONCE);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno; /* -EAGAIN: more may come */
		if (got == 0)
			return 0;
		inbox->size += (size_t)got;
		if (inbox->size > size_of(inbox))
			return -EBADMSG;
	}
}

int confine_inbox__open(struct confine_inbox *inbox, struct confine_response *response, char *err, size_t err_size)
{
	struct confine_head head;

	if (inbox->size < sizeof(head) || inbox->size != size_of(inbox))
		return -EPIPE;
	memcpy(&head, inbox->data, sizeof(head));
	if (head.status) {
		for (size_t i = sizeof(head); i < inbox->size; i++)
			if (inbox->data[i] < ' ' || inbox->data[i] > '~')
				inbox->data[i] = '?';
		snprintf(err, err_size, "%.*s", (int)head.size, inbox->data + sizeof(head));
		return -EINVAL;
	}
	/* the bytes move to the front, so that the caller can free them */
	memmove(inbox->data, inbox->data + sizeof(head), (size_t)head.size);
	response->data = realloc(inbox->data, (size_t)head.size + 1);
	if (!response->data)
		return -ENOMEM;
	response->size = (size_t)head.size;
	*inbox = (struct confine_inbox){0};
	return 0;
}

void confine_inbox__free(struct confine_inbox *inbox)
{
	free(inbox->data);
	*inbox = (struct confine_inbox){0};
}
