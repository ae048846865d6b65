# Sets what differs, and says so. /host/net is the node's /proc/sys/net.
root=${SYSCTL_ROOT:-/host}

set_sysctl() {
  file=$root/$1
  if [ ! -e "$file" ]; then
    echo "$1: this kernel does not have it (yet); left out"
    return
  fi
  before=$(cat "$file")
  if [ "$before" = "$2" ]; then
    echo "$1 = $2 already"
  elif (echo "$2" >"$file") 2>/dev/null; then
    echo "$1 = $2 (was $before)"
  else
    echo "$1: cannot be set to $2, stays $before"
  fi
}

if [ "$CONNTRACK_MAX_PER_CORE" -gt 0 ]; then
  max=$((CONNTRACK_MAX_PER_CORE * $(getconf _NPROCESSORS_ONLN)))
  if [ "$max" -gt 1048576 ]; then
    max=1048576
  elif [ "$max" -lt "$CONNTRACK_MIN" ]; then
    max=$CONNTRACK_MIN
  fi
  # A hash table that is too small for its entries makes long chains.
  buckets=$(cat "$root/net/netfilter/nf_conntrack_buckets" 2>/dev/null || echo 0)
  if [ "$buckets" -lt $((max / 4)) ]; then
    set_sysctl net/netfilter/nf_conntrack_buckets $((max / 4))
  fi
  set_sysctl net/netfilter/nf_conntrack_max "$max"
fi
for setting in $SYSCTLS; do
  set_sysctl "${setting%%=*}" "${setting#*=}"
done
