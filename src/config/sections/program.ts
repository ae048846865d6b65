import { type Flag, flag } from '../entry.ts';
import { BOOL, INT, STRING, VERSION_REQUEST } from '../scalarKinds.ts';

/** kube-proxy has these two from a library that it links, and reads them nowhere. */
const NO_CADVISOR = 'it is for cAdvisor, which kube-proxy does not run either';

export const PROGRAM = {
  title: 'What to do',
  intro: 'These are flags only: they say what this run of the program is for, not how it proxies.',
  fields: [],
  flags: [
    flag('config', STRING, {
      default: '',
      placeholder: 'FILE',
      help: 'read the configuration from this file, which then replaces the flags that it has fields for',
      worksWithFile: true,
    }),
    flag('write-config-to', STRING, {
      default: '',
      placeholder: 'FILE',
      help: 'write the configuration that results from file and flags to this file, and exit',
      worksWithFile: true,
    }),
    flag('cleanup', BOOL, {
      default: false,
      help: 'remove the rules of every mode, and exit',
      worksWithFile: true,
    }),
    flag('init-only', BOOL, {
      default: false,
      help: 'do only what needs full privileges, and exit; afterwards CAP_NET_ADMIN is enough to run',
      worksWithFile: true,
    }),
    flag('version', VERSION_REQUEST, {
      default: 'false',
      help: 'print the version and exit; raw: with everything known about the build',
      worksWithFile: true,
    }),
    flag('boot-id-file', STRING, {
      default: '/proc/sys/kernel/random/boot_id',
      help: 'files that may hold the boot id',
      ignored: NO_CADVISOR,
    }),
    flag('machine-id-file', STRING, {
      default: '/etc/machine-id,/var/lib/dbus/machine-id',
      help: 'files that may hold the machine id',
      ignored: NO_CADVISOR,
    }),
    flag('help', BOOL, { default: false, short: 'h', help: 'print the flags and exit', worksWithFile: true }),
  ],
} as const;

/** These two only complete an address that has no port, and only when there is no configuration file. */
export const PORT_FLAGS: readonly Flag<number>[] = [
  flag('healthz-port', INT, {
    default: 10_256,
    placeholder: 'PORT',
    help: 'port of the health server, where --healthz-bind-address has none; 0 turns the server off',
    deprecated: 'use --healthz-bind-address instead',
  }),
  flag('metrics-port', INT, {
    default: 10_249,
    placeholder: 'PORT',
    help: 'port of the metrics server, where --metrics-bind-address has none',
    deprecated: 'use --metrics-bind-address instead',
  }),
];
