import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { beforeEach, describe, expect, it } from 'vitest';
import { requireGuest, runSourceInGuest } from './guest.ts';

describe('a guest', () => {
  beforeEach(requireGuest);

  it('runs a script with modules, and gives back all that it wrote', async () => {
    const result = await runSourceInGuest(
      'guest',
      `import { spawnSync } from 'node:child_process';
       import { readFileSync, writeFileSync } from 'node:fs';
       console.log(readFileSync('/proc/version', 'utf8').split(' ')[0], process.getuid());
       console.log(spawnSync('ip', ['link', 'add', 'kube-ipvs0', 'type', 'dummy']).status);
       console.log(readFileSync('/proc/net/ip_vs', 'utf8').split(' ')[0]);
       try { writeFileSync('/etc/junction-was-here', '') } catch ({ code }) { console.error(code) }
       process.exitCode = 7;`,
      { modules: ['dummy', 'ip_vs'] },
    );
    expect(result).toEqual({ code: 7, stdout: 'Linux 0\n0\nIP\n', stderr: 'EROFS\n' });
  });

  it('a module that is missing is an error of the run', async () => {
    const { code, stderr } = await runSourceInGuest('guestModule', `console.log(1);`, {
      modules: ['no_such'],
    });
    expect(code).toBe(1);
    expect(stderr).toContain('Module no_such not found');
  });

  it('one that hangs is ended, and says how far it came', async () => {
    const folders = (): readonly string[] =>
      readdirSync(tmpdir()).filter((name) => name.startsWith('junction-uml-'));
    const before = folders();
    const run = runSourceInGuest('guestHang', `console.log('begun'); setInterval(() => {}, 1000);`, {
      timeoutMs: 8000,
    });
    await expect(run).rejects.toThrow(/still running after 8000 ms[^]*--- console\n[^]*init as init process/);
    expect(folders()).toEqual(before);
  });
});
