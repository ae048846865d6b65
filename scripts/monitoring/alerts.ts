/**
 * The alerts: what is measured, when it is too much, and for how long. Each has a section of its own name in
 * docs/runbooks.md. Queries are written without the job; `rules.ts` adds it.
 */
export interface Alert {
  readonly name: string;
  readonly severity: 'critical' | 'warning' | 'info';
  readonly for: string;
  /** What is measured. */
  readonly value: string;
  /** What it is compared with; empty: that there is a value is enough. */
  readonly exceeds: string;
  /** Further conditions; begins with a set operator. */
  readonly condition?: string;
  /** One line for people who are woken by it. */
  readonly summary: string;
  /** With the labels and the value. */
  readonly description: string;
  /** For the table in docs: what it means, and where to look first. */
  readonly meaning: string;
  readonly firstLook: string;
}

/** Labels that name one Junction, over restarts of its pod. */
const NODE = 'cluster, job, instance';
const FAMILY = `${NODE}, ip_family`;
/** kube-proxy shows these metrics too: while some nodes run it, its targets have the same job. */
const OF_JUNCTION = `and on (${NODE}) junction_build_info`;

export const ALERTS: readonly Alert[] = [
  {
    name: 'JunctionAbsent',
    severity: 'critical',
    for: '15m',
    value: 'absent(junction_build_info)',
    exceeds: '',
    // kubernetes-mixin's says the same where no target is left at all.
    condition: 'unless on () ALERTS{alertname="KubeProxyDown"}',
    summary: 'Prometheus scrapes no Junction.',
    description: 'No target with job="{{ $labels.job }}" shows junction_build_info.',
    meaning: 'no target is a Junction: none runs, or Prometheus does not find or reach them',
    firstLook: '`metrics.bindAddress`, and the labels by which Prometheus selects PodMonitors',
  },
  {
    name: 'JunctionDown',
    severity: 'critical',
    for: '10m',
    value: 'up',
    exceeds: '== 0',
    condition: [
      `and on (${NODE}) last_over_time(junction_build_info[1d])`,
      // kubernetes-mixin's waits for the same.
      `unless on (${NODE}) ALERTS{alertname="KubeProxyInstanceUnreachable"}`,
    ].join('\n'),
    summary: 'A Junction cannot be scraped.',
    description:
      'The Junction on {{ $labels.instance }} does not answer Prometheus. Its rules stay as they were.',
    meaning:
      'a target that was a Junction within the last day does not answer; the rules in its kernel stay as they were',
    firstLook:
      '`kubectl -n kube-system get pods -o wide`, and the log of the pod before: `kubectl logs --previous`',
  },
  {
    name: 'JunctionNeverSynced',
    severity: 'critical',
    for: '5m',
    value: `max by (${FAMILY}) (kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds)`,
    exceeds: '> 0',
    condition: [`unless on (${FAMILY}) kubeproxy_sync_proxy_rules_last_timestamp_seconds`, OF_JUNCTION].join(
      '\n',
    ),
    summary: 'A Junction has written no rules since it started.',
    description:
      'Junction on {{ $labels.instance }} has started, and has not synced {{ $labels.ip_family }} yet.',
    meaning: 'the process runs, and its first sync has not succeeded',
    firstLook: '`/readyz?verbose` at the health port, `junction doctor`',
  },
  {
    name: 'JunctionBehind',
    severity: 'critical',
    for: '2m',
    value: `max by (${FAMILY}) (time() - kubeproxy_sync_proxy_rules_last_timestamp_seconds)`,
    exceeds: '> 60',
    condition: [
      `and max by (${FAMILY}) (`,
      '  kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds - kubeproxy_sync_proxy_rules_last_timestamp_seconds',
      ') > 0',
      OF_JUNCTION,
    ].join('\n'),
    summary: 'Changes wait for a sync that does not come.',
    description:
      'Changes of {{ $labels.ip_family }} wait on {{ $labels.instance }}; the last sync succeeded {{ $value | humanizeDuration }} ago.',
    meaning: 'something has changed since the last sync that succeeded, which is more than a minute ago',
    firstLook: 'the log: `Sync failed`; which program holds the xtables lock',
  },
  {
    name: 'JunctionSyncFailing',
    severity: 'warning',
    for: '5m',
    value: `sum by (${FAMILY}) (increase(junction_syncs_total{kind="failed"}[10m]))`,
    exceeds: '> 3',
    summary: 'Syncs fail again and again.',
    description:
      '{{ $value | humanize }} syncs of {{ $labels.ip_family }} failed on {{ $labels.instance }} within ten minutes.',
    meaning: 'more than three syncs failed within ten minutes; they are repeated',
    firstLook: 'the log: `Sync failed` names the cause, the table and the service',
  },
  {
    name: 'JunctionRulesRefused',
    severity: 'warning',
    for: '5m',
    value: `max by (${FAMILY}) (junction_refused_service_ports)`,
    exceeds: '> 0',
    summary: 'The kernel refuses the rules of some services.',
    description:
      'The kernel of {{ $labels.instance }} refuses {{ $value }} service ports of {{ $labels.ip_family }}. All others are served.',
    meaning: 'the kernel refuses rules of single service ports; what they had before stays in force',
    firstLook: '`junction services --problems`, `junction check`',
  },
  {
    name: 'JunctionSlow',
    severity: 'warning',
    for: '15m',
    value: `histogram_quantile(0.99, sum by (${NODE}, le) (rate(junction_change_duration_seconds_bucket{stage="total"}[10m])))`,
    exceeds: '> 5',
    summary: 'Junction takes long to write changes.',
    description:
      'On {{ $labels.instance }} one change in a hundred takes {{ $value | humanizeDuration }} from its event to the kernel.',
    meaning:
      "Junction's own part takes long: of a hundred changes one takes more than five seconds from its event to the kernel",
    firstLook: 'the stages of `junction_change_duration_seconds`; CPU of the node; the xtables lock',
  },
  {
    name: 'JunctionNetworkProgrammingSlow',
    severity: 'warning',
    for: '15m',
    value:
      'histogram_quantile(0.99, sum by (cluster, job, le) (rate(kubeproxy_network_programming_duration_seconds_bucket[10m])))',
    exceeds: '> 15',
    summary: 'Changes of endpoints take long to reach the nodes.',
    description:
      'Of all nodes, one change of endpoints in a hundred takes {{ $value | humanizeDuration }} from the cluster to the kernel.',
    meaning: 'from the change of a pod to the rules, over all nodes; the way before Junction is part of it',
    firstLook: 'whether JunctionSlow fires too: if not, the EndpointSlice controller or the API server',
  },
  {
    name: 'JunctionForeignChanges',
    severity: 'warning',
    for: '10m',
    value: `sum by (${NODE}, program) (increase(junction_foreign_changes_total[15m]))`,
    exceeds: '> 20',
    summary: "Another program keeps changing Junction's rules.",
    description:
      '{{ $labels.program }} changed rules of Junction on {{ $labels.instance }} {{ $value | humanize }} times within 15 minutes.',
    meaning: 'another program changes our rules again and again; each change is repaired',
    firstLook: 'the label `program`; the log names the objects',
  },
  {
    name: 'JunctionApiResourceDown',
    severity: 'warning',
    for: '5m',
    value: `max by (${NODE}, resource) (max_over_time(junction_api_resource_up[5m]))`,
    exceeds: '== 0',
    summary: 'Junction cannot list or watch a resource.',
    description:
      'Junction on {{ $labels.instance }} has neither listed nor watched {{ $labels.resource }} for five minutes. The rules stay as they are.',
    meaning: 'neither a list nor a watch has succeeded for five minutes; the rules stay as they are',
    firstLook: '`curl -s localhost:10256/healthz | jq .resources` says why',
  },
  {
    name: 'JunctionCrashLooping',
    severity: 'warning',
    for: '0m',
    value: `sum by (${NODE}) (changes(process_start_time_seconds[1h]))`,
    exceeds: '> 2',
    summary: 'Junction starts again and again.',
    description: 'Junction on {{ $labels.instance }} started {{ $value | humanize }} times within an hour.',
    meaning: 'more than two starts within an hour',
    firstLook: '`kubectl describe pod`: the last state and its message; the memory limit',
  },
  {
    name: 'JunctionVersionsDiffer',
    severity: 'info',
    for: '12h',
    value: 'count by (cluster, job) (count by (cluster, job, version) (junction_build_info))',
    exceeds: '> 1',
    summary: 'Nodes run different versions of Junction.',
    description: '{{ $value }} versions of Junction have been running for twelve hours.',
    meaning: 'an update has not reached all nodes within twelve hours',
    firstLook: '`kubectl -n kube-system rollout status daemonset/junction`',
  },
  {
    name: 'JunctionMemoryNearLimit',
    severity: 'warning',
    for: '15m',
    value: [
      'max by (cluster, namespace, pod) (container_memory_working_set_bytes{container="junction"})',
      '/ (max by (cluster, namespace, pod) (container_spec_memory_limit_bytes{container="junction"}) > 0)',
    ].join('\n'),
    exceeds: '> 0.9',
    summary: 'Junction is close to its memory limit.',
    description:
      'The container of {{ $labels.namespace }}/{{ $labels.pod }} uses {{ $value | humanizePercentage }} of its memory limit.',
    meaning:
      'the container, with what the kernel keeps for its rules, uses more than nine tenths of its limit',
    firstLook: 'the number of services, and `resources.limits.memory`',
  },
  {
    name: 'JunctionFaults',
    severity: 'warning',
    for: '15m',
    value: `sum by (${NODE}, fault) (increase(junction_faults_total[15m]))`,
    exceeds: '> 5',
    summary: 'Junction survives faults of the node again and again.',
    description:
      '{{ $value | humanize }} times {{ $labels.fault }} on {{ $labels.instance }} within 15 minutes.',
    meaning: 'programs that hang or do not start, netlink messages that were lost or forged, lost log lines',
    firstLook: 'the label `fault`, and the log, which names the command and how long it took',
  },
  {
    name: 'JunctionEventLoopBusy',
    severity: 'warning',
    for: '15m',
    value: `max by (${NODE}) (avg_over_time(nodejs_eventloop_lag_seconds[10m]))`,
    exceeds: '> 0.5',
    summary: 'Junction has too little CPU.',
    description:
      'What is due in Junction on {{ $labels.instance }} waits {{ $value | humanizeDuration }} on average.',
    meaning: 'the machine has too little CPU for Junction, or a CPU limit is too low, or a bug',
    firstLook: 'CPU of the node; a profile: `/debug/pprof/profile`',
  },
  {
    name: 'JunctionFileDescriptors',
    severity: 'warning',
    for: '15m',
    value: `max by (${NODE}) (process_open_fds / process_max_fds)`,
    exceeds: '> 0.8',
    condition: OF_JUNCTION,
    summary: 'Junction is about to run out of file descriptors.',
    description:
      'Junction on {{ $labels.instance }} uses {{ $value | humanizePercentage }} of its file descriptors.',
    meaning: 'four fifths of the file descriptors that the process may have are open',
    firstLook: '`ls -l /proc/PID/fd` on the node',
  },
];

export function expressionOf({ value, exceeds, condition }: Alert): string {
  return [`${value} ${exceeds}`.trim(), ...(condition === undefined ? [] : [condition])].join('\n');
}
