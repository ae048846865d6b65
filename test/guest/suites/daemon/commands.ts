/** What the commands for questions answer about a node in IPVS mode, from its running proxy and its kernel. */
import { match } from 'node:assert/strict';
import { IPVS_FLAGS } from '../../daemon/guestDaemon.ts';
import { becomes, same } from '../../daemon/mismatch.ts';
import { ONE_OF_EACH_KIND } from '../../daemon/oneOfEachKind.ts';
import { IN_KERNEL } from '../../daemon/oneOfEachKindInKernel.ts';
import { onStage, type Stage } from '../../daemon/stage.ts';

/** So that nothing is repaired between two questions. */
const LONG_SYNC_PERIOD = [...IPVS_FLAGS, '--ipvs-sync-period=1h'];
const CLIENT = '--from=198.18.0.10';

async function served(stage: Stage): Promise<void> {
  await stage.serve(ONE_OF_EACH_KIND, LONG_SYNC_PERIOD);
  await becomes(async () => (await stage.words()).servers, IN_KERNEL.servers);
}

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
