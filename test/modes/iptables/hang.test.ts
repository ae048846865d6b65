/** An iptables that hangs is killed, the failure names it, and the next command has its turn. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { isJunctionError } from '../../../src/errors.ts';
import { IptablesClient } from '../../../src/modes/iptables/client.ts';
import { run } from '../../../src/system/processes.ts';
import { withEnoughTime } from '../../support/enoughTime.ts';
import { groupOf } from '../../system/support/processes.ts';

/** Says its version; hangs with a child, and ignores SIGTERM, while there is a file `hang`. */
const SCRIPT = `#!/bin/sh
case "$*" in *--version*) echo 'iptables v1.8.9 (nf_tables)'; exit 0;; esac
[ -e "\${0%/*}/hang" ] || exit 0
trap '' TERM
echo $$ >> "\${0%/*}/hung"
sleep 600
sleep 600
`;

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'junction-hang-'));
  for (const name of ['iptables-nft', 'iptables-nft-save', 'iptables-nft-restore']) {
    writeFileSync(join(directory, name), SCRIPT);
    chmodSync(join(directory, name), 0o755);
  }
});
afterEach(() => rmSync(directory, { recursive: true }));

const hang = (): void => writeFileSync(join(directory, 'hang'), '');

/** Returns which programs got so far as to hang. */
function hangNoMore(): readonly number[] {
  rmSync(join(directory, 'hang'));
  const path = join(directory, 'hung');
  if (!existsSync(path)) return [];
  const text = readFileSync(path, 'utf8');
  rmSync(path);
  return text.trim().split('\n').map(Number);
}

/** False: the machine was too slow for it. */
async function isDone(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (isJunctionError(error, 'PROGRAM_TIMED_OUT')) return false;
    throw error;
  }
}

async function openClient(timeoutMs: number): Promise<IptablesClient> {
  return IptablesClient.open({
    family: 'IPv4',
    variant: 'nft',
    timeoutMs,
    runner: ([program, ...args], options) => run([join(directory, program), ...args], options),
  });
}

test.each([
  [
    'a restore',
    (client: IptablesClient) => client.restore('nat', '*nat\nCOMMIT\n'),
    'iptables-nft-restore .*-T nat',
  ],
  ['a save', (client: IptablesClient) => client.save('nat'), 'iptables-nft-save -t nat'],
  [
    'a save in pieces',
    (client: IptablesClient) => client.readSave('nat', {}, async () => {}),
    'iptables-nft-save -t nat',
  ],
  [
    'a rule',
    (client: IptablesClient) => client.ensureChain('nat', 'KUBE-SERVICES'),
    'iptables-nft .*-N KUBE-SERVICES',
  ],
])('%s', async (_, act, command) => {
  await withEnoughTime(async (timeoutMs) => {
    const client = await openClient(timeoutMs);
    hang();
    // A machine that is merely slow gets more time.
    for (const limit of [timeoutMs, 2 * timeoutMs]) {
      const seconds = String(limit / 1000).replace('.', '\\.');
      const message = new RegExp(`${command}.* did not end within ${seconds}\\d* s, and was killed$`);
      await expect(act(client)).rejects.toMatchObject({
        code: 'PROGRAM_TIMED_OUT',
        message: expect.stringMatching(message) as string,
      });
    }
    const pids = hangNoMore();
    await vi.waitFor(() => expect(pids.flatMap(groupOf)).toEqual([]), { timeout: 150_000 });
    return pids.length === 2 && (await isDone(act(client)));
  });
});

test('whether a chain exists is not known then', async () => {
  const client = await openClient(300);
  hang();
  expect(await client.lookForChain('nat', 'KUBE-SERVICES')).toMatchObject({
    state: 'unknown',
    error: { code: 'PROGRAM_TIMED_OUT' },
  });
});
