/** What the commands for questions answer about a node in IPVS mode, from its running proxy and its kernel. */
import { match } from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { same } from '../../daemon/mismatch.ts';
import { ONE_OF_EACH_KIND } from '../../daemon/oneOfEachKind.ts';
import { onStage, type Stage } from '../../daemon/stage.ts';

/** Of the whole machine: only its first network namespace has it to write. */
const MAX = '/proc/sys/net/netfilter/nf_conntrack_max';
const CLIENT = '--from=198.18.0.10';

const served = (stage: Stage): Promise<void> => stage.serve(ONE_OF_EACH_KIND);

type Asked = readonly [command: string, ...args: string[]];

/** The exit code, and what was printed in one line for each that has one of these words. */
async function ask(stage: Stage, args: Asked, words: RegExp): Promise<readonly (string | number)[]> {
  const { exitCode, stdout, stderr } = await stage.daemon.ask(...args);
  const lines = `${stdout}${stderr}`.split('\n').map((line) => line.trim().replaceAll(/ +/g, ' '));
  return [exitCode ?? -1, ...lines.filter((line) => words.test(line))];
}

export const COMMANDS = onStage('commands', {
  'explain has the way through sets and virtual servers, and says that it is as planned': async (stage) => {
    await served(stage);
    const [code, head = '', kernel = '', ...way] = await ask(
      stage,
      ['explain', CLIENT, '--to=203.0.113.23:80'],
      /→ 203|in the kernel|ipvs: /,
    );
    same(code, 0);
    match(String(head), /^198\.18\.0\.10 → 203\.0\.113\.23:80\/TCP on node1 FORWARDED/);
    match(String(kernel), /^in the kernel \(ipvs, read .*: as planned\)/);
    match(way.join('\n'), /TCP 203\.0\.113\.23:80: real server 10\.244\.1\.11:8080, weight 1/);
    same((await ask(stage, ['explain', '--from=192.168.99.1', '--to=203.0.113.23:80'], /^$/))[0], 4);
    same((await ask(stage, ['explain', CLIENT, '--to=10.96.20.5:80'], /^$/))[0], 3);
  },

  'doctor: a full table of connections': async (stage) => {
    await served(stage);
    const before = await readFile(MAX, 'utf8');
    const count = await stage.node.run(['cat', '/proc/sys/net/netfilter/nf_conntrack_count']);
    const max = Number(count) + 4;
    await writeFile(MAX, String(max));
    try {
      // Each is one more connection, until the kernel drops its first packet.
      for (let port = 0; port < 8; port++)
        await stage.client.request('tcp', '192.168.100.2', 9999, { timeoutMs: 300 });
      const [, ...said] = await ask(stage, ['doctor', '--only=conntrack'], /./);
      match(said.join('\n'), /the table of tracked connections is full/);
      match(
        said.join('\n'),
        new RegExp(`of ${max} connections[^]*sysctl -w net.netfilter.nf_conntrack_max=131072`),
      );
    } finally {
      await writeFile(MAX, before.trim());
    }
  },

  'a virtual server that another program deleted: explain and diff show it': async (stage) => {
    await served(stage);
    await stage.node.run(['ipvsadm', '-D', '-t', '10.96.20.1:80']);
    const [code, ...said] = await ask(
      stage,
      ['explain', CLIENT, '--to=10.96.20.1:80'],
      /no virtual server|planned: /,
    );
    same(code, 5);
    match(said.join('\n'), /no virtual server/);
    const [diffCode, ...lines] = await ask(
      stage,
      ['diff', '--family=ipv4'],
      /virtual server TCP 10\.96\.20\.1:80/,
    );
    same(diffCode, 1);
    match(lines.join('\n'), /^\+ virtual server TCP 10\.96\.20\.1:80: -A -t 10\.96\.20\.1:80 -s rr$/m);
  },
});
