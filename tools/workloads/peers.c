// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ranks without MPI, as torchrun starts them: RANK and WORLD_SIZE say who a process is, MASTER_ADDR and MASTER_PORT
 * where rank 0 listens. In each round all compute the same work, and rank 0 adds up their results over sockets, in
 * which they sleep until the others have come.
 *
 *   RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29511 peers [options of loop.h]
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/socket.h>

#include "loop.h"

enum { PEERS_MOST = 64, SEG_WORK = 1, WORK_US = 4000 };

struct message {
	uint64_t sum, over;
};

static struct loop loop;
static int peers[PEERS_MOST]; /* sockets: of rank 0 to each other one, of the others to rank 0 (the first) */

static int variable(const char *name)
{
	const char *text = getenv(name);

	return text ? (int)number(name, text, 0, 65535) : 0;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static struct sockaddr_in place_of_meeting(void)
{
	struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons((uint16_t)variable("MASTER_PORT"))};
	const char *address = getenv("MASTER_ADDR");

	if (inet_pton(AF_INET, address && strcmp(address, "localhost") ? address : "127.0.0.1", &place.sin_addr) != 1)
		fail("MASTER_ADDR");
	return place;
}

static void transfer(int fd, struct message *message, bool send_it)
{
	size_t done = 0;

	while (done < sizeof(*message)) {
		ssize_t n = send_it ? send(fd, (char *)message + done, sizeof(*message) - done, MSG_NOSIGNAL)
				    : recv(fd, (char *)message + done, sizeof(*message) - done, 0);

		if (n <= 0 && errno != EINTR)
			fail("peers");
		done += n > 0 ? (size_t)n : 0;
	}
}

static void meet(void)
{
	struct sockaddr_in place = place_of_meeting();
	int yes = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		fail("socket");
	if (loop.rank) {
		for (int i = 0; connect(fd, (struct sockaddr *)&place, sizeof(place)); i++) {
			if (i == 500)
				fail("connect");
			usleep(20000);
		}
		peers[0] = fd;
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
		if (bind(fd, (struct sockaddr *)&place, sizeof(place)) || listen(fd, PEERS_MOST))
			fail("bind");
		for (int i = 0; i + 1 < loop.size; i++)
			if ((peers[i] = accept(fd, NULL, NULL)) < 0)
				fail("accept");
		close(fd);
	}
	for (int i = 0; i < (loop.rank ? 1 : loop.size - 1); i++)
		setsockopt(peers[i], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

/* Adds up a message of all ranks; each has the sum then. */
static void add_up(struct message *mine)
{
	struct message other;

	if (loop.rank) {
		transfer(peers[0], mine, true);
		transfer(peers[0], mine, false);
		return;
	}
	for (int i = 0; i + 1 < loop.size; i++) {
		transfer(peers[i], &other, false);
		mine->sum += other.sum;
		mine->over += other.over;
	}
	for (int i = 0; i + 1 < loop.size; i++)
		transfer(peers[i], mine, true);
}

int main(int argc, char **argv)
{
	uint64_t round, wrong = 0, value = 4711;
	struct message message = {0};

	loop__options(&loop, "peers", argc, argv);
	loop.rank = variable("RANK");
	loop.size = variable("WORLD_SIZE");
	if (loop.size < 1 || loop.size > PEERS_MOST || loop.rank >= loop.size) {
		fprintf(stderr, "peers: RANK and WORLD_SIZE are missing or wrong\n");
		return 2;
	}
	loop__open(&loop, 400);
	truth__name(&loop.log, SEG_WORK, "work");
	printf("{\"ready\":true,\"pid\":%d}\n", (int)getpid());
	fflush(stdout);
	meet();
	loop__first(&loop);
	loop__begin(&loop);
	for (round = 0; !message.over; round++) {
		value = loop__compute(&loop, value, WORK_US);
		message = (struct message){value >> 8, loop.rank == 0 && loop__over(&loop, round + 1)};
		truth__enter(&loop.log, SEG_WORK);
		add_up(&message);
		truth__leave(&loop.log);
		wrong += message.sum != (uint64_t)loop.size * (value >> 8);
	}
	wrong += value != lcg_after(4711, round * WORK_US * LCG_STEPS_PER_US);
	return loop__end(&loop, round, wrong, loop__spent_s(&loop));
}
