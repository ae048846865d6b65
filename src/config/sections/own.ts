/** Junction's own settings, and those that it accepts without effect. */
import { BOOL, DURATION, pointer, STRING, STRING_LIST } from '../kinds.ts';
import { field, flag } from '../setting.ts';

export const JUNCTION = {
  title: 'Junction',
  flagsWin: true,
  omit: 'default',
  intro:
    "Not kube-proxy's: everything that Junction adds stands under `junction` in the file. kube-proxy reads such a file too, and logs that it does not know the section. Flags that are given win over the file. A section of defaults is left out of `--write-config-to` and `/configz`.",
  fields: [
    field('junction.manifests', 'manifests', STRING_LIST, null, {
      placeholder: 'FILE|DIR,…',
      help: 'read Services, EndpointSlices, Endpoints and Nodes from these YAML or JSON files instead of an API server; may be repeated',
    }),
    field('junction.iptablesLayout', 'iptables-layout', STRING, 'current', {
      choices: ['current', 'classic'],
      help: "how rules are arranged in the iptables mode: today's kube-proxy's chains, or those of 1.5 to 1.23",
    }),
    field('junction.iptablesVariant', 'iptables-variant', STRING, 'auto', {
      choices: ['auto', 'nft', 'legacy'],
      help: 'which iptables programs to use; auto goes by what kubelet and the machine use',
    }),
    field('junction.ipvsDrainLimit', 'ipvs-drain-limit', DURATION, 0, {
      help: 'after which open connections to an endpoint that is gone are cut in the ipvs mode; 0 waits for their end',
    }),
    field('junction.nftablesCounters', 'nftables-counters', BOOL, false, {
      help: 'let the kernel count connections of each endpoint in the nftables mode, for /metrics',
    }),
    field('junction.nftablesProtection', 'nftables-protection', STRING, 'auto', {
      choices: ['auto', 'backstop', 'none'],
      help: 'what keeps other programs from changing the nftables table; auto: the kernel refuses it, since Linux 6.9; backstop, and auto before: a second table holds connections while the first is rebuilt; none: it is rebuilt',
    }),
    field('junction.holdPorts', 'hold-ports', BOOL, false, {
      help: "bind node ports, and external IPs that are this node's, so that no other program can take them",
    }),
    field('junction.sysctlRoot', 'sysctl-root', STRING, '/proc/sys', {
      placeholder: 'DIR',
      help: 'where kernel settings are read and written, for a container whose /proc/sys is read-only: DIR/net is a mount of /proc/sys/net',
    }),
    field('junction.apiSocket', 'api-socket', pointer(STRING), '/run/junction/junction.sock', {
      placeholder: 'PATH',
      help: 'unix socket where this proxy answers questions: status, services, explain, watch; empty: none',
    }),
    field('junction.apiSocketMode', 'api-socket-mode', STRING, '0600', {
      placeholder: 'MODE',
      help: 'permissions of that socket, octal; 0600: only the user that runs Junction, and root',
    }),
    field('junction.firewalld', 'firewalld', pointer(BOOL), true, {
      help: 'listen on D-Bus for reloads of firewalld, which remove rules, and write them again at once',
    }),
  ],
} as const;

const forWindows = (help: string) => ({ help, ignored: 'it is for Windows' });
const NETWORK_NAME = forWindows('name of the HNS network');
const SOURCE_VIP = forWindows('source address of load-balanced traffic');
const ENABLE_DSR = forWindows('direct server return');
const ROOT_ENDPOINT = forWindows('endpoint of the root namespace');
const HEALTH_CHECKS = forWindows('forward health checks of the load balancer to the service address');
const AS_SERVICE = forWindows('run as a Windows service');

export const WINDOWS = {
  title: 'Windows',
  intro: 'Accepted, so that files and command lines for mixed clusters work, and without effect.',
  fields: [
    field('winkernel.networkName', undefined, STRING, '', NETWORK_NAME),
    field('winkernel.sourceVip', undefined, STRING, '', SOURCE_VIP),
    field('winkernel.enableDSR', undefined, BOOL, false, ENABLE_DSR),
    field('winkernel.rootHnsEndpointName', undefined, STRING, '', ROOT_ENDPOINT),
    field('winkernel.forwardHealthCheckVip', undefined, BOOL, false, HEALTH_CHECKS),
  ],
  flags: [
    flag('network-name', STRING, '', NETWORK_NAME),
    flag('source-vip', STRING, '', SOURCE_VIP),
    flag('enable-dsr', BOOL, false, ENABLE_DSR),
    flag('root-hnsendpoint-name', STRING, 'cbr0', ROOT_ENDPOINT),
    flag('forward-healthcheck-vip', BOOL, false, HEALTH_CHECKS),
    flag('windows-service', BOOL, false, AS_SERVICE),
  ],
} as const;

export const UNUSED = {
  title: 'Fields of old files',
  fields: [
    field('portRange', undefined, STRING, '', {
      help: 'ports of the host to use',
      ignored: 'it was for the userspace mode, which is no more',
    }),
    field('windowsRunAsService', undefined, BOOL, false, { omit: 'zero', ...AS_SERVICE }),
  ],
} as const;
