/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A nats-server of a test's own, on loopback, with a port and a directory of its own; ended by its pid. */
#ifndef VAPRO_TESTS_BROKERS_H
#define VAPRO_TESTS_BROKERS_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct broker {
	pid_t pid; /* 0: not running */
	int port;
	char directory[64], config[80], url[64];
};

static inline int broker__connect_to(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int ret;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ret = connect(fd, (struct sockaddr *)&address, sizeof(address));
	close(fd);
	return ret;
}

static inline const char *broker__program(void)
{
	static const char *const places[] = {"/usr/sbin/nats-server", "/usr/bin/nats-server",
					     "/usr/local/bin/nats-server"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (!access(places[i], X_OK))
			return places[i];
	}
	return NULL;
}

/* Chooses a free port and makes the directory; extra is more of the configuration. */
static inline void broker__prepare(struct broker *broker, const char *extra)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FILE *file;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bind(fd, (struct sockaddr *)&address, sizeof(address));
	getsockname(fd, (struct sockaddr *)&address, &length);
	close(fd);
	*broker = (struct broker){.port = ntohs(address.sin_port)};
	snprintf(broker->directory, sizeof(broker->directory), "/tmp/vapro-test-broker-XXXXXX");
	if (!mkdtemp(broker->directory))
		abort();
	snprintf(broker->config, sizeof(broker->config), "%s/conf", broker->directory);
	snprintf(broker->url, sizeof(broker->url), "nats://127.0.0.1:%d", broker->port);
	file = fopen(broker->config, "w");
	fprintf(file, "listen: 127.0.0.1:%d\njetstream { store_dir: \"%s\", max_mem: 16M, max_file: 512M }\n%s\n",
		broker->port, broker->directory, extra);
	fclose(file);
}

/* Starts it and waits until it listens. */
static inline bool broker__start(struct broker *broker)
{
	pid_t pid = fork();

	if (!pid) {
		int fd = open("/dev/null", O_RDWR);

		dup2(fd, 0);
		dup2(fd, 1);
		dup2(fd, 2);
		execl(broker__program(), "nats-server", "-c", broker->config, NULL);
		_exit(127);
	}
	broker->pid = pid;
	for (int i = 0; i < 1000; i++) {
		if (!broker__connect_to(broker->port))
			return true;
		usleep(10000);
	}
	return false;
}

static inline void broker__stop(struct broker *broker, int signal)
{
	if (!broker->pid)
		return;
	kill(broker->pid, signal);
	waitpid(broker->pid, NULL, 0);
	broker->pid = 0;
}

static inline int broker__remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status;
	(void)type;
	(void)where;
	return remove(path);
}

static inline void broker__remove(struct broker *broker)
{
	broker__stop(broker, SIGKILL);
	nftw(broker->directory, broker__remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
