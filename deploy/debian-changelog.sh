#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Prints the changelog of the Debian package: debian-changelog.sh VERSION < CHANGELOG.md. What changed is in CHANGELOG.md,
# which the package has; the date is that of its newest entry.
set -eu
date=$(sed -n 's/^##* .*\(20[0-9][0-9]-[0-1][0-9]-[0-3][0-9]\).*/\1/p' | head -n 1)
cat <<EOF
vapro ($1) unstable; urgency=medium

  * Version $1; CHANGELOG.md lists what changed.

 -- the vapro maintainers <maintainers@vapro.invalid>  $(LC_ALL=C date -u -R -d "$date 12:00")
EOF
