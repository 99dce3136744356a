#!/usr/bin/env bash
# Takes each wing off in a copy of the working tree: deletes its folders, and in each file outside them the line that registers it,
# with the import that only this line needs. What remains has to build, pass vet, and pass the unit tests of what runs in the cluster
# and of the command line.
set -euo pipefail
cd "$(dirname "$0")/../.."
ground=(./certs/... ./cmd/... ./guard/... ./policies/... ./webhook/...)
# Paths that a build contains are relative to the module, so that the copies share the caches of builds and of test results.
export GOFLAGS="${GOFLAGS:--trimpath -buildvcs=false}"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# off NAME REGISTRATION FOLDER...
off() {
  local name=$1 registration=$2 host lines folder
  shift 2
  find "$copy" -mindepth 1 -delete
  git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do [ ! -f "$f" ] || printf '%s\0' "$f"; done |
    xargs -0 cp -p --parents -t "$copy" # with their times, which cached test results depend on
  cd "$copy"
  rm -r "$@"
  while IFS= read -r host; do
    lines=$(grep -cE "$registration" "$host")
    [ "$lines" = 1 ] || { echo "$name: $host has $lines lines that register it, at most one is allowed"; return 1; }
    sed -i -E -e "\\#$registration#d" "$host"
    for folder; do sed -i -E -e "\\#^[[:space:]]*\"github.com/gpuslice/gpuslice/$folder(/[^\"]*)?\"\$#d" "$host"; done
    echo "$name: a line of $host"
  done < <(grep -rlE --include='*.go' --include='Makefile' --include='Dockerfile*' --include='.goreleaser.yaml' -e "$registration" . || true)
  make --no-print-directory build VERSION=removal | { grep -v '^CGO_ENABLED' || true; }
  go vet ./...
  # As "make test" runs them, whose results are taken where nothing changed.
  go test -vet=off -exec "env -u GOGC" "${ground[@]}" | { grep -v -e '^ok ' -e 'no test files' || true; }
  cd - > /dev/null
  echo "$name comes off"
}

while read -r name registration folders; do
  begin=$SECONDS
  # shellcheck disable=SC2086
  off "${name%:}" "$registration" $folders
  echo "$((SECONDS - begin)) seconds"
done < <(grep -v '^#' test/removal/wings)
