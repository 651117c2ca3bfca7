// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/unit_check.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define UNIT "vaprod.service"
#define SHOW                                                                                                           \
	"systemctl show " UNIT " --property=LoadState,PrivateNetwork,IPAddressAllow,IPAddressDeny,"                    \
	"RestrictAddressFamilies 2>/dev/null"
#define CURE "; `publish-unit.sh` in share/vapro prints a drop-in that allows it (vaprod(8), SYSTEMD)"
#define LIST_BYTES 4096
#define HOST_BYTES 256

struct unit {
	char load[64], network[16], allow[LIST_BYTES], deny[LIST_BYTES], families[LIST_BYTES];
};

static void take(const char *line, const char *name, char *value, size_t size)
{
	size_t length = strlen(name);

	if (!strncmp(line, name, length) && line[length] == '=')
		snprintf(value, size, "%.*s", (int)strcspn(line + length + 1, "\n"), line + length + 1);
}

/* Reads what systemd has of the unit. Returns whether there is one. */
static bool read_unit(struct unit *unit)
{
	FILE *pipe = popen(SHOW, "re");
	char *line = NULL;
	size_t room = 0;

	memset(unit, 0, sizeof(*unit));
	while (pipe && getline(&line, &room, pipe) > 0) {
		take(line, "LoadState", unit->load, sizeof(unit->load));
		take(line, "PrivateNetwork", unit->network, sizeof(unit->network));
		take(line, "IPAddressAllow", unit->allow, sizeof(unit->allow));
		take(line, "IPAddressDeny", unit->deny, sizeof(unit->deny));
		take(line, "RestrictAddressFamilies", unit->families, sizeof(unit->families));
	}
	free(line);
	if (pipe)
		pclose(pipe);
	return !strcmp(unit->load, "loaded");
}

/* Whether the first so many bits are equal. */
static bool same_bits(const unsigned char *a, const unsigned char *b, int bits)
{
	for (int i = 0; i < bits; i++) {
		if ((a[i / 8] ^ b[i / 8]) >> (7 - i % 8) & 1)
			return false;
	}
	return true;
}

/* Whether an address is in a list of ADDRESS/BITS, as systemctl prints it. */
static bool is_listed(const char *list, int family, const unsigned char *address)
{
	char copy[LIST_BYTES], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", list);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		char *slash = strchr(word, '/');
		unsigned char net[sizeof(struct in6_addr)];
		int all = family == AF_INET ? 32 : 128, bits = slash ? atoi(slash + 1) : all;

		if (slash)
			*slash = '\0';
		if (inet_pton(family, word, net) == 1 && bits >= 0 && bits <= all && same_bits(net, address, bits))
			return true;
	}
	return false;
}

static bool is_allowed(const struct unit *unit, const struct addrinfo *found)
{
	const unsigned char *address =
	    found->ai_family == AF_INET
		? (const void *)&((const struct sockaddr_in *)(const void *)found->ai_addr)->sin_addr
		: (const void *)&((const struct sockaddr_in6 *)(const void *)found->ai_addr)->sin6_addr;

	return is_listed(unit->allow, found->ai_family, address) || !is_listed(unit->deny, found->ai_family, address);
}

/* Whether the unit lets an address of the host be reached; true where the host has no address here. */
static bool reaches(const struct unit *unit, const char *host)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	bool any;

	if (getaddrinfo(host, NULL, &hints, &found))
		return true;
	any = !found;
	for (const struct addrinfo *at = found; !any && at; at = at->ai_next)
		any = (at->ai_family != AF_INET && at->ai_family != AF_INET6) || is_allowed(unit, at);
	freeaddrinfo(found);
	return any;
}

/* Copies the host of an address, as of nats://user:password@host:port or nats://[host]:port. */
static void host_of(const char *address, char host[HOST_BYTES])
{
	const char *begin = strstr(address, "://"), *at;

	begin = begin ? begin + 3 : address;
	at = strchr(begin, '@');
	begin = at ? at + 1 : begin;
	if (*begin == '[')
		snprintf(host, HOST_BYTES, "%.*s", (int)strcspn(begin + 1, "]"), begin + 1);
	else
		snprintf(host, HOST_BYTES, "%.*s", (int)strcspn(begin, ":/"), begin);
}

static int check_addresses(const struct unit *unit, const char *servers, FILE *out)
{
	char *copy = strdup(servers), *rest = NULL, host[HOST_BYTES];
	int warnings = 0;

	for (char *word = copy ? strtok_r(copy, ", ", &rest) : NULL; word; word = strtok_r(NULL, ", ", &rest)) {
		host_of(word, host);
		if (reaches(unit, host))
			continue;
		fprintf(out, "warning: " UNIT " does not allow the address of the broker %s (IPAddressDeny=)" CURE "\n",
			host);
		warnings++;
	}
	free(copy);
	return warnings;
}

int unit_check__brokers(const char *servers, FILE *out)
{
	struct unit unit;

	if (!read_unit(&unit))
		return 0;
	if (!strcmp(unit.network, "yes")) {
		fprintf(out,
			"warning: " UNIT " has no network (PrivateNetwork=yes): nothing can be published" CURE "\n");
		return 1;
	}
	/* a list that begins with ~ forbids, any other one allows */
	if (*unit.families && *unit.families != '~' && !strstr(unit.families, "AF_INET")) {
		fprintf(out, "warning: " UNIT " allows no connections (RestrictAddressFamilies=%s)" CURE "\n",
			unit.families);
		return 1;
	}
	return check_addresses(&unit, servers, out);
}
