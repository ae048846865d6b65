/** When each alert fires, and when not: series by the minute, and what is said at a time. */
type Series = Readonly<Record<string, string>>;

export interface AlertCases {
  readonly alert: string;
  readonly at: string;
  /** Where a minute would make for a thousand evaluations. */
  readonly step?: '30m';
  /** In promtool's notation: `0+1x30` is a value each minute, 31 of them, one more than the last each time. */
  readonly fires: Series;
  readonly labels: Readonly<Record<string, string>>;
  readonly says: string;
  /** Each with the reason. */
  readonly quiet: Readonly<Record<string, Series>>;
}

const JOB = 'job="kube-proxy"';
const NODE = `${JOB},instance="n1"`;
const IPV4 = `${NODE},ip_family="IPv4"`;
const ON_JOB = { job: 'kube-proxy' };
const ON_NODE = { ...ON_JOB, instance: 'n1' };
const ON_IPV4 = { ...ON_NODE, ip_family: 'IPv4' };

const UP = `up{${NODE}}`;
const BUILD = `junction_build_info{${NODE},version="0.2.0"}`;
const OTHER_BUILD = `junction_build_info{${JOB},instance="n2",version="0.1.0"}`;
const QUEUED = `kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{${IPV4}}`;
const SYNCED = `kubeproxy_sync_proxy_rules_last_timestamp_seconds{${IPV4}}`;
const FAILED = `junction_syncs_total{${IPV4},kind="failed"}`;
const REFUSED = `junction_refused_service_ports{${IPV4}}`;
const FOREIGN = `junction_foreign_changes_total{${IPV4},program="firewalld"}`;
const API_UP = `junction_api_resource_up{${NODE},resource="services"}`;
const STARTED = `process_start_time_seconds{${NODE}}`;
const POD = '{container="junction",namespace="kube-system",pod="junction-a"}';
const MEMORY = `container_memory_working_set_bytes${POD}`;
const MEMORY_LIMIT = `container_spec_memory_limit_bytes${POD}`;
const FAULTS = `junction_faults_total{${NODE},fault="program_timed_out"}`;
const LAG = `nodejs_eventloop_lag_seconds{${NODE}}`;
const OPEN_FILES = { [`process_open_fds{${NODE}}`]: '90x30', [`process_max_fds{${NODE}}`]: '100x30' };

/** A histogram of two buckets, of which the second gets everything. */
function slowBuckets(metric: string, labels: string, fast: number, slow: number): Series {
  return {
    [`${metric}_bucket{${labels},le="${fast}"}`]: '0x60',
    [`${metric}_bucket{${labels},le="${slow}"}`]: '0+60x60',
    [`${metric}_bucket{${labels},le="+Inf"}`]: '0+60x60',
  };
}

const changes = (fast: number, slow: number): Series =>
  slowBuckets('junction_change_duration_seconds', `${NODE},stage="total"`, fast, slow);
const programming = (fast: number, slow: number): Series =>
  slowBuckets('kubeproxy_network_programming_duration_seconds', IPV4, fast, slow);

export const ALERT_CASES: readonly AlertCases[] = [
  {
    alert: 'JunctionAbsent',
    at: '20m',
    fires: { [UP]: '1x30' },
    labels: ON_JOB,
    says: 'No target with job="kube-proxy" shows junction_build_info.',
    quiet: {
      'there is one': { [BUILD]: '1x30' },
      "kubernetes-mixin's KubeProxyDown is pending": {
        'ALERTS{alertname="KubeProxyDown",alertstate="pending"}': '1x30',
      },
    },
  },
  {
    alert: 'JunctionDown',
    at: '20m',
    fires: { [UP]: '1x2 0x28', [BUILD]: '1x2 _x28' },
    labels: ON_NODE,
    says: 'The Junction on n1 does not answer Prometheus. Its rules stay as they were.',
    quiet: {
      "it is kube-proxy's target": { [UP]: '0x30' },
      'it was restarted': { [UP]: '1x2 0x3 1x25', [BUILD]: '1x2 _x3 1x25' },
      "kubernetes-mixin's alert is pending": {
        [UP]: '1x2 0x28',
        [BUILD]: '1x2 _x28',
        [`ALERTS{alertname="KubeProxyInstanceUnreachable",alertstate="pending",${NODE}}`]: '_x2 1x28',
      },
    },
  },
  {
    alert: 'JunctionNeverSynced',
    at: '10m',
    fires: { [BUILD]: '1x30', [QUEUED]: '1x30' },
    labels: ON_IPV4,
    says: 'Junction on n1 has started, and has not synced IPv4 yet.',
    quiet: { 'the first sync came late': { [BUILD]: '1x30', [QUEUED]: '1x30', [SYNCED]: '_x3 200x27' } },
  },
  {
    alert: 'JunctionBehind',
    at: '10m',
    fires: { [BUILD]: '1x30', [QUEUED]: '5x30', [SYNCED]: '0x30' },
    labels: ON_IPV4,
    says: 'Changes of IPv4 wait on n1; the last sync succeeded 10m 0s ago.',
    quiet: {
      'nothing has changed for long': { [BUILD]: '1x30', [QUEUED]: '4x30', [SYNCED]: '5x30' },
      'each scrape finds a change that was queued just now, and syncs succeed': {
        [BUILD]: '1x30',
        [QUEUED]: '0+60x30',
        [SYNCED]: '-30+60x30',
      },
    },
  },
  {
    alert: 'JunctionSyncFailing',
    at: '20m',
    fires: { [FAILED]: '0+1x30' },
    labels: ON_IPV4,
    says: '10 syncs of IPv4 failed on n1 within ten minutes.',
    quiet: { 'two failed': { [FAILED]: '0x11 2x25' } },
  },
  {
    alert: 'JunctionRulesRefused',
    at: '10m',
    fires: { [REFUSED]: '3x30' },
    labels: ON_IPV4,
    says: 'The kernel of n1 refuses 3 service ports of IPv4. All others are served.',
    quiet: { 'they were refused for three minutes': { [REFUSED]: '0x5 3x3 0x20' } },
  },
  {
    alert: 'JunctionSlow',
    at: '40m',
    fires: changes(0.1, 8),
    labels: ON_NODE,
    says: 'On n1 one change in a hundred takes 7.921s from its event to the kernel.',
    quiet: { 'changes take up to a second': changes(0.1, 1) },
  },
  {
    alert: 'JunctionNetworkProgrammingSlow',
    at: '40m',
    fires: programming(10, 20),
    labels: ON_JOB,
    says: 'Of all nodes, one change of endpoints in a hundred takes 19.9s from the cluster to the kernel.',
    quiet: { 'it takes up to two seconds': programming(1, 2) },
  },
  {
    alert: 'JunctionForeignChanges',
    at: '31m',
    fires: { [FOREIGN]: '0+2x60' },
    labels: { ...ON_NODE, program: 'firewalld' },
    says: 'firewalld changed rules of Junction on n1 30 times within 15 minutes.',
    quiet: { 'firewalld was reloaded once': { [FOREIGN]: '0x20 18x40' } },
  },
  {
    alert: 'JunctionApiResourceDown',
    at: '20m',
    fires: { [API_UP]: '1x2 0x28' },
    labels: { ...ON_NODE, resource: 'services' },
    says: 'Junction on n1 has neither listed nor watched services for five minutes. The rules stay as they are.',
    quiet: { 'the watch is lost now and then': { [API_UP]: '1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1' } },
  },
  {
    alert: 'JunctionCrashLooping',
    at: '60m',
    fires: { [STARTED]: '1x9 2x9 3x9 4x9 5x9 6x9 7x9' },
    labels: ON_NODE,
    says: 'Junction on n1 started 6 times within an hour.',
    quiet: { 'it was killed once': { [STARTED]: '1x20 2x40' } },
  },
  {
    alert: 'JunctionVersionsDiffer',
    at: '13h',
    step: '30m',
    fires: { [BUILD]: '1x30', [OTHER_BUILD]: '1x30' },
    labels: ON_JOB,
    says: '2 versions of Junction have been running for twelve hours.',
    quiet: { 'an update is under way': { [BUILD]: '1x30', [OTHER_BUILD]: '1x10' } },
  },
  {
    alert: 'JunctionMemoryNearLimit',
    at: '20m',
    fires: { [MEMORY]: '95x30', [MEMORY_LIMIT]: '100x30' },
    labels: { namespace: 'kube-system', pod: 'junction-a' },
    says: 'The container of kube-system/junction-a uses 95% of its memory limit.',
    quiet: { 'there is no limit': { [MEMORY]: '95x30', [MEMORY_LIMIT]: '0x30' } },
  },
  {
    alert: 'JunctionFaults',
    at: '30m',
    fires: { [FAULTS]: '0+1x60' },
    labels: { ...ON_NODE, fault: 'program_timed_out' },
    says: '15 times program_timed_out on n1 within 15 minutes.',
    quiet: { 'one program hung': { [FAULTS]: '0x20 1x40' } },
  },
  {
    alert: 'JunctionEventLoopBusy',
    at: '40m',
    fires: { [LAG]: '0.7x60' },
    labels: ON_NODE,
    says: 'What is due in Junction on n1 waits 700ms on average.',
    quiet: { 'one scrape found two seconds': { [LAG]: '0.01x30 2 0.01x40' } },
  },
  {
    alert: 'JunctionFileDescriptors',
    at: '20m',
    fires: { [BUILD]: '1x30', ...OPEN_FILES },
    labels: ON_NODE,
    says: 'Junction on n1 uses 90% of its file descriptors.',
    quiet: { "they are kube-proxy's": OPEN_FILES },
  },
];
