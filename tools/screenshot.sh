#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# screenshot.sh PAGE PICTURE [WIDTH HEIGHT]: draws the upper part of a page of `vapro report` (WIDTH x HEIGHT pixels, by
# default 1280 x 1010, on light ground) into a PNG, in headless Chromium. docs/report.png is made of the demo's page:
#     make demo && tools/screenshot.sh build/demo/vapro.html docs/report.png
set -eu

page=${1:?a page of vapro report is needed} picture=${2:?the name of the picture is needed}
width=${3:-1280} height=${4:-1010}

if ! head -n 2 "$page" | grep -q 'vapro report'; then
	echo "screenshot: $page is no page of vapro report" >&2
	exit 1
fi
browser=$(command -v chromium || command -v chromium-browser) || {
	echo "screenshot: chromium is missing (Debian's package chromium)" >&2
	exit 1
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# a profile of its own: it neither needs nor disturbs that of the user
if ! timeout -k 5 60 "$browser" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$scratch" \
	--window-size="$width,$height" --virtual-time-budget=5000 --screenshot="$scratch/picture.png" \
	"file://$(realpath "$page")" >"$scratch/log" 2>&1 || [ ! -s "$scratch/picture.png" ]; then
	cat "$scratch/log" >&2
	echo "screenshot: chromium drew nothing" >&2
	exit 1
fi
cp "$scratch/picture.png" "$picture"
echo "$picture: $width x $height, $(wc -c <"$picture") bytes"
