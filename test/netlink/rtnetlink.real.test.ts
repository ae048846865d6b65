/** Links and addresses, beside what `ip` says of the same kernel. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inside, output } from '../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../system/support/namespace.ts';

const IMPORTS = `
  import { NETLINK_ROUTE } from './src/netlink/socket.ts';
  import { SyncSocket } from './test/netlink/support/syncSocket.ts';
  import { addAddress, deleteAddress, deleteLink, newLink } from './src/netlink/rtnetlink.ts';
  import { applyChange, applyChanges, listAddresses, listLinks, readLink } from './test/netlink/support/readers.ts';
  const socket = SyncSocket.open(NETLINK_ROUTE);
  const print = (value) => console.log(JSON.stringify(value));
`;

interface IpLink {
  readonly ifindex: number;
  readonly ifname: string;
  readonly flags: readonly string[];
  readonly linkinfo?: { readonly info_kind?: string };
  readonly addr_info: readonly {
    readonly family: string;
    readonly local: string;
    readonly prefixlen: number;
    readonly scope: string;
  }[];
}

describe('in a namespace', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  const ip = async (...words: string[]): Promise<readonly IpLink[]> =>
    JSON.parse(await output(namespace, 'ip', '-json', '-details', ...words)) as readonly IpLink[];

  it('lists links as ip does', async () => {
    await output(namespace, 'ip', 'link', 'set', 'lo', 'up');
    await output(namespace, 'ip', 'link', 'add', 'pods0', 'type', 'bridge');
    await output(namespace, 'ip', 'link', 'add', 'left0', 'type', 'veth', 'peer', 'name', 'right0');
    const links = await inside(
      namespace,
      'links',
      `${IMPORTS}
       print(listLinks(socket).map(({ index, name, kind, flags }) =>
         ({ index, name, kind: kind ?? null, up: (flags & 1) === 1, loopback: (flags & 8) === 8 })));`,
    );
    const expected = (await ip('link', 'show')).map(({ ifindex, ifname, flags, linkinfo }) => ({
      index: ifindex,
      name: ifname,
      kind: linkinfo?.info_kind ?? null,
      up: flags.includes('UP'),
      loopback: flags.includes('LOOPBACK'),
    }));
    expect(links).toEqual(expected);
    expect(expected.map(({ name, kind }) => [name, kind])).toEqual(
      expect.arrayContaining([
        ['lo', null],
        ['pods0', 'bridge'],
        ['left0', 'veth'],
      ]),
    );
  });

  it('makes and deletes a link, and says when there was nothing to do', async () => {
    const answers = await inside(
      namespace,
      'newLink',
      `${IMPORTS}
       print([applyChange(socket, newLink('vip0', 'bridge')), applyChange(socket, newLink('vip0', 'bridge')),
         readLink(socket, 'vip0').kind, readLink(socket, 'none0') ?? null,
         applyChange(socket, newLink('odd0', 'nosuchkind')),
         applyChange(socket, deleteLink('none0'))]);`,
    );
    expect(answers).toEqual([
      { state: 'done' },
      { state: 'exists' },
      'bridge',
      null,
      { state: 'refused', errno: 95, name: expect.stringMatching(/^(EOPNOTSUPP|ENOTSUP)$/) },
      { state: 'absent' },
    ]);
    expect((await ip('link', 'show', 'vip0'))[0]?.flags).not.toContain('UP');
    expect(
      await inside(namespace, 'deleteLink', `${IMPORTS} print(applyChange(socket, deleteLink('vip0')));`),
    ).toEqual({ state: 'done' });
    expect((await ip('link', 'show')).map(({ ifname }) => ifname)).not.toContain('vip0');
  });

  it('adds and deletes host addresses of a link that is down', async () => {
    await output(namespace, 'ip', 'link', 'add', 'vip0', 'type', 'bridge');
    const answers = await inside(
      namespace,
      'addresses',
      `${IMPORTS}
       const { index } = readLink(socket, 'vip0');
       print([
         ...applyChanges(socket, [addAddress(index, '10.96.0.1'), addAddress(index, '10.96.0.10'),
           addAddress(index, 'fd00::1'), addAddress(index, '10.96.0.1'), deleteAddress(index, '10.96.0.10'),
           deleteAddress(index, '10.96.0.11'), deleteAddress(index, 'fd00::2'), addAddress(99, '10.96.0.1'),
           deleteAddress(99, '10.96.0.1'), addAddress(index, '10.96.0.2')]).map(({ state, name }) => name ?? state),
         listAddresses(socket, { linkIndex: index, family: 'IPv4' }).map(({ ip }) => ip),
         listAddresses(socket, { family: 'IPv6' }).map(({ ip }) => ip),
       ]);`,
    );
    expect(answers).toEqual([
      'done',
      'done',
      'done',
      'exists',
      'done',
      'absent',
      'absent',
      'ENODEV',
      'absent',
      'done',
      ['10.96.0.1', '10.96.0.2'],
      ['fd00::1'],
    ]);
    const [vip] = await ip('addr', 'show', 'vip0');
    expect(
      vip?.addr_info.map(({ local, prefixlen, scope }) => `${local}/${prefixlen} ${scope}`).sort(),
    ).toEqual(['10.96.0.1/32 global', '10.96.0.2/32 global', 'fd00::1/128 global']);
  });

  it('lists addresses as ip does', async () => {
    await output(namespace, 'ip', 'link', 'add', 'left0', 'type', 'veth', 'peer', 'name', 'right0');
    for (const link of ['lo', 'left0', 'right0']) await output(namespace, 'ip', 'link', 'set', link, 'up');
    await output(namespace, 'ip', 'addr', 'add', '192.0.2.1', 'peer', '192.0.2.9/32', 'dev', 'left0');
    await output(namespace, 'ip', 'addr', 'add', '198.51.100.7/24', 'dev', 'right0', 'scope', 'link');
    await output(namespace, 'ip', 'addr', 'add', '2001:db8::7/64', 'dev', 'right0', 'nodad');
    const ours = await inside(
      namespace,
      'allAddresses',
      `${IMPORTS} print(listAddresses(socket).map(({ linkIndex, ip, prefix, scope }) =>
         [linkIndex, ip, prefix, scope].join(' ')).sort());`,
    );
    const theirs = (await ip('addr', 'show')).flatMap(({ ifindex, addr_info: addresses }) =>
      addresses.map(({ local, prefixlen, scope }) => [ifindex, local, prefixlen, scope].join(' ')),
    );
    expect(ours).toEqual(theirs.sort());
    expect(theirs.join('\n')).toContain('192.0.2.1 32 global');
  });
});
