#!/usr/bin/env bash
# Builds etcd, kube-apiserver, kube-scheduler and kwok from their Go modules, for the tests in
# tests/cluster: tools/build_control_plane.sh [FOLDER]
# Prints the folder, which KUBEBUILDER_ASSETS is to name; skips what it already holds. The first
# build takes up to 30 minutes of two busy cores, 4 GB of memory and of disk in Go's own caches.
set -euo pipefail
kubernetes=v1.36.4
etcd=v3.6.8 # the one that this Kubernetes names in its go.mod
kwok=v0.8.0 # the one whose libraries are of this Kubernetes; it stands in for kubelets
go_directive=1.26.0
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/podium/kube/$kubernetes}
declare -A packages=(
  [etcd]=go.etcd.io/etcd/server/v3
  [kube-scheduler]=k8s.io/kubernetes/cmd/kube-scheduler
  [kube-apiserver]=k8s.io/kubernetes/cmd/kube-apiserver
)
declare -A versions=(
  [etcd]=${etcd#v} [kube-scheduler]=$kubernetes [kube-apiserver]=$kubernetes [kwok]=$kwok
)

say() { echo "build_control_plane: $*" >&2; }

is_built() {
  [ -x "$folder/$1" ] && [[ " $("$folder/$1" --version) " == *[[:space:]]"${versions[$1]}"[[:space:]]* ]]
}

# Kubernetes keeps its libraries beside it and replaces them by path; a module must name them by
# version. A library of v1.36.4 is published as v0.36.4.
write_module() {
  go mod download "k8s.io/kubernetes@$kubernetes"
  local source library
  source=$(go env GOMODCACHE)/k8s.io/kubernetes@$kubernetes
  {
    printf 'module podium.invalid/controlplane\n\ngo %s\n\n' "$go_directive"
    printf 'require k8s.io/kubernetes %s\nrequire go.etcd.io/etcd/server/v3 %s\n' "$kubernetes" "$etcd"
    sed -n 's|^\t\(k8s.io/[a-z-]*\) => ./staging/.*|\1|p' "$source/go.mod" | while read -r library; do
      printf 'replace %s => %s v0%s\n' "$library" "$library" "${kubernetes#v1}"
    done
  } > go.mod
}

# Without the stamp the API server calls itself v0.0.0, which clients cannot read.
stamp() {
  local minor=${kubernetes#v1.} name
  for name in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf ' -X %s.gitVersion=%s -X %s.gitMajor=1 -X %s.gitMinor=%s' \
      "$name" "$kubernetes" "$name" "$name" "${minor%%.*}"
  done
}

build() {
  say "building $1 ${versions[$1]}"
  if [ "$1" = kwok ]; then
    # A module of its own: its libraries are not those of the others.
    GOBIN=$work go install -trimpath \
      -ldflags "-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=$kwok" "sigs.k8s.io/kwok/cmd/kwok@$kwok"
    mv "$work/kwok" "$folder/kwok.new"
  else
    [ -f go.mod ] || write_module
    go build -trimpath -ldflags "-s -w$(stamp)" -o "$folder/$1.new" "${packages[$1]}"
  fi
  mv "$folder/$1.new" "$folder/$1"
  is_built "$1" || { say "$folder/$1 is not ${versions[$1]}: $("$folder/$1" --version)"; exit 1; }
}

missing=()
for name in etcd kube-scheduler kube-apiserver kwok; do
  if is_built "$name"; then say "$folder/$name is there"; else missing+=("$name"); fi
done
if [ ${#missing[@]} -gt 0 ]; then
  command -v go > /dev/null || { say "needs Go $go_directive or newer on the path: https://go.dev/dl"; exit 3; }
  mkdir -p "$folder"
  folder=$(cd "$folder" && pwd)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  export CGO_ENABLED=0 GOFLAGS=-mod=mod
  for name in "${missing[@]}"; do build "$name"; done
  say "built in $((SECONDS / 60)) min $((SECONDS % 60)) s"
fi
echo "$folder"
