#!/usr/bin/env bash
# Takes each wing off in a copy of the working tree: deletes its folders, and in each file outside them the line that registers it,
# with the import that only this line needs. What remains has to build, pass vet, and pass the unit tests of what runs in the cluster
# and of the command line: those in whose dependencies a line went, and those that read files of other folders. The others are the same
# programs on the same files as in "make test".
set -euo pipefail
cd "$(dirname "$0")/../.."
ground=(./certs/... ./cmd/... ./guard/... ./policies/... ./webhook/...)
# Paths that a build contains are relative to the module, so that the copies share the caches of builds and of test results.
export GOFLAGS="${GOFLAGS:--trimpath -buildvcs=false}"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# affected FOLDER... prints the packages whose tests may differ: they depend on a package in FOLDER, or name files of other folders.
affected() {
  local edited
  edited=$(for f; do echo "github.com/gpuslice/gpuslice/${f#./}"; done)
  { go list -test -f '{{.ImportPath}} {{join .Deps " "}} ' "${ground[@]}" |
      awk -v edited="$edited" 'BEGIN {split(edited, e, "\n")} $1 ~ /[.]test$/ {for (i in e) if (index($0, " " e[i] " ")) {print substr($1, 1, length($1) - 5); break}}'
    grep -rlE --include='*_test.go' '"[.][.](/|")' "${ground[@]%/...}" | xargs -n 1 dirname | sed 's#^[.]/#github.com/gpuslice/gpuslice/#'
  } | sort -u
}

# off NAME REGISTRATION FOLDER...
off() {
  local name=$1 registration=$2 host lines folder hosts=() packages
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
    hosts+=("$(dirname "$host")")
    echo "$name: a line of $host"
  done < <(grep -rlE --include='*.go' --include='Makefile' --include='Dockerfile*' --include='.goreleaser.yaml' -e "$registration" . || true)
  make --no-print-directory build VERSION=removal | { grep -v '^CGO_ENABLED' || true; }
  go vet ./...
  packages=$(affected "${hosts[@]}")
  # shellcheck disable=SC2086
  env -u GOGC go test -vet=off $packages | { grep -v -e '^ok ' -e 'no test files' || true; }
  echo "$name: $(wc -w <<< "$packages") packages pass their tests"
  cd - > /dev/null
  echo "$name comes off"
}

while read -r name registration folders; do
  begin=$SECONDS
  # shellcheck disable=SC2086
  off "${name%:}" "$registration" $folders
  echo "$((SECONDS - begin)) seconds"
done < <(grep -v '^#' test/removal/wings)
