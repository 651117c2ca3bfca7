// SPDX-License-Identifier: GPL-2.0-or-later
#include "broker/connection.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVERS_MAX 16
#define CONNECT_MS 2000
#define WRITE_MS 5000 /* a broker that takes nothing for so long is left */
#define PING_MS 5000  /* and one that answers nothing for three times this */
#define RECONNECT_MS 250
#define RECONNECT_JITTER_MS 1000
#define PENDING_BYTES (1 << 20) /* that the library holds while there is no connection */

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Length of an address's "nats://", 0 where it has none. */
static size_t scheme_bytes(const char *server)
{
	const char *end = strstr(server, "://");

	return end && end < server + strcspn(server, ",") ? (size_t)(end + 3 - server) : 0;
}

/* Where the address without user and password begins, and its length up to the next comma. */
static const char *host_part(const char *server, size_t *length)
{
	const char *host = server + scheme_bytes(server);
	size_t whole = strcspn(server, ",");

	for (const char *at = host; at < server + whole; at++) {
		if (*at == '@')
			host = at + 1;
	}
	*length = (size_t)(server + whole - host);
	return host;
}

const char *broker__printable(char *text, size_t size, const char *servers)
{
	size_t used = 0;

	if (size)
		text[0] = 0;
	for (const char *at = servers; at && used + 1 < size; at = strchr(at, ',')) {
		size_t length;
		const char *host = host_part(at += *at == ',', &length);
		int written = snprintf(text + used, size - used, "%s%.*s%.*s", used ? "," : "", (int)scheme_bytes(at),
				       at, (int)length, host);

		used += written > 0 ? (size_t)written : 0;
	}
	return text;
}

const char *broker__reason(natsStatus status)
{
	switch (status) {
	case NATS_NO_SERVER:
	case NATS_NOT_YET_CONNECTED:
		return "no broker answers at that address";
	case NATS_CONNECTION_AUTH_FAILED:
		return "the broker refuses these credentials";
	case NATS_CONNECTION_CLOSED:
	case NATS_CONNECTION_DISCONNECTED:
		return "the connection to the broker was lost";
	case NATS_TIMEOUT:
		return "the broker did not answer in time";
	case NATS_NO_RESPONDERS:
		return "the broker has no JetStream, or no stream for this subject";
	case NATS_NOT_PERMITTED:
		return "the broker does not permit it";
	case NATS_MAX_PAYLOAD:
		return "the message is larger than the broker's max_payload";
	case NATS_SSL_ERROR:
		return "TLS failed: the certificate of the broker or of this node is not accepted";
	case NATS_SECURE_CONNECTION_REQUIRED:
	case NATS_SECURE_CONNECTION_WANTED:
		return "only one side wants TLS";
	default:
		return natsStatus_GetText(status);
	}
}

static int check_file(const char *option, const char *path, char *err, size_t err_size)
{
	if (!path || !access(path, R_OK))
		return 0;
	snprintf(err, err_size, "%s: %s: %s", option, path, strerror(errno));
	return -EINVAL;
}

int broker_options__check(const struct broker_options *options, char *err, size_t err_size)
{
	size_t count = 0;

	for (const char *at = options->servers; at; at = strchr(at, ',')) {
		size_t length;

		at += *at == ',' && count;
		host_part(at, &length);
		if (!length || (!begins(at, "nats://") && !begins(at, "tls://"))) {
			/* the text may hold a password: only its number is printed */
			snprintf(
			    err, err_size,
			    "address %zu of the broker is not valid: write nats://HOST[:PORT] or tls://HOST[:PORT], "
			    "several of one cluster separated by commas",
			    count + 1);
			return -EINVAL;
		}
		if (++count > SERVERS_MAX) {
			snprintf(err, err_size, "more than %d addresses of brokers", SERVERS_MAX);
			return -EINVAL;
		}
	}
	if (!options->cert != !options->key) {
		snprintf(err, err_size, "a certificate needs its key, and a key its certificate");
		return -EINVAL;
	}
	if (check_file("credentials", options->credentials, err, err_size) ||
	    check_file("certificates of authorities", options->ca, err, err_size) ||
	    check_file("certificate", options->cert, err, err_size) || check_file("key", options->key, err, err_size))
		return -EINVAL;
	return 0;
}

/* The library's own handler writes to standard error. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status, void *closure)
{
	(void)connection;
	(void)subscription;
	(void)status;
	(void)closure;
}

static natsStatus set_servers(natsOptions *made, const char *servers)
{
	const char *urls[SERVERS_MAX];
	char *text = strdup(servers), *save = NULL;
	natsStatus status = NATS_NO_MEMORY;
	int count = 0;

	for (char *url = text ? strtok_r(text, ",", &save) : NULL; url && count < SERVERS_MAX;
	     url = strtok_r(NULL, ",", &save))
		urls[count++] = url;
	if (text)
		status = natsOptions_SetServers(made, urls, count);
	free(text);
	return status;
}

/* The library compares one name with the certificate, or none: with several brokers the authority must be trusted. */
static natsStatus expect_host(natsOptions *made, const char *servers)
{
	char name[256];
	size_t length;
	const char *host = host_part(servers, &length);

	if (strchr(servers, ','))
		return NATS_OK;
	snprintf(name, sizeof(name), "%.*s", (int)length, host);
	if (*name == '[')
		memmove(name, name + 1, strlen(name));
	name[strcspn(name, *host == '[' ? "]" : ":/")] = 0;
	return natsOptions_SetExpectedHostname(made, name);
}

static natsStatus set_security(natsOptions *made, const struct broker_options *options)
{
	natsStatus status = NATS_OK;

	if (options->credentials)
		status = natsOptions_SetUserCredentialsFromFiles(made, options->credentials, NULL);
	if (status == NATS_OK && (options->ca || options->cert || strstr(options->servers, "tls://")))
		status = natsOptions_SetSecure(made, true);
	if (status == NATS_OK)
		status = expect_host(made, options->servers);
	if (status == NATS_OK && options->ca)
		status = natsOptions_LoadCATrustedCertificates(made, options->ca);
	if (status == NATS_OK && options->cert)
		status = natsOptions_LoadCertificatesChain(made, options->cert, options->key);
	return status;
}

static natsStatus set_patience(natsOptions *made)
{
	natsStatus status = natsOptions_SetTimeout(made, CONNECT_MS);

	if (status == NATS_OK)
		status = natsOptions_SetWriteDeadline(made, WRITE_MS);
	if (status == NATS_OK)
		status = natsOptions_SetPingInterval(made, PING_MS);
	if (status == NATS_OK)
		status = natsOptions_SetMaxPingsOut(made, 2);
	if (status == NATS_OK)
		status = natsOptions_SetMaxReconnect(made, -1);
	if (status == NATS_OK)
		status = natsOptions_SetReconnectWait(made, RECONNECT_MS);
	if (status == NATS_OK)
		status = natsOptions_SetReconnectJitter(made, RECONNECT_JITTER_MS, RECONNECT_JITTER_MS);
	if (status == NATS_OK)
		status = natsOptions_SetReconnectBufSize(made, PENDING_BYTES);
	return status;
}

natsOptions *broker__options(const struct broker_options *options, char *err, size_t err_size)
{
	natsOptions *made = NULL;
	natsStatus status;

	if (broker_options__check(options, err, err_size))
		return NULL;
	status = natsOptions_Create(&made);
	if (status == NATS_OK)
		status = set_servers(made, options->servers);
	if (status == NATS_OK)
		status = set_security(made, options);
	if (status == NATS_OK)
		status = set_patience(made);
	if (status == NATS_OK && options->name)
		status = natsOptions_SetName(made, options->name);
	if (status == NATS_OK && options->inbox)
		status = natsOptions_SetCustomInboxPrefix(made, options->inbox);
	if (status == NATS_OK)
		status = natsOptions_SetErrorHandler(made, on_error, NULL);
	if (status == NATS_OK)
		return made;
	snprintf(err, err_size, "the options of the broker's connection: %s", broker__reason(status));
	natsOptions_Destroy(made);
	return NULL;
}
