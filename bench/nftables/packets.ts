/** What the first packet of a connection pays for a service, in the namespace of this process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { NetlinkSockets } from '../../src/netlink/sockets.ts';
import { type EndpointSlice, objectKey, type Service } from '../../src/model/objects.ts';
import { fill, makeService, makeSlice } from '../cluster.ts';
import { clusterText, nft, serviceText } from './chains.ts';
import type { AnswerTask, DialTask, PacketsRun, PacketsTask } from './messages.ts';
import { mustSync, nftProxy } from './ours.ts';
import { openWires } from './wires.ts';

const PROGRAM = fileURLToPath(import.meta.url);

export async function measurePackets({ sizes, table, samples }: PacketsTask): Promise<PacketsRun> {
  const { service, slice } = probe(sizes.services, sizes.endpoints);
  const wires = await openWires();
  let server: ChildProcess | undefined;
  let sockets: NetlinkSockets | undefined;
  try {
    if (table === 'chains')
      await nft(
        clusterText(sizes, 'a chain per service') + serviceText(service, slice, 'a chain per service'),
      );
    else sockets = await writeFlat(sizes, table === 'flat with counters', service, slice);
    const addresses = slice.endpoints.map(({ ip }) => ip);
    server = await startServer(wires.server.pid, { kind: 'answer', addresses, port: 8080 });
    const task: DialTask = {
      kind: 'dial',
      service: { address: service.clusterIPs.IPv4 ?? '', port: 80 },
      endpoints: { addresses, port: 8080 },
      samples,
    };
    const { code, stdout, stderr } = await wires.client.runner([
      process.execPath,
      PROGRAM,
      JSON.stringify(task),
    ]);
    if (code !== 0) throw new Error(`the client ended with ${code}: ${stderr}`);
    return JSON.parse(stdout) as PacketsRun;
  } finally {
    server?.kill();
    await sockets?.close();
    wires.close();
  }
}

/** One more service, with a port of each protocol. */
function probe(
  index: number,
  endpoints: number,
): { readonly service: Service; readonly slice: EndpointSlice } {
  return {
    service: {
      ...makeService(index),
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, nodePort: 0 },
        { name: 'echo', protocol: 'UDP', port: 80, nodePort: 0 },
      ],
    },
    slice: {
      ...makeSlice(index, endpoints),
      ports: [
        { name: 'http', protocol: 'TCP', port: 8080 },
        { name: 'echo', protocol: 'UDP', port: 8080 },
      ],
    },
  };
}

/** Answers the sockets, of which one owns the table. */
async function writeFlat(
  sizes: PacketsTask['sizes'],
  counters: boolean,
  service: Service,
  slice: EndpointSlice,
): Promise<NetlinkSockets> {
  const sockets = new NetlinkSockets();
  const proxy = nftProxy(sockets, { counters });
  fill(proxy, sizes);
  proxy.onService(objectKey(service.namespace, service.name), service);
  proxy.onEndpointSlice(objectKey(slice.namespace, slice.name), slice);
  await mustSync(proxy);
  return sockets;
}

export async function startServer(pid: number, task: AnswerTask): Promise<ChildProcess> {
  const program = [`--net=/proc/${pid}/ns/net`, process.execPath, PROGRAM, JSON.stringify(task)];
  const child = spawn('nsenter', program, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}
