/** Flags of commands other than `run`. */
import { BOOL, choiceOf, DURATION, IP_PORT, STRING } from '../config/kinds.ts';
import { flag, type SettingKind } from '../config/setting.ts';

/** As long as the proxy lets an answer wait. */
const MAX_WAIT_MS = 600_000;

const WAIT: SettingKind<number> = {
  ...DURATION,
  alone: '30s',
  fromFlag: (text) => {
    const reading = DURATION.fromFlag(text, undefined);
    if (!('value' in reading) || (reading.value > 0 && reading.value <= MAX_WAIT_MS)) return reading;
    return { problem: 'must be more than 0 and at most 10m' };
  },
};

export const OWN_FLAGS = {
  family: flag('family', choiceOf(['both', 'ipv4', 'ipv6']), 'both', { help: 'address families' }),
  planOutput: flag('output', choiceOf(['text', 'table', 'json']), 'text', {
    short: 'o',
    help: "text: input for nft, or for iptables-restore --noflush (Junction's own chains; the jumps to them are comments), in the ipvs mode for ipset, ipvsadm and ip too; table: who answers where; json: everything",
  }),
  output: flag('output', choiceOf(['text', 'json']), 'text', {
    short: 'o',
    help: 'for people, or for programs',
  }),
  checkOutput: flag('output', choiceOf(['text', 'json']), 'text', {
    short: 'o',
    help: 'a table for people, or json for programs',
  }),
  only: flag('only', STRING, '', {
    placeholder: 'GROUP,…',
    help: 'look at these groups alone: kernel, sysctls, other-proxies, firewall, routes, proxy, api-server, rules, packets, services, probe, conntrack',
  }),
  probe: flag('probe', BOOL, false, {
    help: 'open real connections from this node to endpoints and frontends, of NAMESPACE/NAME or of a sample of all, and say which leg fails',
  }),
  dryRun: flag('dry-run', BOOL, false, { help: 'say what would be removed, and remove nothing' }),
  cleanupMode: flag('mode', choiceOf(['all', 'iptables', 'ipvs', 'nftables']), 'all', {
    help: "remove only what this mode of Junction left, and nothing of a kube-proxy that runs in another mode; all: everything that is Junction's or kube-proxy's",
  }),
  waitForProxy: flag('wait-for-proxy', IP_PORT, '', {
    help: 'first wait until no Junction runs here and another service proxy is healthy at this address (kube-proxy: 127.0.0.1:10256) and has written its rules, which it says at --metrics-bind-address',
  }),
  timeout: flag('timeout', DURATION, 0, {
    help: 'how long to wait for another service proxy; 0: as long as it takes',
  }),
  stay: flag('stay', BOOL, false, {
    help: 'afterwards stay until stopped, as a container of a DaemonSet has to',
  }),
  answerOutput: flag('output', choiceOf(['table', 'wide', 'json', 'yaml']), 'table', {
    short: 'o',
    help: 'table: for people, as wide as the terminal; wide: with all columns; json, yaml: for programs (docs/reference/api.md)',
  }),
  eventOutput: flag('output', choiceOf(['table', 'json']), 'table', {
    short: 'o',
    help: 'table: a line for people; json: an object a line, for programs (docs/reference/api.md)',
  }),
  live: flag('live', BOOL, false, {
    help: 'ask the proxy that runs here; so it is without another source',
  }),
  bundle: flag('bundle', STRING, '', {
    placeholder: 'FILE',
    help: 'answer from a file that junction bundle wrote',
  }),
  from: flag('from', STRING, '', {
    placeholder: 'ADDRESS|pod/NS/NAME|node|outside',
    help: 'who sends the packet',
  }),
  to: flag('to', STRING, '', {
    placeholder: 'ADDRESS:PORT[/udp]|svc/NS/NAME[:PORT]',
    help: 'whom it dials',
  }),
  namespace: flag('namespace', STRING, '', {
    short: 'n',
    placeholder: 'NAMESPACE',
    help: 'only Services of this namespace; names then go without it: -n shop svc/web',
  }),
  problems: flag('problems', BOOL, false, { help: 'only those that are not ok' }),
  watch: flag('watch', BOOL, false, {
    short: 'w',
    help: 'show it again every two seconds, until Ctrl-C; in a pipe, when it has changed',
  }),
  wait: flag('wait', WAIT, 0, {
    help: 'answer when everything that the proxy has received is in the kernel; how long at most, up to 10m; exit code 1: not by then, and what is still open',
  }),
  waitFor: flag('wait-for', STRING, '', {
    placeholder: 'svc/NAME',
    help: 'the same, when also this Service has come from the API server or the manifests: what one wants after kubectl apply; in the namespace default, unless --namespace or svc/NAMESPACE/NAME says another',
  }),
  resourceVersion: flag('resource-version', STRING, '', {
    placeholder: 'VERSION',
    help: 'of the Service of --wait-for, the version (metadata.resourceVersion) that must have come',
  }),
  uiBindAddress: flag('ui-bind-address', STRING, '127.0.0.1:0', {
    placeholder: 'ADDRESS:PORT',
    help: 'where the page is served; a port alone means 127.0.0.1, port 0 any that is free; other addresses than loopback need a token, which is in the link, and a terminal to print that to',
  }),
  toManifests: flag('to-manifests', STRING, '', {
    placeholder: 'PATH',
    help: 'compare with a plan of these manifests, files or directories with commas between them: in place of those of --manifests, otherwise in place of the objects with the same names',
  }),
  toKubeconfig: flag('to-kubeconfig', STRING, '', {
    placeholder: 'FILE',
    help: 'compare with a plan of what this cluster has now',
  }),
  toConfig: flag('to-config', STRING, '', {
    placeholder: 'FILE',
    help: 'compare with a plan by this configuration file',
  }),
  toProxyMode: flag('to-proxy-mode', choiceOf(['', 'iptables', 'ipvs', 'nftables']), '', {
    placeholder: 'iptables|ipvs|nftables',
    help: 'compare with a plan of this mode',
  }),
  toHostname: flag('to-hostname-override', STRING, '', {
    placeholder: 'NODE',
    help: 'compare with the plan of another node',
  }),
  bundleOutput: flag('output', STRING, '', {
    short: 'o',
    placeholder: 'FILE',
    help: 'the file to write, - for standard output; without it, one in this directory that names node and time',
  }),
  bundleForce: flag('force', BOOL, false, { help: 'replace a file that is there' }),
  force: flag('force', BOOL, false, {
    help: 'remove although a Junction runs here, which then writes its rules again',
  }),
};
