/** What the kernel holds, beside what the conntrack tool says that it holds. */
import { spawnSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bundle } from '../system/support/bundle.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../system/support/namespace.ts';

const hasTool = spawnSync('conntrack', ['--version']).status === 0;

const FLOWS = [
  '-p udp -s 10.0.0.1 -d 10.96.0.10 --sport 4001 --dport 53 --dst-nat 10.244.0.3:5353',
  '-p udp -s 10.0.0.1 -d 10.96.0.10 --sport 4002 --dport 53 --dst-nat 10.244.0.4:5353',
  '-p udp -s 10.0.0.1 -d 10.96.0.10 --sport 4003 --dport 54',
  '-p udp -s 10.0.0.1 -d 10.96.0.11 --sport 4004 --dport 53',
  '-p udp -s 10.0.0.1 -d 192.0.2.10 --sport 4005 --dport 53 --dst-nat 10.244.0.3:5353',
  '-p sctp --state ESTABLISHED --orig-vtag 1 --reply-vtag 2 -s 10.0.0.1 -d 10.96.0.10 --sport 4006 --dport 53',
  '-p tcp --state ESTABLISHED -s 10.0.0.1 -d 10.96.0.10 --sport 4007 --dport 53',
  '-p udp -s fd00::1 -d fd00:96::a --sport 4008 --dport 53 --dst-nat [fd00:244::3]:5353',
  '-p udp -s fd00::1 -d fd00:96::b --sport 4009 --dport 53',
  '-p udp -s fd00::1 -d fd00:96::a --sport 4010 --dport 54',
];

const LIST = `
  import { ConntrackTable } from './src/netlink/conntrack.ts';
  import { directChannel } from './test/netlink/support/directChannel.ts';
  import { NETLINK_NETFILTER, NetlinkSocket } from './src/netlink/socket.ts';
  const tableOf = (family) => new ConntrackTable(family, directChannel(NetlinkSocket.open(NETLINK_NETFILTER)));
  const flowsOf = async (family, dump) => {
    const flows = [];
    await tableOf(family).scan(dump, (_, port) => port === 53 || port === 54, (some) => flows.push(...some));
    return flows;
  };
  const list = async (family, filter) => {
    const flows = await flowsOf(family, filter);
    return flows.map(({ protocol, destination, destinationPort, answerer, answererPort, id }) =>
      [protocol, destination, destinationPort, answerer, answererPort, id].join(' ')).sort();
  };`;

describe('in a namespace', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    if (!hasTool) context.skip('the conntrack tool is not installed');
    namespace = await openNamespace();
    for (const flow of FLOWS) await namespace.runner(['conntrack', '-I', '-t', '300', ...flow.split(' ')]);
  });
  afterEach(() => namespace.close());

  const inside = async (source: string): Promise<unknown> => {
    const script = await bundle('conntrack', `${LIST}\n${source}`);
    const { stdout, stderr } = await namespace.runner([process.execPath, script]);
    await rm(script);
    expect(stderr).toBe('');
    return JSON.parse(stdout);
  };

  /** Lines such as `udp 17 299 src=… dst=… sport=… dport=… [UNREPLIED] src=… dst=… sport=… dport=… mark=0 use=1 id=7`. */
  const toolList = async (...args: readonly string[]): Promise<readonly string[]> => {
    const { stdout } = await namespace.runner(['conntrack', '-L', '-o', 'id', ...args]);
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const all = (key: string): readonly string[] =>
          [...line.matchAll(new RegExp(` ${key}=(\\S+)`, 'g'))].map(([, value = '']) => value);
        const protocol = line.slice(0, line.indexOf(' ')).toUpperCase();
        return [protocol, all('dst')[0], all('dport')[0], all('src')[1], all('sport')[1], all('id')[0]].join(
          ' ',
        );
      })
      .sort();
  };

  it('lists what the tool lists, asked narrowly or widely', async () => {
    const ours = await inside(`console.log(JSON.stringify(await Promise.all([
      list('IPv4', { protocol: 'UDP' }),
      list('IPv4', { protocol: 'UDP', address: '10.96.0.10', port: 53 }),
      list('IPv4', { protocol: 'UDP', port: 53 }),
      list('IPv4', { protocol: 'SCTP' }),
      list('IPv6', { protocol: 'UDP' }),
      list('IPv6', { protocol: 'UDP', address: 'fd00:96::a', port: 53 }),
    ])));`);
    const theirs = [
      await toolList('-f', 'ipv4', '-p', 'udp'),
      await toolList('-f', 'ipv4', '-p', 'udp', '-d', '10.96.0.10', '--dport', '53'),
      await toolList('-f', 'ipv4', '-p', 'udp', '--dport', '53'),
      await toolList('-f', 'ipv4', '-p', 'sctp'),
      await toolList('-f', 'ipv6', '-p', 'udp'),
      await toolList('-f', 'ipv6', '-p', 'udp', '--dport', '53'),
    ];
    expect(theirs.map((list) => list.length)).toEqual([5, 2, 4, 1, 3, 2]);
    expect(ours).toEqual(theirs);
  });

  it('deletes the flow that is meant, not one that took its place', async () => {
    const answer = await inside(`
      const table = tableOf('IPv4');
      const [first, second] = await flowsOf('IPv4', { protocol: 'UDP', address: '10.96.0.10', port: 53 });
      const younger = { ...first, id: (first.id ^ 1) >>> 0 };
      console.log(JSON.stringify([await table.remove([younger]), await table.remove([first, second, first])]));`);
    expect(answer).toEqual([
      [{ state: 'absent' }],
      [{ state: 'done' }, { state: 'done' }, { state: 'absent' }],
    ]);
    expect(await toolList('-f', 'ipv4', '-p', 'udp')).toHaveLength(3);
    expect(await toolList('-f', 'ipv4', '-p', 'tcp')).toHaveLength(1);
  });
});
