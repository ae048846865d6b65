/** Sets, beside what the program ipset says of the same kernel. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inside, output } from '../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../system/support/namespace.ts';

const IMPORTS = `
  import { NETLINK_NETFILTER } from './src/netlink/socket.ts';
  import { SyncSocket } from './test/netlink/support/syncSocket.ts';
  import { applyChanges } from './test/netlink/support/readers.ts';
  import * as ipset from './src/netlink/ipset.ts';
  import { entryKey } from './src/modes/ipvs/rules/sets.ts';
  import { probeSetType, readSet } from './test/netlink/support/readers.ts';
  const socket = SyncSocket.open(NETLINK_NETFILTER);
  const print = (value) => console.log(JSON.stringify(value));
  const brief = ({ state, name }) => name ?? state;
  const hash = (type, family = 'IPv4') => ({ type, family, hashSize: 1024, maxElements: 65536 });
  const ports = { type: 'bitmap:port', from: 0, to: 65535 };
  const create = (name, spec) =>
    ipset.createSet(name, spec, probeSetType(socket, spec.type, spec.family ?? 'IPv4').revision);
`;

describe('in a namespace', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  /** The kernel chooses a random `initval`, and shows it and the size of buckets for its newest revision alone. */
  const saved = async (): Promise<readonly string[]> =>
    (await output(namespace, 'ipset', 'save', '-sorted'))
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/ bucketsize \d+ initval 0x[0-9a-f]+/, ''));

  it('makes the same sets and entries as the program', async () => {
    const states = await inside(
      namespace,
      'create',
      `${IMPORTS}
       const sets = [['A4', hash('hash:ip')], ['B4', hash('hash:ip,port')], ['C4', hash('hash:ip,port,ip')],
         ['D4', hash('hash:ip,port,net')], ['D6', hash('hash:ip,port,net', 'IPv6')], ['E', ports]];
       const tcp = { ip: '10.0.0.1', protocol: 'TCP', port: 80 };
       print(applyChanges(socket, [
         ...sets.map(([name, spec]) => create(name, spec)),
         ipset.addEntry('A4', { type: 'hash:ip', ip: '10.0.0.1' }),
         ipset.addEntry('B4', { type: 'hash:ip,port', ...tcp, protocol: 'SCTP' }),
         ipset.addEntry('C4', { type: 'hash:ip,port,ip', ...tcp, protocol: 'UDP', secondIp: '10.0.0.1' }),
         ipset.addEntry('D4', { type: 'hash:ip,port,net', ...tcp, net: '192.0.2.0/24' }),
         ipset.addEntry('D4', { type: 'hash:ip,port,net', ...tcp, net: '192.0.2.7/32' }),
         ipset.addEntry('D6', { type: 'hash:ip,port,net', ...tcp, ip: 'fd00::1', net: 'fd00:1::/64' }),
         ipset.addEntry('E', { type: 'bitmap:port', port: 30080 }),
       ]).map(brief));`,
    );
    expect(states).toEqual(Array.from({ length: 13 }, () => 'done'));
    const ours = await saved();
    await output(namespace, 'ipset', 'destroy');
    const size = 'hashsize 1024 maxelem 65536';
    for (const line of [
      `create A4 hash:ip family inet ${size}`,
      `create B4 hash:ip,port family inet ${size}`,
      `create C4 hash:ip,port,ip family inet ${size}`,
      `create D4 hash:ip,port,net family inet ${size}`,
      `create D6 hash:ip,port,net family inet6 ${size}`,
      'create E bitmap:port range 0-65535',
      'add A4 10.0.0.1',
      'add B4 10.0.0.1,sctp:80',
      'add C4 10.0.0.1,udp:80,10.0.0.1',
      'add D4 10.0.0.1,tcp:80,192.0.2.0/24',
      'add D4 10.0.0.1,tcp:80,192.0.2.7/32',
      'add D6 fd00::1,tcp:80,fd00:1::/64',
      'add E 30080',
    ])
      await output(namespace, 'ipset', ...line.split(' '));
    expect(ours).toEqual(await saved());
  });

  it('reads what the program made', async () => {
    const nets = 'create NETS hash:ip,port,net family inet6 maxelem 99';
    await output(namespace, 'ipset', ...nets.split(' '));
    const members = ['fd00::1,tcp:80,fd00:1::/64', 'fd00::1,udp:53,fd00:2::7', 'fd00::2,sctp:9,fd00::/8'];
    for (const member of members) await output(namespace, 'ipset', 'add', 'NETS', member);
    await output(namespace, 'ipset', 'create', 'PORTS', 'bitmap:port', 'range', '0-65535');
    await output(namespace, 'ipset', 'add', 'PORTS', '30000-30002');
    await output(namespace, 'ipset', 'create', 'OTHERS', 'list:set');
    const answers = await inside(
      namespace,
      'read',
      `${IMPORTS}
       const nets = readSet(socket, 'NETS');
       print([{ ...nets, entries: nets.entries.map(entryKey).sort() },
         readSet(socket, 'PORTS').entries.map(entryKey), readSet(socket, 'NONE') ?? null, readSet(socket, 'OTHERS')]);`,
    );
    expect(answers).toEqual([
      { type: 'hash:ip,port,net', maxElements: 99, entries: members },
      ['30000', '30001', '30002'],
      null,
      { type: 'list:set', entries: [] },
    ]);
  });

  it('says when there was nothing to do, and why something could not be done', async () => {
    const answers = await inside(
      namespace,
      'outcomes',
      `${IMPORTS}
       const one = { type: 'hash:ip', ip: '10.0.0.1' };
       const two = { type: 'hash:ip', ip: '10.0.0.2' };
       const net = { type: 'hash:ip,port,net', ip: '10.0.0.1', protocol: 'TCP', port: 80 };
       print(applyChanges(socket, [
         create('S', { ...hash('hash:ip'), maxElements: 1 }),
         create('S', { ...hash('hash:ip'), maxElements: 1, hashSize: 64 }),
         create('S', hash('hash:ip')),
         create('S', ports),
         ipset.addEntry('S', one), ipset.addEntry('S', one), ipset.deleteEntry('S', one),
         ipset.deleteEntry('S', one), ipset.addEntry('NONE', one), ipset.addEntry('S', one),
         ipset.addEntry('S', { type: 'hash:ip', ip: 'fd00::1' }),
         ipset.destroySet('NONE'),
         create('T', { ...hash('hash:ip'), maxElements: 1 }), create('U', ports),
         ipset.addEntry('T', two), ipset.swapSets('S', 'T'), ipset.swapSets('S', 'U'), ipset.swapSets('S', 'NONE'),
         ipset.destroySet('U'),
         create('N', hash('hash:ip,port,net')), ipset.addEntry('N', { ...net, net: '0.0.0.0/0' }),
       ]).map(brief));`,
    );
    const expected =
      'done done EEXIST EEXIST done exists done absent absent done IPSET_ERR_PROTOCOL absent ' +
      'done done done done IPSET_ERR_TYPE_MISMATCH IPSET_ERR_EXIST_SETNAME2 done done IPSET_ERR_INVALID_CIDR';
    expect(answers).toEqual(expected.split(' '));
    expect(await output(namespace, 'ipset', 'list', 'S')).toContain('Members:\n10.0.0.2\n');
  });
});
