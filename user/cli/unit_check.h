/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether the systemd unit of vaprod lets it reach the brokers of the configuration. */
#ifndef VAPRO_UNIT_CHECK_H
#define VAPRO_UNIT_CHECK_H

#include <stdio.h>

/*
 * Writes a warning to out for what the unit forbids of these brokers, as a list of addresses, by what systemctl says of
 * vaprod.service. Writes nothing where there is no systemctl or no such unit. Returns the number of warnings.
 */
int unit_check__brokers(const char *servers, FILE *out);

#endif
