/** When each alert fires, and when not: series by the minute, and what is said at a time. */
export interface AlertCase {
  readonly alert: string;
  readonly when: string;
  /** In promtool's notation: `0+1x30` is a value each minute, 31 of them, one more than the last each time. */
  readonly series: Readonly<Record<string, string>>;
  readonly at: string;
  /** Where a minute would make for a thousand evaluations. */
  readonly step?: '30m';
  /** `undefined`: it does not fire. */
  readonly fires?: { readonly labels: Readonly<Record<string, string>>; readonly description: string };
}

const JOB = 'job="kube-proxy"';
const NODE = `${JOB},instance="n1"`;
const IPV4 = `${NODE},ip_family="IPv4"`;
const BUILD = `junction_build_info{${NODE},version="0.2.0"}`;
const ON_NODE = { job: 'kube-proxy', instance: 'n1' };
const ON_IPV4 = { ...ON_NODE, ip_family: 'IPv4' };

const QUEUED = `kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{${IPV4}}`;
const SYNCED = `kubeproxy_sync_proxy_rules_last_timestamp_seconds{${IPV4}}`;
const MEMORY = '{container="junction",namespace="kube-system",pod="junction-a"}';

/** A histogram of two buckets, of which the second gets everything. */
function slowBuckets(
  metric: string,
  labels: string,
  fast: number,
  slow: number,
): Readonly<Record<string, string>> {
  return {
    [`${metric}_bucket{${labels},le="${fast}"}`]: '0x60',
    [`${metric}_bucket{${labels},le="${slow}"}`]: '0+60x60',
    [`${metric}_bucket{${labels},le="+Inf"}`]: '0+60x60',
  };
}

export const ALERT_CASES: readonly AlertCase[] = [
  {
    alert: 'JunctionAbsent',
    when: 'the targets of the job are no Junctions',
    series: { [`up{${NODE}}`]: '1x30' },
    at: '20m',
    fires: {
      labels: { job: 'kube-proxy' },
      description: 'No target with job="kube-proxy" shows junction_build_info.',
    },
  },
  { alert: 'JunctionAbsent', when: 'there is one', series: { [BUILD]: '1x30' }, at: '20m' },
  {
    alert: 'JunctionAbsent',
    when: "kubernetes-mixin's KubeProxyDown is pending",
    series: { 'ALERTS{alertname="KubeProxyDown",alertstate="pending"}': '1x30' },
    at: '20m',
  },
  {
    alert: 'JunctionDown',
    when: 'it does not answer any more',
    series: { [`up{${NODE}}`]: '1x2 0x28', [BUILD]: '1x2 _x28' },
    at: '20m',
    fires: {
      labels: ON_NODE,
      description: 'The Junction on n1 does not answer Prometheus. Its rules stay as they were.',
    },
  },
  {
    alert: 'JunctionDown',
    when: "it is kube-proxy's target",
    series: { [`up{${NODE}}`]: '0x30' },
    at: '20m',
  },
  {
    alert: 'JunctionDown',
    when: 'it was restarted',
    series: { [`up{${NODE}}`]: '1x2 0x3 1x25', [BUILD]: '1x2 _x3 1x25' },
    at: '20m',
  },
  {
    alert: 'JunctionDown',
    when: "kubernetes-mixin's alert is pending",
    series: {
      [`up{${NODE}}`]: '1x2 0x28',
      [BUILD]: '1x2 _x28',
      [`ALERTS{alertname="KubeProxyInstanceUnreachable",alertstate="pending",${NODE}}`]: '_x2 1x28',
    },
    at: '20m',
  },
  {
    alert: 'JunctionNeverSynced',
    when: 'a sync is queued, and none succeeded',
    series: { [BUILD]: '1x30', [QUEUED]: '1x30' },
    at: '10m',
    fires: { labels: ON_IPV4, description: 'Junction on n1 has started, and has not synced IPv4 yet.' },
  },
  {
    alert: 'JunctionNeverSynced',
    when: 'the first sync came late',
    series: { [BUILD]: '1x30', [QUEUED]: '1x30', [SYNCED]: '_x3 200x27' },
    at: '10m',
  },
  {
    alert: 'JunctionBehind',
    when: 'one change waits, queued five seconds after the last sync',
    series: { [BUILD]: '1x30', [QUEUED]: '5x30', [SYNCED]: '0x30' },
    at: '10m',
    fires: {
      labels: ON_IPV4,
      description: 'Changes of IPv4 wait on n1; the last sync succeeded 10m 0s ago.',
    },
  },
  {
    alert: 'JunctionBehind',
    when: 'changes are queued all the time, and none is written',
    series: { [BUILD]: '1x30', [QUEUED]: '5+60x30', [SYNCED]: '0x30' },
    at: '10m',
    fires: {
      labels: ON_IPV4,
      description: 'Changes of IPv4 wait on n1; the last sync succeeded 10m 0s ago.',
    },
  },
  {
    alert: 'JunctionBehind',
    when: 'nothing has changed for long',
    series: { [BUILD]: '1x30', [QUEUED]: '4x30', [SYNCED]: '5x30' },
    at: '20m',
  },
  {
    alert: 'JunctionBehind',
    when: 'each scrape finds a change that was queued just now, and syncs succeed',
    series: { [BUILD]: '1x30', [QUEUED]: '0+60x30', [SYNCED]: '-30+60x30' },
    at: '20m',
  },
  {
    alert: 'JunctionSyncFailing',
    when: 'one fails each minute',
    series: { [`junction_syncs_total{${IPV4},kind="failed"}`]: '0+1x30' },
    at: '20m',
    fires: { labels: ON_IPV4, description: '10 syncs of IPv4 failed on n1 within ten minutes.' },
  },
  {
    alert: 'JunctionSyncFailing',
    when: 'two failed, and others succeed',
    series: {
      [`junction_syncs_total{${IPV4},kind="failed"}`]: '0x5 2x25',
      [`junction_syncs_total{${IPV4},kind="full"}`]: '0+5x30',
    },
    at: '12m',
  },
  {
    alert: 'JunctionRulesRefused',
    when: 'three are refused',
    series: { [`junction_refused_service_ports{${IPV4}}`]: '3x30' },
    at: '10m',
    fires: {
      labels: ON_IPV4,
      description: 'The kernel of n1 refuses 3 service ports of IPv4. All others are served.',
    },
  },
  {
    alert: 'JunctionRulesRefused',
    when: 'they were refused for three minutes',
    series: { [`junction_refused_service_ports{${IPV4}}`]: '0x5 3x3 0x20' },
    at: '10m',
  },
  {
    alert: 'JunctionSlow',
    when: 'changes take up to eight seconds',
    series: slowBuckets('junction_change_duration_seconds', `${NODE},stage="total"`, 0.1, 8),
    at: '40m',
    fires: {
      labels: ON_NODE,
      description: 'On n1 one change in a hundred takes 7.921s from its event to the kernel.',
    },
  },
  {
    alert: 'JunctionSlow',
    when: 'changes take up to a second',
    series: slowBuckets('junction_change_duration_seconds', `${NODE},stage="total"`, 0.1, 1),
    at: '40m',
  },
  {
    alert: 'JunctionNetworkProgrammingSlow',
    when: 'it takes up to twenty seconds',
    series: slowBuckets('kubeproxy_network_programming_duration_seconds', IPV4, 10, 20),
    at: '40m',
    fires: {
      labels: { job: 'kube-proxy' },
      description:
        'Of all nodes, one change of endpoints in a hundred takes 19.9s from the cluster to the kernel.',
    },
  },
  {
    alert: 'JunctionNetworkProgrammingSlow',
    when: 'it takes up to two seconds',
    series: slowBuckets('kubeproxy_network_programming_duration_seconds', IPV4, 1, 2),
    at: '40m',
  },
  {
    alert: 'JunctionForeignChanges',
    when: 'two programs fight: one change each half minute',
    series: { [`junction_foreign_changes_total{${IPV4},program="firewalld"}`]: '0+2x60' },
    at: '40m',
    fires: {
      labels: { ...ON_NODE, program: 'firewalld' },
      description: 'firewalld changed rules of Junction on n1 30 times within 15 minutes.',
    },
  },
  {
    alert: 'JunctionForeignChanges',
    when: 'firewalld was reloaded once',
    series: { [`junction_foreign_changes_total{${IPV4},program="firewalld"}`]: '0x20 18x40' },
    at: '31m',
  },
  {
    alert: 'JunctionApiResourceDown',
    when: 'it is down',
    series: { [`junction_api_resource_up{${NODE},resource="services"}`]: '1x2 0x28' },
    at: '20m',
    fires: {
      labels: { ...ON_NODE, resource: 'services' },
      description:
        'Junction on n1 has neither listed nor watched services for five minutes. The rules stay as they are.',
    },
  },
  {
    alert: 'JunctionApiResourceDown',
    when: 'the watch is lost now and then',
    series: {
      [`junction_api_resource_up{${NODE},resource="services"}`]: '1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1',
    },
    at: '20m',
  },
  {
    alert: 'JunctionCrashLooping',
    when: 'it is killed every ten minutes',
    series: { [`process_start_time_seconds{${NODE}}`]: '1x9 2x9 3x9 4x9 5x9 6x9 7x9' },
    at: '60m',
    fires: { labels: ON_NODE, description: 'Junction on n1 started 6 times within an hour.' },
  },
  {
    alert: 'JunctionCrashLooping',
    when: 'it was killed once',
    series: { [`process_start_time_seconds{${NODE}}`]: '1x20 2x40' },
    at: '40m',
  },
  {
    alert: 'JunctionVersionsDiffer',
    when: 'an update stopped halfway',
    series: { [BUILD]: '1x30', [`junction_build_info{${JOB},instance="n2",version="0.1.0"}`]: '1x30' },
    at: '13h',
    step: '30m',
    fires: {
      labels: { job: 'kube-proxy' },
      description: '2 versions of Junction have been running for twelve hours.',
    },
  },
  {
    alert: 'JunctionVersionsDiffer',
    when: 'an update is under way',
    series: { [BUILD]: '1x30', [`junction_build_info{${JOB},instance="n2",version="0.1.0"}`]: '1x10' },
    at: '13h',
    step: '30m',
  },
  {
    alert: 'JunctionMemoryNearLimit',
    when: '95 of 100 bytes are in use',
    series: {
      [`container_memory_working_set_bytes${MEMORY}`]: '95x30',
      [`container_spec_memory_limit_bytes${MEMORY}`]: '100x30',
    },
    at: '20m',
    fires: {
      labels: { namespace: 'kube-system', pod: 'junction-a' },
      description: 'The container of kube-system/junction-a uses 95% of its memory limit.',
    },
  },
  {
    alert: 'JunctionMemoryNearLimit',
    when: 'there is no limit',
    series: {
      [`container_memory_working_set_bytes${MEMORY}`]: '95x30',
      [`container_spec_memory_limit_bytes${MEMORY}`]: '0x30',
    },
    at: '20m',
  },
  {
    alert: 'JunctionFaults',
    when: 'an iptables hangs each minute',
    series: { [`junction_faults_total{${NODE},fault="program_timed_out"}`]: '0+1x60' },
    at: '40m',
    fires: {
      labels: { ...ON_NODE, fault: 'program_timed_out' },
      description: '15 times program_timed_out on n1 within 15 minutes.',
    },
  },
  {
    alert: 'JunctionFaults',
    when: 'one hung',
    series: { [`junction_faults_total{${NODE},fault="program_timed_out"}`]: '0x20 1x40' },
    at: '30m',
  },
  {
    alert: 'JunctionEventLoopBusy',
    when: 'tasks wait 0.7 s',
    series: { [`nodejs_eventloop_lag_seconds{${NODE}}`]: '0.7x60' },
    at: '40m',
    fires: { labels: ON_NODE, description: 'What is due in Junction on n1 waits 700ms on average.' },
  },
  {
    alert: 'JunctionEventLoopBusy',
    when: 'one scrape found two seconds',
    series: { [`nodejs_eventloop_lag_seconds{${NODE}}`]: '0.01x10 2 0.01x40' },
    at: '20m',
  },
  {
    alert: 'JunctionFileDescriptors',
    when: '90 of 100 are open',
    series: {
      [BUILD]: '1x30',
      [`process_open_fds{${NODE}}`]: '90x30',
      [`process_max_fds{${NODE}}`]: '100x30',
    },
    at: '20m',
    fires: { labels: ON_NODE, description: 'Junction on n1 uses 90% of its file descriptors.' },
  },
  {
    alert: 'JunctionFileDescriptors',
    when: "they are kube-proxy's",
    series: { [`process_open_fds{${NODE}}`]: '90x30', [`process_max_fds{${NODE}}`]: '100x30' },
    at: '20m',
  },
];
