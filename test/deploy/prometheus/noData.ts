/**
 * Queries that have no data in the test, each with the reason. One that has data after all fails the test, unless it depends
 * on the kernel that the test runs on.
 */
interface NoData {
  /** A series that the query asks for. */
  readonly series: string;
  readonly reason: string;
  readonly dependsOnKernel?: boolean;
}

export const NO_DATA: readonly NoData[] = [
  {
    series: 'kubeproxy_iptables_ct_state_invalid_dropped_packets_total',
    reason: 'where the kernel has no nfacct, nothing counts these packets',
    dependsOnKernel: true,
  },
  {
    series: 'kubeproxy_iptables_localhost_nodeports_accepted_packets_total',
    reason: 'where the kernel has no nfacct, nothing counts these packets',
    dependsOnKernel: true,
  },
  {
    series: 'kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total',
    reason: 'the kernel would have to refuse the deletion of an object that nothing refers to',
  },
  {
    series: 'rest_client_exec_plugin_call_total',
    reason: 'the test logs in with a token, not by a credential plugin',
  },
  {
    series: 'rest_client_exec_plugin_certificate_rotation_age_bucket',
    reason: 'the test logs in with a token, not by a credential plugin',
  },
  {
    series: 'container_memory_working_set_bytes',
    reason: "kubelet's, and there is none here; promtool runs the alert with series of both",
  },
];
