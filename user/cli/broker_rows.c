// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/broker_rows.h"

#include <errno.h>

#include "base/exit_codes.h"

bool broker_rows__write(const void *member, size_t n, char *text, size_t size)
{
	const char *servers = *(const char *const *)member;

	return !n && servers && broker__printable(text, size, servers);
}

const char *broker_rows__without_url(const struct broker_options *broker)
{
	return broker->servers	     ? NULL
	       : broker->credentials ? "broker-credentials"
	       : broker->ca	     ? "broker-ca"
	       : broker->cert	     ? "broker-cert"
	       : broker->key	     ? "broker-key"
				     : NULL;
}

int broker_rows__check(const struct source_options *source, char *err, size_t err_size)
{
	const struct broker_options *broker = &source->broker;
	const char *lonely = !broker->servers && source->cluster ? "cluster" : broker_rows__without_url(broker);
	char why[512];

	if (lonely) {
		snprintf(err, err_size, "--%s needs --broker URL: the brokers from which the job is read", lonely);
		return -EINVAL;
	}
	if (!broker->servers)
		return 0;
	if (!broker_options__check(broker, why, sizeof(why)))
		return 0;
	snprintf(err, err_size, "--broker: %s", why);
	return -EINVAL;
}

int broker_rows__code(int error)
{
	return error == -EINVAL ? EXIT_USAGE : error == -EACCES ? EXIT_REFUSED : EXIT_FAILED;
}
