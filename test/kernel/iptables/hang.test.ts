/** An iptables that hangs is killed, the failure names it, and the next command has its turn. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { IptablesDoor } from '../../../src/kernel/iptables/door.ts';
import { run } from '../../../src/kernel/process.ts';
import { groupOf } from '../support/processes.ts';

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

async function openDoor(): Promise<IptablesDoor> {
  return IptablesDoor.open({
    family: 'IPv4',
    variant: 'nft',
    timeoutMs: 300,
    runner: ([program, ...args], options) => run([join(directory, program), ...args], options),
  });
}

test.each([
  [
    'a restore',
    (door: IptablesDoor) => door.restore('nat', '*nat\nCOMMIT\n'),
    'iptables-nft-restore .*-T nat',
  ],
  ['a save', (door: IptablesDoor) => door.save('nat'), 'iptables-nft-save -t nat'],
  [
    'a save in pieces',
    (door: IptablesDoor) => door.readSave('nat', {}, async () => {}),
    'iptables-nft-save -t nat',
  ],
  [
    'a rule',
    (door: IptablesDoor) => door.ensureChain('nat', 'KUBE-SERVICES'),
    'iptables-nft .*-N KUBE-SERVICES',
  ],
])('%s', async (_, act, command) => {
  const door = await openDoor();
  writeFileSync(join(directory, 'hang'), '');
  const message = (limit: string): unknown =>
    expect.stringMatching(new RegExp(`${command}.* did not end within ${limit} s, and was killed$`));
  await expect(act(door)).rejects.toMatchObject({ code: 'PROGRAM_TIMED_OUT', message: message('0.3\\d*') });
  // A machine that is merely slow gets more time.
  await expect(act(door)).rejects.toMatchObject({ code: 'PROGRAM_TIMED_OUT', message: message('0.6\\d*') });
  const pids = readFileSync(join(directory, 'hung'), 'utf8').trim().split('\n').map(Number);
  expect(pids).toHaveLength(2);
  await vi.waitFor(() => expect(pids.flatMap(groupOf)).toEqual([]), { timeout: 20_000 });
  rmSync(join(directory, 'hang'));
  await act(door);
});

test('whether a chain exists is not known then', async () => {
  const door = await openDoor();
  writeFileSync(join(directory, 'hang'), '');
  expect(await door.lookForChain('nat', 'KUBE-SERVICES')).toMatchObject({
    state: 'unknown',
    error: { code: 'PROGRAM_TIMED_OUT' },
  });
});
