import { field, flag } from '../entry.ts';
import { BOOL, STRING } from '../scalarKinds.ts';

const ignored = 'it is for Windows';

export const WINDOWS = {
  title: 'Windows',
  intro: 'Accepted, so that files and command lines for mixed clusters work, and without effect.',
  fields: [
    field('winkernel.networkName', STRING, { default: '', help: 'name of the HNS network', ignored }),
    field('winkernel.sourceVip', STRING, {
      default: '',
      help: 'source address of load-balanced traffic',
      ignored,
    }),
    field('winkernel.enableDSR', BOOL, { default: false, help: 'direct server return', ignored }),
    field('winkernel.rootHnsEndpointName', STRING, {
      default: '',
      help: 'endpoint of the root namespace',
      ignored,
    }),
    field('winkernel.forwardHealthCheckVip', BOOL, {
      default: false,
      help: 'forward health checks of the load balancer to the service address',
      ignored,
    }),
  ],
  flags: [
    flag('network-name', STRING, { default: '', help: 'name of the HNS network', ignored }),
    flag('source-vip', STRING, { default: '', help: 'source address of load-balanced traffic', ignored }),
    flag('enable-dsr', BOOL, { default: false, help: 'direct server return', ignored }),
    flag('root-hnsendpoint-name', STRING, {
      default: 'cbr0',
      help: 'endpoint of the root namespace',
      ignored,
    }),
    flag('forward-healthcheck-vip', BOOL, {
      default: false,
      help: 'forward health checks of the load balancer to the service address',
      ignored,
    }),
    flag('windows-service', BOOL, { default: false, help: 'run as a Windows service', ignored }),
  ],
} as const;

export const UNUSED = {
  title: 'Fields of old files',
  fields: [
    field('portRange', STRING, {
      default: '',
      help: 'ports of the host to use',
      ignored: 'it was for the userspace mode, which is no more',
    }),
    field('windowsRunAsService', BOOL, {
      default: false,
      omit: 'zero',
      help: 'run as a Windows service',
      ignored,
    }),
  ],
  flags: [],
} as const;
