/** What this run of the program is for, the node, its servers, logging, and the process itself. */
import { field, flag, type Flag } from '../setting.ts';
import {
  BOOL,
  DURATION,
  FLUSH_DURATION,
  INT,
  IP,
  IP_PORT,
  NODE_NAME,
  pointer,
  QUANTITY,
  STRING,
  UNSIGNED,
  VERBOSITY_RULES,
  VERSION_REQUEST,
} from '../kinds.ts';

/** kube-proxy has these two from a library that it links, and reads them nowhere. */
const NO_CADVISOR = 'it is for cAdvisor, which kube-proxy does not run either';

export const PROGRAM = {
  title: 'What to do',
  intro: 'These are flags only: they say what this run of the program is for, not how it proxies.',
  fields: [],
  flags: [
    flag('config', STRING, '', {
      placeholder: 'FILE',
      help: 'read the configuration from this file, which then replaces the flags that it has fields for',
      worksWithFile: true,
    }),
    flag('write-config-to', STRING, '', {
      placeholder: 'FILE',
      help: 'write the configuration that results from file and flags to this file, and exit',
      worksWithFile: true,
    }),
    flag('cleanup', BOOL, false, { help: 'remove the rules of every mode, and exit', worksWithFile: true }),
    flag('init-only', BOOL, false, {
      help: 'do only what needs full privileges, and exit; afterwards CAP_NET_ADMIN is enough to run',
      worksWithFile: true,
    }),
    flag('version', VERSION_REQUEST, 'false', {
      help: 'print the version and exit; raw: with everything known about the build',
      worksWithFile: true,
    }),
    flag('boot-id-file', STRING, '/proc/sys/kernel/random/boot_id', {
      help: 'files that may hold the boot id',
      ignored: NO_CADVISOR,
    }),
    flag('machine-id-file', STRING, '/etc/machine-id,/var/lib/dbus/machine-id', {
      help: 'files that may hold the machine id',
      ignored: NO_CADVISOR,
    }),
    flag('help', BOOL, false, { short: 'h', help: 'print the flags and exit', worksWithFile: true }),
  ],
} as const;

/** These two only complete an address that has no port, and only when there is no configuration file. */
export const PORT_FLAGS: readonly Flag<number>[] = [
  flag('healthz-port', INT, 10_256, {
    placeholder: 'PORT',
    help: 'port of the health server, where --healthz-bind-address has none; 0 turns the server off',
    deprecated: 'use --healthz-bind-address instead',
  }),
  flag('metrics-port', INT, 10_249, {
    placeholder: 'PORT',
    help: 'port of the metrics server, where --metrics-bind-address has none',
    deprecated: 'use --metrics-bind-address instead',
  }),
];

export const NODE = {
  title: 'Node and servers',
  fields: [
    field('hostnameOverride', 'hostname-override', NODE_NAME, '', {
      flagWins: true,
      help: "this node's name, where it is not the host name; trimmed and in lower case; the flag wins over the file",
    }),
    field('bindAddress', 'bind-address', IP, '0.0.0.0', {
      help: "this node's primary address, where it is not the Node object's; despite its name, nothing listens on it",
    }),
    field('healthzBindAddress', 'healthz-bind-address', IP_PORT, '0.0.0.0:10256', {
      listen: { port: 10_256, ipv6Default: '[::]:10256' },
      help: 'where /healthz and /livez are served; in a file the default is [::]:10256 when bindAddress is IPv6',
    }),
    field('metricsBindAddress', 'metrics-bind-address', IP_PORT, '127.0.0.1:10249', {
      listen: { port: 10_249, ipv6Default: '[::1]:10249' },
      help: 'where /metrics, /configz and /proxyMode are served; in a file the default is [::1]:10249 when bindAddress is IPv6',
    }),
    field('bindAddressHardFail', 'bind-address-hard-fail', BOOL, false, {
      help: 'exit when one of these servers cannot listen, instead of trying again every 5 s',
    }),
    field('enableProfiling', 'profiling', BOOL, false, {
      help: 'serve profiles under /debug on the metrics port',
    }),
    field('showHiddenMetricsForVersion', 'show-hidden-metrics-for-version', STRING, '', {
      placeholder: 'VERSION',
      help: 'also serve metrics that were hidden since this version; only the previous minor version may be named',
      ignored: 'no metric of Junction is hidden',
    }),
  ],
  flags: PORT_FLAGS,
} as const;

const ALPHA = 'needs the feature gate LoggingAlphaOptions';

export const LOGGING = {
  title: 'Logging',
  flagsWin: true,
  intro: 'Of these, flags that are given win over the file.',
  fields: [
    field('logging.format', 'logging-format', STRING, 'text', {
      choices: ['text', 'json'],
      help: 'how log lines look',
    }),
    field('logging.flushFrequency', 'log-flush-frequency', FLUSH_DURATION, '5s', {
      help: 'longest time that a line waits in a buffer of split streams; without a buffer every line is written at once',
    }),
    field('logging.verbosity', 'v', UNSIGNED, 0, {
      short: 'v',
      placeholder: 'LEVEL',
      reload: 'live',
      help: 'how much to log: 1 for every sync, 2 and up for debugging',
    }),
    field('logging.vmodule', 'vmodule', VERBOSITY_RULES, [], {
      omit: 'zero',
      reload: 'live',
      help: 'verbosity of single source files, for the text format: patterns of file names without their ending, such as syncRunner=2 or nft*=3; those of flag and file are joined, the flag first, and the first that matches counts',
    }),
    field('logging.options.text.splitStream', 'log-text-split-stream', BOOL, false, {
      omit: 'zero',
      help: `text format: errors and warnings to stderr, the rest to stdout; ${ALPHA}`,
    }),
    field('logging.options.text.infoBufferSize', 'log-text-info-buffer-size', QUANTITY, '0', {
      help: `text format with split streams: bytes of the rest that may wait in a buffer, such as 512 or 64Ki; ${ALPHA}`,
    }),
    field('logging.options.json.splitStream', 'log-json-split-stream', BOOL, false, {
      omit: 'zero',
      help: `JSON format: errors to stderr, the rest to stdout; ${ALPHA}`,
    }),
    field('logging.options.json.infoBufferSize', 'log-json-info-buffer-size', QUANTITY, '0', {
      help: `JSON format with split streams: bytes of the rest that may wait in a buffer; ${ALPHA}`,
    }),
  ],
} as const;

export const PROCESS = {
  title: 'Process and connection tracking',
  fields: [
    field('oomScoreAdj', 'oom-score-adj', pointer(INT), -999, {
      help: 'how soon the kernel kills the process for memory, -1000 (never) to 1000',
    }),
    field('conntrack.maxPerCore', 'conntrack-max-per-core', pointer(INT), 32_768, {
      help: 'connections to track, per CPU; 0 leaves the limit alone and ignores conntrack.min',
    }),
    field('conntrack.min', 'conntrack-min', pointer(INT), 131_072, {
      help: 'connections to track at least, however few CPUs there are',
    }),
    field(
      'conntrack.tcpEstablishedTimeout',
      'conntrack-tcp-timeout-established',
      pointer(DURATION),
      86_400_000,
      {
        help: 'after which an idle TCP connection is forgotten; 0 leaves it alone',
      },
    ),
    field('conntrack.tcpCloseWaitTimeout', 'conntrack-tcp-timeout-close-wait', pointer(DURATION), 3_600_000, {
      help: 'after which a half-closed TCP connection is forgotten; 0 leaves it alone',
    }),
    field('conntrack.tcpBeLiberal', 'conntrack-tcp-be-liberal', BOOL, false, {
      help: 'do not take TCP packets outside of the window for invalid; false leaves the setting alone',
    }),
    field('conntrack.udpTimeout', 'conntrack-udp-timeout', DURATION, 0, {
      help: 'after which an unanswered UDP flow is forgotten; 0 leaves it alone',
    }),
    field('conntrack.udpStreamTimeout', 'conntrack-udp-timeout-stream', DURATION, 0, {
      help: 'after which an answered UDP flow is forgotten; 0 leaves it alone',
    }),
    field('configSyncPeriod', 'config-sync-period', DURATION, 900_000, {
      help: 'how often everything that the API server has told is gone through again',
      ignored:
        'objects of the API server are cached and not delivered again; the sync period of the mode says how often rules are compared with the kernel',
    }),
  ],
} as const;
