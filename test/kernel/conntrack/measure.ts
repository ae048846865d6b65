/**
 * How long cleaning takes in a table of many flows. Makes them with real datagrams in the namespace that it runs in;
 * docs/conntrack.md has the command.
 */
import { execFileSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { FlowCleaner } from '../../../src/kernel/conntrack/cleaner.ts';
import { createLog } from '../../../src/log.ts';
import { cluster } from '../../plan/cluster.ts';

const [others = 100_000, ours = 200] = process.argv.slice(2).map(Number);
const SERVICE = '10.96.1.1';

function run(...argv: readonly [string, ...string[]]): string {
  return execFileSync(argv[0], argv.slice(1), { encoding: 'utf8', maxBuffer: 1 << 30, stdio: 'pipe' });
}

async function openSocket(): Promise<Socket> {
  const socket = createSocket('udp4').on('error', () => {});
  socket.bind(0);
  await once(socket, 'listening');
  return socket;
}

function send(socket: Socket, port: number, address: string): Promise<void> {
  return new Promise((resolve) => socket.send('x', port, address, () => resolve()));
}

async function makeFlows(): Promise<void> {
  const socket = await openSocket();
  for (let made = 0; made < others; made += 500) {
    const some = Array.from({ length: Math.min(500, others - made) }, (_, index) => made + index);
    const address = (at: number): string => `127.${1 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`;
    await Promise.all(some.map((at) => send(socket, 53, address(at))));
  }
  socket.close();
  for (let made = 0; made < ours; made++) {
    const client = await openSocket();
    await send(client, 53, SERVICE);
    client.close();
  }
}

async function timed(what: string, work: () => unknown): Promise<void> {
  let longest = 0;
  let last = performance.now();
  const beat = setInterval(() => {
    longest = Math.max(longest, performance.now() - last - 1);
    last = performance.now();
  }, 1);
  const started = performance.now();
  const result = await work();
  const elapsed = performance.now() - started;
  await new Promise((resolve) => setTimeout(resolve, 5));
  clearInterval(beat);
  console.log(
    `${what}: ${elapsed.toFixed(1)} ms, loop held for ${longest.toFixed(1)} ms at most`,
    JSON.stringify(result),
  );
}

run('ip', 'link', 'set', 'lo', 'up');
run('ip', 'route', 'add', 'default', 'dev', 'lo');
run('sysctl', '-qw', 'net.netfilter.nf_conntrack_udp_timeout=600');
const rule = `-t nat -A OUTPUT -p udp -d ${SERVICE} --dport 53 -j DNAT --to 127.0.0.2:5353`;
run('iptables', ...rule.split(' '));
await makeFlows();
console.log(run('cat', '/proc/sys/net/netfilter/nf_conntrack_count').trim(), 'flows');

const log = createLog({ verbosity: 0, format: 'text' });
const cleaner = new FlowCleaner({ family: 'IPv4', localIps: () => [], log });
const many = Array.from({ length: 2000 }, (_, at) => `a/s${at} 10.97.${at >> 8}.${at & 255} 53/udp`);
const world = cluster(
  `a/dns ${SERVICE} 53/udp\na/dns-1 of dns 5353/udp | 127.0.0.2 | 127.0.0.3`,
  many.join('\n'),
);
await timed('everything, at the start, all of it on port 53', () => cleaner.clean([], world.planner, true));
for (let round = 0; round < 3; round++) {
  world.tell('a/dns-1 of dns 5353/udp | 127.0.0.2 | 127.0.0.3').replan();
  const changes = world.tell('a/dns-1 of dns 5353/udp | 127.0.0.2').replan();
  await timed('one service, nothing stale', () => cleaner.clean(changes, world.planner, false));
}
const changes = world.tell('a/dns-1 of dns 5353/udp | 127.0.0.9').replan();
await timed('one service, all of its flows stale', () => cleaner.clean(changes, world.planner, false));
await timed('conntrack -L -p udp', () => run('conntrack', '-L', '-p', 'udp').length);
