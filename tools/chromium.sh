#!/bin/sh
# Chromium for the tests of pages. Says what to do where it cannot be installed; the
# tests are then left out, unless FERMATA_BROWSER asks for them.
for name in chromium chromium-browser google-chrome; do
	if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
	echo "installing Chromium for the tests of pages (apt-get install chromium)"
	(apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium) >/dev/null && exit 0
fi
echo "Chromium is missing and could not be installed here, so pages are not tested in a browser: apt-get install chromium (as root), or put chromium into PATH" >&2
[ -z "$FERMATA_BROWSER" ]
