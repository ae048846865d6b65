import { field } from '../entry.ts';
import { BOOL, IP, IP_PORT, NODE_NAME, STRING } from '../scalarKinds.ts';
import { PORT_FLAGS } from './program.ts';

export const NODE = {
  title: 'Node and servers',
  fields: [
    field('hostnameOverride', NODE_NAME, {
      default: '',
      flag: { name: 'hostname-override' },
      flagWins: true,
      help: "this node's name, where it is not the host name; trimmed and in lower case; the flag wins over the file",
    }),
    field('bindAddress', IP, {
      default: '0.0.0.0',
      flag: { name: 'bind-address' },
      help: "this node's primary address, where it is not the Node object's; despite its name, nothing listens on it",
    }),
    field('healthzBindAddress', IP_PORT, {
      default: '0.0.0.0:10256',
      flag: { name: 'healthz-bind-address' },
      listen: { port: 10_256, ipv6Default: '[::]:10256' },
      help: 'where /healthz and /livez are served; in a file the default is [::]:10256 when bindAddress is IPv6',
    }),
    field('metricsBindAddress', IP_PORT, {
      default: '127.0.0.1:10249',
      flag: { name: 'metrics-bind-address' },
      listen: { port: 10_249, ipv6Default: '[::1]:10249' },
      help: 'where /metrics, /configz and /proxyMode are served; in a file the default is [::1]:10249 when bindAddress is IPv6',
    }),
    field('bindAddressHardFail', BOOL, {
      default: false,
      flag: { name: 'bind-address-hard-fail' },
      help: 'exit when one of these servers cannot listen, instead of trying again every 5 s',
    }),
    field('enableProfiling', BOOL, {
      default: false,
      flag: { name: 'profiling' },
      help: 'serve profiles under /debug on the metrics port',
    }),
    field('showHiddenMetricsForVersion', STRING, {
      default: '',
      flag: { name: 'show-hidden-metrics-for-version', placeholder: 'VERSION' },
      help: 'also serve metrics that were hidden since this version; only the previous minor version may be named',
      ignored: 'no metric of Junction is hidden',
    }),
  ],
  flags: PORT_FLAGS,
} as const;
