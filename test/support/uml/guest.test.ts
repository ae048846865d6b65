import { mkdtempSync, readdirSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { requireGuest, runSourceInGuest } from './guest.ts';

describe('a guest', () => {
  beforeEach((context) => requireGuest(context));

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

  it('one that crashes says where, and what the script wrote before', async () => {
    const source = `import { writeFileSync } from 'node:fs';
       console.log('begun');
       writeFileSync('/proc/sysrq-trigger', 'c');`;
    await expect(runSourceInGuest('guestCrash', source)).rejects.toThrow(
      /ended before the script did\n--- console\n[^]*Kernel panic[^]*--- stdout\nbegun/,
    );
  });

  it('one that hangs is ended, says how far it came, and leaves nothing behind', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'junction-'));
    vi.stubEnv('TMPDIR', folder);
    const heard: string[] = [];
    // A busy machine may need longer to boot than a quiet one needs to hang.
    for (const timeoutMs of [6000, 60_000, 180_000]) {
      const run = runSourceInGuest('guestHang', `console.log('begun'); setInterval(() => {}, 1000);`, {
        timeoutMs,
        onLine: (line) => heard.push(line),
      });
      const said = await run.then(
        () => 'it ended by itself',
        (error: unknown) => String(error),
      );
      expect(said).toContain(`still running after ${timeoutMs} ms`);
      if (heard.length === 0) continue;
      expect(said).toMatch(/--- console\n[^]*init as init process[^]*--- stdout\nbegun/);
      break;
    }
    expect(heard).toEqual(['begun']);
    expect(readdirSync(folder)).toEqual([]);
    vi.unstubAllEnvs();
    rmdirSync(folder);
  });
});
