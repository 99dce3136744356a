#!/usr/bin/env bash
# Takes each wing off in a copy of the working tree: deletes its folders, and in each file outside them the line that registers it,
# with the import that only this line needs. What remains has to build, vet and pass its unit tests.
set -euo pipefail
cd "$(dirname "$0")/../.."
ground=(./certs/... ./cmd/... ./guard/... ./policies/... ./webhook/...)
flags=${GOFLAGS:--trimpath} # so that the copies share the cache of builds and of test results
unset GOFLAGS
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# off NAME REGISTRATION FOLDER...
off() {
  local name=$1 registration=$2 host lines folder
  shift 2
  rm -rf "${copy:?}"/*
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
  done < <(grep -rlE --include='*.go' --include='Makefile' --include='Dockerfile*' --exclude-dir=arch -e "$registration" . || true)
  go build "$flags" ./...
  go vet "$flags" ./...
  go test "$flags" -vet=off "${ground[@]}" | { grep -v -e '^ok ' -e 'no test files' || true; }
  cd - > /dev/null
  echo "$name comes off"
}

while read -r name registration folders; do
  begin=$SECONDS
  # shellcheck disable=SC2086
  off "${name%:}" "$registration" $folders
  echo "$((SECONDS - begin)) seconds"
done < <(grep -v '^#' test/removal/wings)
