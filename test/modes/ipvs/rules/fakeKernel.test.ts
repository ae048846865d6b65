/** That the kernel in memory refuses what the real one does, by the same names. */
import { expect, test } from 'vitest';
import type { IpvsEdit, EditOutcome } from '../../../../src/modes/ipvs/rules/client.ts';
import type { CommandRunner } from '../../../../src/system/processes.ts';
import type { SetEntry } from '../../../../src/modes/ipvs/rules/sets.ts';
import { cidr, ip } from '../../../plan/given.ts';
import { FakeIptables } from '../../../scenarios/fakeIptables.ts';
import { FakeIpvsKernel } from './fakeKernel.ts';

const create = (set: string, capacity = 2, type: 'hash:ip' | 'hash:ip,port,net' = 'hash:ip'): IpvsEdit => ({
  kind: 'createSet',
  set,
  type,
  capacity,
});
const host = (text: string): SetEntry => ({ type: 'hash:ip', ip: ip(text) });
const add = (set: string, entry: SetEntry): IpvsEdit => ({ kind: 'addEntry', set, entry });
const del = (set: string, entry: SetEntry): IpvsEdit => ({ kind: 'deleteEntry', set, entry });
const SERVER = { protocol: 'TCP', ip: ip('10.96.0.1'), port: 80 } as const;
const attributes = (scheduler = 'rr') => ({ ...SERVER, scheduler, flags: 0, timeout: 0, clientPrefix: 32 });
const DESTINATION = { ip: ip('10.244.0.1'), port: 80, key: '10.244.0.1:80' };
const endpoint = (kind: 'newDestination' | 'setDestination'): IpvsEdit => ({
  kind,
  server: SERVER,
  destination: DESTINATION,
  weight: 1,
  was: undefined,
});
const REMOVED: IpvsEdit = {
  kind: 'deleteDestination',
  server: SERVER,
  destination: DESTINATION,
  weight: 0,
  was: 1,
};
const NEW: IpvsEdit = { kind: 'newServer', server: attributes() };
const bind: IpvsEdit = { kind: 'bind', ip: ip('10.96.0.1') };
const unbind: IpvsEdit = { kind: 'unbind', ip: ip('10.96.0.1') };

const CASES: readonly (readonly [string, readonly IpvsEdit[], string])[] = [
  ['a set that is there and alike', [create('A'), create('A')], 'done'],
  ['a set that is there in another size', [create('A', 2), create('A', 3)], 'EEXIST'],
  ['a set of another type', [create('A'), create('A', 2, 'hash:ip,port,net')], 'EEXIST'],
  ['a name that is too long', [create('A'.repeat(32))], 'IPSET_ERR_PROTOCOL'],
  ['an entry of no set', [add('A', host('1.1.1.1'))], 'absent'],
  ['an entry twice', [create('A'), add('A', host('1.1.1.1')), add('A', host('1.1.1.1'))], 'exists'],
  [
    'an entry more than fit',
    [create('A', 1), add('A', host('1.1.1.1')), add('A', host('1.1.1.2'))],
    'IPSET_ERR_HASH_FULL',
  ],
  [
    'an entry of another type',
    [create('A'), add('A', { type: 'bitmap:port', port: 1 })],
    'IPSET_ERR_PROTOCOL',
  ],
  [
    'a network of no bits',
    [
      create('A', 2, 'hash:ip,port,net'),
      add('A', { type: 'hash:ip,port,net', ...SERVER, net: cidr('0.0.0.0/0') }),
    ],
    'IPSET_ERR_INVALID_CIDR',
  ],
  ['an entry that is not there goes', [create('A'), del('A', host('1.1.1.1'))], 'absent'],
  ['an entry of no set goes', [del('A', host('1.1.1.1'))], 'absent'],
  ['a set that is not there goes', [{ kind: 'destroySet', set: 'A' }], 'absent'],
  [
    'alike sets change places',
    [create('A'), create('B', 9), { kind: 'swapSets', set: 'A', other: 'B' }],
    'done',
  ],
  [
    'sets of two types change places',
    [create('A'), create('B', 2, 'hash:ip,port,net'), { kind: 'swapSets', set: 'A', other: 'B' }],
    'IPSET_ERR_TYPE_MISMATCH',
  ],
  [
    'a set and none change places',
    [create('A'), { kind: 'swapSets', set: 'A', other: 'B' }],
    'IPSET_ERR_EXIST_SETNAME2',
  ],
  ['a server twice', [NEW, NEW], 'exists'],
  ['a server with a scheduler of no module', [{ kind: 'newServer', server: attributes('lblc') }], 'ENOENT'],
  [
    'a server that is not there changes',
    [{ kind: 'setServer', server: attributes(), was: attributes('wrr') }],
    'absent',
  ],
  ['a server that is not there goes', [{ kind: 'deleteServer', server: attributes() }], 'absent'],
  ['an endpoint of no server', [endpoint('newDestination')], 'absent'],
  ['an endpoint twice', [NEW, endpoint('newDestination'), endpoint('newDestination')], 'exists'],
  ['an endpoint that is not there changes', [NEW, endpoint('setDestination')], 'absent'],
  ['an endpoint that is not there goes', [NEW, REMOVED], 'absent'],
  ['an address without a device', [bind], 'ENODEV'],
  ['an address goes without a device', [unbind], 'ENODEV'],
  ['an address twice', [{ kind: 'makeDevice' }, bind, bind], 'exists'],
  ['an address that is not there goes', [{ kind: 'makeDevice' }, unbind], 'absent'],
  ['a device twice', [{ kind: 'makeDevice' }, { kind: 'makeDevice' }], 'exists'],
  ['a device that is not there goes', [{ kind: 'dropDevice' }], 'absent'],
];

const word = (outcome: EditOutcome | undefined): string | undefined =>
  outcome?.state === 'refused' ? outcome.name : outcome?.state;

test.each(CASES)('%s', async (_, edits, expected) => {
  const outcomes = await new FakeIpvsKernel('IPv4', new FakeIptables()).apply(edits);
  expect(word(outcomes.at(-1))).toBe(expected);
  expect(outcomes.slice(0, -1).every(({ state }) => state === 'done')).toBe(true);
});

test('sets and rules: none is matched that is not there, none is destroyed that is matched', async () => {
  const iptables = new FakeIptables();
  const kernel = new FakeIpvsKernel('IPv4', iptables);
  const restore = (): ReturnType<CommandRunner> =>
    iptables.runner(['iptables-restore'], {
      stdin: '*nat\n:KUBE-A - [0:0]\n-A KUBE-A -m set --match-set A dst -j RETURN\nCOMMIT\n',
    });
  expect(await restore()).toMatchObject({ code: 2, stderr: expect.stringContaining("Set A doesn't exist.") });
  await kernel.apply([create('A')]);
  expect(await restore()).toMatchObject({ code: 0 });
  expect(word((await kernel.apply([{ kind: 'destroySet', set: 'A' }]))[0])).toBe('IPSET_ERR_BUSY');
});
