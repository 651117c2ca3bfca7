// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/broker_rows.h"

#include <errno.h>

#include "base/exit_codes.h"

bool broker_rows__set(struct broker_options *broker, int id, const char *value)
{
	switch (id) {
	case ROW_BROKER_CREDENTIALS:
		broker->credentials = value;
		return true;
	case ROW_BROKER_CA:
		broker->ca = value;
		return true;
	case ROW_BROKER_CERT:
		broker->cert = value;
		return true;
	case ROW_BROKER_KEY:
		broker->key = value;
		return true;
	default:
		return false;
	}
}

bool from_rows__set(struct source_options *source, int id, const char *value)
{
	switch (id) {
	case ROW_FROM:
		source->broker.servers = value;
		return true;
	case ROW_FROM_CLUSTER:
		source->cluster = value;
		return true;
	default:
		return broker_rows__set(&source->broker, id, value);
	}
}

int from_rows__check(const struct source_options *source, char *err, size_t err_size)
{
	const struct broker_options *broker = &source->broker;
	char why[512];

	if (!broker->servers) {
		if (!source->cluster && !broker->credentials && !broker->ca && !broker->cert && !broker->key)
			return 0;
		snprintf(err, err_size, "--%s needs --from URL: the brokers from which the job is read",
			 source->cluster       ? "cluster"
			 : broker->credentials ? "credentials"
			 : broker->ca	       ? "ca"
			 : broker->cert	       ? "cert"
					       : "key");
		return -EINVAL;
	}
	if (source->cluster && !*source->cluster) {
		snprintf(err, err_size, "--cluster: a name is needed");
		return -EINVAL;
	}
	if (!broker_options__check(broker, why, sizeof(why)))
		return 0;
	snprintf(err, err_size, "--from: %s", why);
	return -EINVAL;
}

int from_rows__code(int error)
{
	return error == -EINVAL ? EXIT_USAGE : error == -EACCES ? EXIT_REFUSED : EXIT_FAILED;
}
