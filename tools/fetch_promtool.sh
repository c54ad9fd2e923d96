#!/usr/bin/env bash
# Puts Prometheus's promtool from Debian's package into a folder: tools/fetch_promtool.sh FOLDER
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -qq prometheus
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x -C "$folder" --strip-components=3 ./usr/bin/promtool
