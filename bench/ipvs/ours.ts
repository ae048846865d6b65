/** The IPVS mode as the daemon runs it, in the network namespace of this process. */
import { IptablesClient } from '../../src/modes/iptables/client.ts';
import { NetlinkIpvsClient } from '../../src/modes/ipvs/client.ts';
import { IpvsSync } from '../../src/modes/ipvs/sync.ts';
import { AddressWatch } from '../../src/modes/addressWatch.ts';
import { NETLINK_GENERIC, NETLINK_NETFILTER, NETLINK_ROUTE } from '../../src/netlink/socket.ts';
import { NetlinkSockets } from '../../src/netlink/sockets.ts';
import { objectKey } from '../../src/model/objects.ts';
import { Proxier } from '../../src/proxy/proxier.ts';
import { BlockMeter, liveMemory, memory } from '../meters.ts';
import { fill, makeService, makeSlice, VIEW } from '../cluster.ts';
import type { OwnRun, Sizes } from './messages.ts';
import { TimedClients } from './timedClients.ts';

const CHANGES = 21;

export async function measureOurs(sizes: Sizes): Promise<OwnRun> {
  const sockets = new NetlinkSockets();
  const watch = await AddressWatch.start(sockets);
  try {
    return await measure(sockets, watch, sizes);
  } finally {
    await watch.close();
    await sockets.close();
  }
}

async function measure(sockets: NetlinkSockets, watch: AddressWatch, sizes: Sizes): Promise<OwnRun> {
  const clients = new TimedClients();
  const proxy = await openProxy(sockets, watch, clients);
  fill(proxy, sizes);
  proxy.replan();
  const block = new BlockMeter();
  block.start();
  const cold = await clients.time(() => mustSync(proxy));
  const blockMs = block.stop();
  const settled = memory();
  const live = liveMemory();
  const timed = async (): Promise<number> => (await clients.time(() => mustSync(proxy))).total;
  const changeMs: number[] = [];
  for (let change = 1; change <= CHANGES; change++) {
    const slice = makeSlice((change * 37) % sizes.services, sizes.endpoints, change);
    proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
    changeMs.push(await timed());
  }
  const addMs: number[] = [];
  for (let added = 0; added < CHANGES; added++) {
    const service = makeService(sizes.services + added);
    const slice = makeSlice(sizes.services + added, sizes.endpoints);
    proxy.onService(objectKey(service.namespace, service.name), service);
    proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
    addMs.push(await timed());
  }
  const removeMs: number[] = [];
  for (let removed = 0; removed < CHANGES; removed++) {
    const service = makeService(sizes.services + removed);
    const slice = makeSlice(sizes.services + removed, sizes.endpoints);
    proxy.onService(objectKey(service.namespace, service.name), undefined);
    proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), undefined);
    removeMs.push(await timed());
  }
  proxy.writer.requestFull();
  const verifyMs = await timed();
  return { kind: 'own', sizes, cold, blockMs, settled, live, changeMs, addMs, removeMs, verifyMs };
}

async function openProxy(
  sockets: NetlinkSockets,
  watch: AddressWatch,
  clients: TimedClients,
): Promise<Proxier> {
  const channels = clients.channels({
    route: sockets.channel(NETLINK_ROUTE),
    netfilter: sockets.channel(NETLINK_NETFILTER),
    generic: sockets.channel(NETLINK_GENERIC),
  });
  const writer = new IpvsSync({
    iptables: await IptablesClient.open({ family: 'IPv4', variant: 'legacy', runner: clients.runner }),
    client: new NetlinkIpvsClient('IPv4', channels),
    masqueradeBit: 14,
    scheduler: 'rr',
    excludeCIDRs: [],
    drainLimitMs: 0,
    nodeIps: () => watch.nodeIps('IPv4'),
    onDrainFailure: (error) => {
      throw error;
    },
  });
  watch.subscribe({
    family: 'IPv4',
    isBound: (ip) => writer.isBound(ip),
    onDevice: () => {
      throw new Error('somebody else changed the device');
    },
    onNodeAddresses: () => {},
  });
  return new Proxier({ family: 'IPv4', settings: VIEW, writer });
}

async function mustSync(proxy: Proxier): Promise<void> {
  const outcome = await proxy.sync();
  if (!outcome) throw new Error('nothing was synced');
  const [refused] = outcome.report.refused.values();
  if (refused) throw refused;
}
