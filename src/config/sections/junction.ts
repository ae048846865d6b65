import { field } from '../entry.ts';
import { STRING_LIST } from '../listKinds.ts';
import { BOOL, DURATION, STRING } from '../scalarKinds.ts';

export const JUNCTION = {
  title: 'Junction',
  intro:
    "Not kube-proxy's: everything that Junction adds stands under `junction` in the file. kube-proxy reads such a file too, and logs that it does not know the section. Flags that are given win over the file. A section of defaults is left out of `--write-config-to` and `/configz`.",
  fields: [
    field('junction.manifests', STRING_LIST, {
      default: null,
      flag: { name: 'manifests', placeholder: 'FILE|DIR,…' },
      omit: 'default',
      flagWins: true,
      help: 'read Services, EndpointSlices, Endpoints and Nodes from these YAML or JSON files instead of an API server; may be repeated',
    }),
    field('junction.strictManifests', BOOL, {
      default: false,
      flag: { name: 'strict' },
      omit: 'default',
      flagWins: true,
      help: 'refuse what Kubernetes does not know in manifests, unknown fields and misspelt kinds, instead of warning of it',
    }),
    field('junction.iptablesLayout', STRING, {
      default: 'current',
      flag: { name: 'iptables-layout' },
      choices: ['current', 'classic'],
      omit: 'default',
      flagWins: true,
      help: "how rules are arranged in the iptables mode: today's kube-proxy's chains, or those of 1.5 to 1.23",
    }),
    field('junction.iptablesVariant', STRING, {
      default: 'auto',
      flag: { name: 'iptables-variant' },
      choices: ['auto', 'nft', 'legacy'],
      omit: 'default',
      flagWins: true,
      help: 'which iptables programs to use; auto goes by what kubelet and the machine use',
    }),
    field('junction.ipvsDrainLimit', DURATION, {
      default: 0,
      flag: { name: 'ipvs-drain-limit' },
      omit: 'default',
      flagWins: true,
      help: 'after which open connections to an endpoint that is gone are cut in the ipvs mode; 0 waits for their end',
    }),
    field('junction.nftablesCounters', BOOL, {
      default: false,
      flag: { name: 'nftables-counters' },
      omit: 'default',
      flagWins: true,
      help: 'let the kernel count connections of each endpoint in the nftables mode, for /metrics',
    }),
    field('junction.nftablesBackstop', BOOL, {
      default: true,
      flag: { name: 'nftables-backstop' },
      keepsZero: true,
      omit: 'default',
      flagWins: true,
      help: 'keep a second table that only Junction can change, so that nft flush ruleset costs no connection',
    }),
    field('junction.holdPorts', BOOL, {
      default: false,
      flag: { name: 'hold-ports' },
      omit: 'default',
      flagWins: true,
      help: "bind node ports, and external IPs that are this node's, so that no other program can take them",
    }),
    field('junction.sysctlRoot', STRING, {
      default: '/proc/sys',
      flag: { name: 'sysctl-root', placeholder: 'DIR' },
      omit: 'default',
      flagWins: true,
      help: 'where kernel settings are read and written, for a container whose /proc/sys is read-only: DIR/net is a mount of /proc/sys/net',
    }),
    field('junction.stateDir', STRING, {
      default: '/run/junction',
      flag: { name: 'state-dir', placeholder: 'DIR' },
      keepsZero: true,
      omit: 'default',
      flagWins: true,
      help: 'where a crash is noted down, for the log and the metrics of the next run; empty: nowhere',
    }),
    field('junction.firewalld', BOOL, {
      default: true,
      flag: { name: 'firewalld' },
      keepsZero: true,
      omit: 'default',
      flagWins: true,
      help: 'listen on D-Bus for reloads of firewalld, which remove rules, and write them again at once',
    }),
  ],
  flags: [],
} as const;
