/**
 * CVE-2020-8558, where Junction is killed between two of its writes: a neighbour that asks all the time never reaches
 * 127.0.0.1, and the next start goes on from what it finds.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { TOOL_PATH } from '../../lab/tools.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually, FLAGS } from './daemon.ts';
import { Neighbour } from './support/neighbour.ts';
import { PROGRAM, Program, type StartOptions } from './support/program.ts';
import { useInLab } from './support/use.ts';
import { manifests } from './cluster.ts';

const LOCALNET = 'net/ipv4/conf/all/route_localnet';
const WORLD = manifests([{ name: 'api', ip: '10.96.1.1', nodePort: 30_080, pods: 'ac' }]);
const GUARD = '! -s 127.0.0.0/8 -d 127.0.0.0/8';

/** The write of route_localnet never returns. */
const HUNG_WRITE = `import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const { writeFileSync } = fs;
fs.writeFileSync = (path, ...rest) => {
  if (String(path).endsWith('route_localnet')) {
    fs.writeSync(2, 'Writing route_localnet\\n');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }
  writeFileSync(path, ...rest);
};
syncBuiltinESMExports();`;

/** Stands before iptables-restore: input that matches the pattern in the file `hang` is never written. */
const wrapper = (folder: string): string => `#!/bin/sh
input=$(cat; echo .)
if [ -e ${folder}/hang ] && printf %s "\${input%.}" | grep -q -e "$(cat ${folder}/hang)"; then
  echo $$ >> ${folder}/hung
  exec sleep 600
fi
printf %s "\${input%.}" | PATH=${TOOL_PATH} "\${0##*/}" "$@"
`;

describe('Junction killed between two writes, a neighbour and 127.0.0.1', () => {
  const lab = useLab();
  const setOf = useInLab(async () => {
    const node = lab().host('node1');
    await node.sysctl({ [LOCALNET]: '0' });
    const daemon = await Daemon.create(node, '--iptables-variant=nft');
    await daemon.write(WORLD);
    // Not where manifests are read.
    const folder = `${daemon.manifests}-programs`;
    mkdirSync(folder);
    for (const family of ['iptables', 'ip6tables']) {
      const path = join(folder, `${family}-nft-restore`);
      writeFileSync(path, wrapper(folder));
      chmodSync(path, 0o755);
    }
    const close = async (): Promise<void> => {
      for (const pid of hung(folder)) end(pid);
      rmSync(folder, { recursive: true });
      await daemon.close();
    };
    return { daemon, folder, neighbour: await Neighbour.start(lab()), close };
  });

  let running: Program | undefined;
  afterEach(async () => {
    await running?.close();
  });

  const localnet = async (): Promise<string> =>
    (
      await lab()
        .host('node1')
        .run(['cat', `/proc/sys/${LOCALNET}`])
    ).trim();
  const rules = (): Promise<string> => lab().host('node1').run(['iptables-nft-save']);

  const start = (...flags: readonly string[]): Program => startWith({}, ...flags);

  function startWith(options: StartOptions, ...flags: readonly string[]): Program {
    const { daemon, folder } = setOf();
    const args = ['run', '--manifests', daemon.manifests, ...FLAGS, '--iptables-variant=nft'];
    running = Program.start(lab().host('node1'), [...args, ...flags], {
      env: { PATH: `${folder}:${TOOL_PATH}` },
      ...options,
    });
    return running;
  }

  /** Starts it, and kills it when a restore hangs whose input has this. */
  async function killedAt(pattern: string, ...flags: readonly string[]): Promise<void> {
    const { folder } = setOf();
    writeFileSync(join(folder, 'hang'), pattern);
    await killedWhenHung(start(...flags));
  }

  async function killedWhenHung(program: Program): Promise<void> {
    const { folder } = setOf();
    await eventually(
      () => `a restore hangs; it said:\n${program.log}`,
      () => hung(folder).length > 0,
    );
    await program.end('SIGKILL');
    rmSync(join(folder, 'hang'));
    for (const pid of hung(folder)) end(pid);
    rmSync(join(folder, 'hung'));
  }

  async function serves(...flags: readonly string[]): Promise<void> {
    const program = start(...flags);
    await program.serves();
    await program.end('SIGTERM');
  }

  /** Whatever happens in it, no packet gets through. */
  async function unreached(work: () => Promise<void>): Promise<void> {
    const packets = await setOf().neighbour.sendDuring(work);
    expect(packets.sent).toBeGreaterThan(0);
    expect(packets.reached).toBe(0);
  }

  test('would meet without the guard', async () => {
    const node = lab().host('node1');
    await node.sysctl({ [LOCALNET]: '1' });
    await setOf().neighbour.getsThrough();
    await node.sysctl({ [LOCALNET]: '0' });
    expect(await localnet()).toBe('0');
  });

  test('at a start: the guard is written, route_localnet is not', async () => {
    await unreached(async () => {
      const preload = `data:text/javascript,${encodeURIComponent(HUNG_WRITE)}`;
      const program = startWith({ program: [process.execPath, '--import', preload, PROGRAM] });
      await program.says('Writing route_localnet');
      expect(await rules()).toContain(GUARD);
      expect(await localnet()).toBe('0');
      await program.end('SIGKILL');
      // As the next one would; or anybody else.
      await lab()
        .host('node1')
        .sysctl({ [LOCALNET]: '1' });
      await serves();
      expect((await rules()).split(GUARD)).toHaveLength(2);
      expect(await localnet()).toBe('1');
    });
  });

  test('at a start: route_localnet is on, the first rules are not written', async () => {
    const node = lab().host('node1');
    await unreached(async () => {
      await node.sysctl({ [LOCALNET]: '0' });
      await setOf().daemon.cleanup();
      expect(await rules()).not.toContain('KUBE-');
      await killedAt('KUBE-SERVICES');
      expect(await localnet()).toBe('1');
      expect(await rules()).toContain(GUARD);
      expect(await rules()).not.toContain('KUBE-SERVICES');
      await serves();
      expect((await rules()).split(GUARD)).toHaveLength(2);
      expect(await rules()).toContain('shop/api:http');
    });
  });

  test('at a switch to nftables and back: nat is not cleaned yet', async () => {
    await unreached(async () => {
      await serves();
      await killedAt('[*]nat', '--proxy-mode=nftables');
      expect(await localnet()).toBe('1');
      expect(await rules()).toContain(GUARD);
      const next = start('--proxy-mode=nftables');
      await next.serves();
      await eventually(
        () => `the rest is cleaned; it said:\n${next.log}`,
        async () => !(await rules()).includes('KUBE-SERVICES'),
      );
      await next.end('SIGTERM');
      expect(await rules()).toContain(GUARD);
      await serves();
      expect(await rules()).toContain('shop/api:http');
    });
  });

  test.each(['1', '0'])('at a clean-up: with route_localnet=%s, nat is not cleaned', async (value) => {
    const { folder } = setOf();
    const node = lab().host('node1');
    await unreached(async () => {
      await serves();
      await node.sysctl({ [LOCALNET]: value });
      writeFileSync(join(folder, 'hang'), '[*]nat');
      const env = { PATH: `${folder}:${TOOL_PATH}` };
      const program = Program.start(node, ['cleanup', '--iptables-variant=nft'], { env });
      await killedWhenHung(program);
      expect((await rules()).includes(GUARD)).toBe(value === '1');
      await serves();
      expect((await rules()).split(GUARD)).toHaveLength(2);
      expect(await localnet()).toBe('1');
    });
  });
});

function hung(folder: string): readonly number[] {
  const path = join(folder, 'hung');
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n').map(Number) : [];
}

/** The program that hangs; it may have ended with whoever started it. */
function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
