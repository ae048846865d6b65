/** Steps by netlink beside other programs: handles that mean other rules, parts that are gone, refusals that name the line. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { inside } from '../../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';

let namespace: Namespace;
beforeEach(async (context) => {
  requireNamespaces(context);
  namespace = await openNamespace();
});
afterEach(() => namespace.close());

const IMPORTS = `
  import { NetlinkWriter } from './src/modes/iptables/netlink/writer.ts';
  import { piece } from './src/modes/iptables/rules/edit.ts';
  import { withChannel } from './src/netlink/channel.ts';
  import { NETLINK_NETFILTER } from './src/netlink/socket.ts';
  import { runInside } from './test/modes/iptables/netlink/support/kernelRules.ts';
  const rule = (text) => ({ matches: [{ kind: 'comment', text }], target: { kind: 'return' } });
  const program = (...argv) => runInside(argv);
  const rules = () => program('iptables-nft', '-t', 'nat', '-S', 'KUBE-SHARED').split('\\n').filter((line) => line.startsWith('-A')).map((line) => line.split(' ')[5]);
  const using = (use) => withChannel(NETLINK_NETFILTER, async (channel) => {
    const writer = new NetlinkWriter('IPv4', channel);
    const commit = (parts, table = 'nat') => writer.commit({ table, pieces: [piece(undefined, parts)] }).then(() => 'done', ({ code, message, detail }) => [code, message, detail].join(' | '));
    const add = (place, ...names) => commit({ adds: names.map((name) => ({ chain: 'KUBE-SHARED', rule: rule(name), place })) });
    const remove = (...names) => commit({ removes: names.map((name) => ({ chain: 'KUBE-SHARED', rule: rule(name) })) });
    console.log(JSON.stringify(await use({ commit, add, remove })));
  });
`;

const run = (name: string, source: string): Promise<unknown> =>
  inside(namespace, name, `${IMPORTS} await using(async ({ commit, add, remove }) => { ${source} });`);

it('deletes the first of equal rules, whatever was added meanwhile, by whomever', async () => {
  const answer = await run(
    'handles',
    `await commit({ writes: [{ name: 'KUBE-SHARED', rules: ['a', 'b', 'a'].map(rule) }] });
     const seen = [await remove('a'), rules()];
     await add('end', 'c', 'b');
     await add('head', 'b', 'd');
     program('iptables-nft', '-t', 'nat', '-A', 'KUBE-SHARED', '-m', 'comment', '--comment', 'theirs', '-j', 'RETURN');
     seen.push(rules(), await remove('b'), rules(), await remove('b', 'b'), rules());
     program('iptables-nft', '-t', 'nat', '-D', 'KUBE-SHARED', '-m', 'comment', '--comment', 'c', '-j', 'RETURN');
     program('iptables-nft', '-t', 'nat', '-A', 'KUBE-SHARED', '-m', 'comment', '--comment', 'c', '-j', 'RETURN');
     return [...seen, await remove('c'), rules()];`,
  );
  expect(answer).toEqual([
    'done',
    ['b', 'a'],
    ['b', 'd', 'b', 'a', 'c', 'b', 'theirs'],
    'done',
    ['d', 'b', 'a', 'c', 'b', 'theirs'],
    'done',
    ['d', 'a', 'c', 'theirs'],
    'done',
    ['d', 'a', 'theirs'],
  ]);
});

it('never deletes the rule of a table that was made again, whose handles are the same', async () => {
  const answer = await run(
    'table-again',
    `await commit({ writes: [{ name: 'KUBE-SHARED', rules: ['a', 'b'].map(rule) }] });
     await remove('a');
     program('nft', 'delete', 'table', 'ip', 'nat');
     program('iptables-nft', '-t', 'nat', '-N', 'KUBE-SHARED');
     for (const name of ['x', 'y', 'z']) program('iptables-nft', '-t', 'nat', '-A', 'KUBE-SHARED', '-m', 'comment', '--comment', name, '-j', 'RETURN');
     return [await remove('b'), rules()];`,
  );
  expect(answer).toEqual([
    'IPTABLES_RESTORE_FAILED | the kernel refused a change of the table nat: ENOENT | ENOENT: -D KUBE-SHARED -m comment --comment b -j RETURN',
    ['x', 'y', 'z'],
  ]);
});

it('makes tables and base chains that are gone, leaves policies alone, and says what was refused', async () => {
  const answer = await run(
    'parts',
    `const jump = { chain: 'FORWARD', rule: { matches: [], target: { kind: 'jump', chain: 'KUBE-A' } }, place: 'head' };
     const seen = [await commit({ writes: [{ name: 'KUBE-A', rules: [] }], adds: [jump] }, 'filter')];
     program('iptables-nft', '-P', 'FORWARD', 'DROP');
     seen.push(await commit({ deletes: ['KUBE-A'] }, 'filter'), await commit({ adds: [jump] }, 'filter'));
     seen.push(await commit({ writes: [{ name: 'KUBE-B', rules: [{ matches: [], target: { kind: 'jump', chain: 'KUBE-NONE' } }] }] }, 'filter'));
     return [...seen, program('iptables-nft', '-S').trim().split('\\n')];`,
  );
  const refused = 'IPTABLES_RESTORE_FAILED | the kernel refused a change of the table filter';
  expect(answer).toEqual([
    'done',
    `${refused}: EBUSY | EBUSY: -X KUBE-A`,
    'done',
    `${refused}: ENOENT | ENOENT: -A KUBE-B -j KUBE-NONE`,
    [
      '-P INPUT ACCEPT',
      '-P FORWARD DROP',
      '-P OUTPUT ACCEPT',
      '-N KUBE-A',
      '-A FORWARD -j KUBE-A',
      '-A FORWARD -j KUBE-A',
    ],
  ]);
});

it('tries again where another program makes the table between the refusal and our look', async () => {
  const answer = await inside(
    namespace,
    'made-meanwhile',
    `${IMPORTS}
     await withChannel(NETLINK_NETFILTER, async (channel) => {
       let refusals = 0;
       const raced = new Proxy(channel, {
         get: (target, name) => name !== 'commit' ? target[name].bind(target) : async (transaction) => {
           const reply = await target.commit(transaction);
           if (reply.state === 'refused' && refusals++ === 0) program('iptables-nft', '-t', 'filter', '-N', 'THEIRS');
           return reply;
         },
       });
       const writer = new NetlinkWriter('IPv4', raced);
       const step = { table: 'filter', pieces: [piece(undefined, { writes: [{ name: 'KUBE-A', rules: [rule('a')] }] })] };
       const said = await writer.commit(step).then(() => 'done', ({ message }) => message);
       console.log(JSON.stringify([refusals, said, program('iptables-nft', '-S', 'KUBE-A').trim().split('\\n')]));
     });`,
  );
  expect(answer).toEqual([1, 'done', ['-N KUBE-A', '-A KUBE-A -m comment --comment a -j RETURN']]);
});
