/** The panels about the connection to the API server, and about the process. */
import { highest, quantiles, RATE, rate, type Row } from './panel.ts';

const API_SERVER: Row = {
  title: 'API server',
  panels: [
    {
      title: 'Resources',
      description:
        '1: listed and being watched; 0: cannot be listed or watched, or was not yet. The lowest of all nodes.',
      unit: 'short',
      queries: [{ query: 'min by (resource) (junction_api_resource_up)', legend: '{{resource}}' }],
    },
    {
      title: 'Lists and watches that failed',
      description: 'By resource and reason.',
      unit: 'ops',
      queries: [
        { query: rate('junction_api_failures_total', 'resource, reason'), legend: '{{resource}} {{reason}}' },
      ],
    },
    {
      title: 'Requests',
      description: 'Every attempt, once it is answered, by status code; <error>: not answered.',
      unit: 'reqps',
      queries: [{ query: rate('rest_client_requests_total', 'code'), legend: '{{code}}' }],
    },
    {
      title: 'Errors',
      description: 'Answers of 4xx and 5xx, requests without an answer, and requests made again.',
      unit: 'reqps',
      queries: [
        {
          query: rate('rest_client_requests_total{code=~"4..|5..|<error>"}', 'code, method'),
          legend: '{{method}} {{code}}',
        },
        {
          query: rate('rest_client_request_retries_total', 'code, verb'),
          legend: 'again: {{verb}} {{code}}',
        },
      ],
    },
    {
      title: 'Request latency',
      description:
        'Until the answer has been read, with all attempts and the wait for our rate limit. Not watches.',
      unit: 's',
      queries: quantiles('rest_client_request_duration_seconds_bucket', 'verb', '{{verb}}'),
    },
    {
      title: 'Held back by our rate limit',
      description: 'clientConnection.qps and burst.',
      unit: 's',
      queries: quantiles('rest_client_rate_limiter_duration_seconds_bucket', 'verb', '{{verb}}'),
    },
    {
      title: 'Sizes',
      description: 'Of requests and answers that were read to their end; not watches.',
      unit: 'bytes',
      queries: [
        ...quantiles('rest_client_response_size_bytes_bucket', 'verb', 'answer {{verb}}'),
        ...quantiles('rest_client_request_size_bytes_bucket', 'verb', 'request {{verb}}'),
      ],
    },
    {
      title: 'Connections made',
      description: 'With new certificates, or again after the server was lost; and how many nodes have one.',
      unit: 'short',
      queries: [
        {
          query: `sum by (result) (increase(rest_client_transport_create_calls_total${RATE}))`,
          legend: 'made ({{result}})',
        },
        { query: 'sum(rest_client_transport_cache_entries)', legend: 'nodes with connections' },
      ],
    },
    {
      title: 'Credential plugin',
      description:
        'Calls by how they ended, and seconds until its client certificate expires (+Inf without one).',
      unit: 'short',
      queries: [
        {
          query: rate('rest_client_exec_plugin_call_total', 'call_status, code'),
          legend: '{{call_status}} {{code}}',
        },
        { query: 'min(rest_client_exec_plugin_ttl_seconds)', legend: 'expires in (s)' },
        {
          query: `histogram_quantile(0.5, sum by (le) (rate(rest_client_exec_plugin_certificate_rotation_age_bucket${RATE})))`,
          legend: 'age when replaced (s)',
        },
      ],
    },
  ],
};

const PROCESS: Row = {
  title: 'Process',
  panels: [
    {
      title: 'CPU',
      description: 'Cores in use.',
      unit: 'short',
      queries: [{ query: highest(rate('process_cpu_seconds_total', 'instance')), legend: '{{instance}}' }],
    },
    {
      title: 'Memory',
      description:
        'Resident memory of the process. What the kernel keeps for rules is charged to the container besides.',
      unit: 'bytes',
      queries: [
        { query: highest('max by (instance) (process_resident_memory_bytes)'), legend: '{{instance}}' },
      ],
    },
    {
      title: 'Heap',
      description: 'The largest of all nodes: size and used part of the heap, and memory outside of it.',
      unit: 'bytes',
      queries: [
        { query: 'max(nodejs_heap_size_total_bytes)', legend: 'heap' },
        { query: 'max(nodejs_heap_size_used_bytes)', legend: 'used' },
        { query: 'max(nodejs_external_memory_bytes)', legend: 'external' },
        { query: 'max(nodejs_array_buffers_bytes)', legend: 'buffers' },
      ],
    },
    {
      title: 'Event loop: lag',
      description: 'How long a due task waited, measured at each scrape. Above 0.5 s: too little CPU.',
      unit: 's',
      queries: [
        { query: highest('max by (instance) (nodejs_eventloop_lag_seconds)'), legend: '{{instance}}' },
      ],
    },
    {
      title: 'Event loop: busy',
      description: 'Part of the time that the event loop was not waiting.',
      unit: 'percentunit',
      queries: [
        {
          query: highest(
            `sum by (instance) (rate(nodejs_eventloop_active_seconds_total${RATE})) / (sum by (instance) (rate(nodejs_eventloop_active_seconds_total${RATE})) + sum by (instance) (rate(nodejs_eventloop_idle_seconds_total${RATE})))`,
          ),
          legend: '{{instance}}',
        },
      ],
    },
    {
      title: 'Garbage collection',
      description: 'Part of the time, by kind.',
      unit: 'percentunit',
      queries: [{ query: rate('nodejs_gc_duration_seconds_sum', 'kind'), legend: '{{kind}}' }],
    },
    {
      title: 'File descriptors',
      description: 'Open files and sockets, and the lowest limit.',
      unit: 'short',
      queries: [
        { query: highest('max by (instance) (process_open_fds)'), legend: '{{instance}}' },
        { query: 'min(process_max_fds)', legend: 'limit' },
      ],
    },
    {
      title: 'What Node.js waits for',
      description:
        'Timers, sockets, programs and requests; under the name that dashboards for kube-proxy ask for.',
      unit: 'short',
      queries: [{ query: highest('max by (instance) (go_goroutines)'), legend: '{{instance}}' }],
    },
    {
      title: 'Network of the node',
      description: "In the process' network namespace: with the host's network, by the whole node.",
      unit: 'binBps',
      queries: [
        { query: `sum(rate(process_network_receive_bytes_total${RATE}))`, legend: 'received' },
        { query: `sum(rate(process_network_transmit_bytes_total${RATE}))`, legend: 'sent' },
      ],
    },
  ],
};

export const PROCESS_ROWS: readonly Row[] = [API_SERVER, PROCESS];
