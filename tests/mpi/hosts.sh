#!/bin/bash
# Three hosts, each a network namespace of this machine with a name and an address of its own: what processes send goes
# through TCP and a bridge, as over Ethernet. mpirun starts them by an agent that enters the namespace where ssh would go
# to the host.
# usage: tests/mpi/hosts.sh PROGRAM ARGUMENT...      one process on each host
set -u
prefix=td$$ net=10.77.$(($$ % 256))
skip() {
  echo "skipped: $*"
  exit 77
}
command -v ip >/dev/null || skip "there is no ip (iproute2)"
command -v unshare >/dev/null || skip "there is no unshare (util-linux)"
command -v mpirun.openmpi >/dev/null || skip "there is no Open MPI"
[ "$(id -u)" -eq 0 ] || skip "only root may make network namespaces"
work=$(mktemp -d) || exit 1
remove() {
  for name in 0 1 2 3; do ip netns del $prefix-$name 2>/dev/null; done # with the links that end in them
  rm -rf "$work"
}
trap remove EXIT
ip netns add $prefix-0 2>"$work/why" || skip "network namespaces are not allowed: $(cat "$work/why")"
ip -n $prefix-0 link add bridge type bridge 2>"$work/why" || skip "a bridge is not allowed: $(cat "$work/why")"
ip -n $prefix-0 link set bridge up || exit 1
for host in 1 2 3; do
  ip netns add $prefix-$host || exit 1
  ip -n $prefix-0 link add port$host type veth peer name lan netns $prefix-$host 2>"$work/why" ||
    skip "pairs of links are not allowed: $(cat "$work/why")"
  ip -n $prefix-0 link set port$host master bridge up || exit 1
  ip -n $prefix-$host address add $net.$host/24 dev lan || exit 1
  ip -n $prefix-$host link set lan up && ip -n $prefix-$host link set lo up || exit 1
done

# As ssh: agent HOST COMMAND...; namespaces of names keep hosts apart that have files in common.
cat >"$work/agent" <<END
#!/bin/bash
host=\${1##*.}
shift
exec ip netns exec $prefix-\$host unshare --uts sh -c "hostname td-host\$host; \$*"
END
chmod +x "$work/agent"
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"$work/agent" host.1 exec mpirun.openmpi --host $net.1:1,$net.2:1,$net.3:1 -n 3 --map-by node \
  --mca plm rsh --mca plm_rsh_agent "$work/agent" --mca plm_rsh_no_tree_spawn 1 --mca btl self,tcp \
  --mca btl_tcp_if_include $net.0/24 --mca oob_tcp_if_include $net.0/24 --mca mpi_yield_when_idle 1 \
  --bind-to none -x OMP_NUM_THREADS sh -c "'echo \"host \$(hostname)\"; exec $*'" >"$work/out" 2>"$work/err"
code=$?
cat "$work/out" "$work/err"
[ $code -eq 0 ] || exit 1
[ "$(grep '^host td-host' "$work/out" | sort -u | wc -l)" -eq 3 ] || {
  echo "FAILED: the processes were not on three hosts"
  exit 1
}
for host in 1 2 3; do
  sent=$(ip netns exec $prefix-$host cat /sys/class/net/lan/statistics/tx_bytes) || exit 1
  echo "host $host sent $sent bytes"
  [ "$sent" -gt 10000 ] || {
    echo "FAILED: hardly anything went over the link of host $host"
    exit 1
  }
done
