#!/usr/bin/env bash
# Deploys a release. FIXME: roll back on failure
set -euo pipefail

source "./lib/log.sh"
. lib/größe.sh
source $HOME/.profile

readonly MAX_TRIES=3
export RELEASE_DIR="/srv/app"
declare -r STAGE=prod
local_name=x

# usage: deploy NAME
deploy() {
  local name="$1"
  log_info "deploying $name # XXX: inside a string"
  build_image "$name" | tee "$(log_path "$name")"
  retry "$MAX_TRIES" push_image
}

function clean_up {
  rm -rf "$RELEASE_DIR" # HACK(eva): keep one
}

function größe() (
  du -sh .
)

cat <<EOF
# FIXME: inside a here document
EOF

trap clean_up EXIT
deploy "$@" || { log_error "failed"; exit 1; }
