#!/usr/bin/env node
/**
 * Stands in for a kube-proxy where there is none, to try out what KUBE_PROXY does in `npm run bench -- nftables`. It is
 * started in the same way, reads the same file, asks the same API server, and writes chains through `nft -f`. It is no
 * measure of kube-proxy.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { createInterface } from 'node:readline';

const TABLE = 'ip kube-proxy';
const config = JSON.parse(readFileSync(process.argv[process.argv.indexOf('--config') + 1], 'utf8'));
if (config.mode !== 'nftables') throw new Error(`mode ${config.mode}`);
const kubeconfig = JSON.parse(readFileSync(config.clientConnection.kubeconfig, 'utf8'));
const { server } = kubeconfig.clusters[0].cluster;

function ask(path) {
  const headers = { accept: config.clientConnection.acceptContentTypes };
  return new Promise((resolve, reject) => get(`${server}${path}`, { headers }, resolve).on('error', reject));
}

async function list(path) {
  let text = '';
  for await (const chunk of await ask(path)) text += chunk;
  return JSON.parse(text);
}

function nft(lines) {
  const { status, stderr } = spawnSync('nft', ['-f', '-'], { input: `${lines.join('\n')}\n` });
  if (status !== 0) throw new Error(stderr.toString().slice(0, 1000));
}

function chainOf({ metadata }, service) {
  return `service-${metadata.namespace}/${service}`;
}

function chain(slice) {
  const name = chainOf(slice, slice.metadata.labels['kubernetes.io/service-name']);
  const targets = slice.endpoints.map(
    ({ addresses }, index) => `${index} : ${addresses[0]} . ${slice.ports[0].port}`,
  );
  return [
    `add chain ${TABLE} ${name}`,
    `flush chain ${TABLE} ${name}`,
    `add rule ${TABLE} ${name} meta l4proto tcp dnat ip addr . port to numgen random mod ${targets.length} map { ${targets.join(' , ')} }`,
  ];
}

function element(service) {
  const { clusterIP, ports } = service.spec;
  const target = chainOf(service, service.metadata.name);
  return `add element ${TABLE} service-ips { ${clusterIP} . tcp . ${ports[0].port} : goto ${target} }`;
}

const services = await list('/api/v1/services?limit=0');
const slices = await list('/apis/discovery.k8s.io/v1/endpointslices?limit=0');
nft([
  `add table ${TABLE}`,
  `add map ${TABLE} service-ips { type ipv4_addr . inet_proto . inet_service : verdict ; }`,
  `add chain ${TABLE} nat-prerouting { type nat hook prerouting priority -100 ; }`,
  `add rule ${TABLE} nat-prerouting ip daddr . meta l4proto . th dport vmap @service-ips`,
  ...slices.items.flatMap(chain),
  ...services.items.map(element),
]);
const { resourceVersion } = slices.metadata;
const watch = await ask(
  `/apis/discovery.k8s.io/v1/endpointslices?watch=true&resourceVersion=${resourceVersion}&allowWatchBookmarks=true`,
);
for await (const line of createInterface({ input: watch })) {
  const { type, object } = JSON.parse(line);
  if (type === 'ADDED' || type === 'MODIFIED') nft(chain(object));
}
