import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { applyOomScore } from '../../src/system/sysctl.ts';
import { bundle } from './support/bundle.ts';

describe('the score', () => {
  it('is written', () => {
    const root = mkdtempSync(join(tmpdir(), 'junction-'));
    mkdirSync(join(root, 'self'));
    expect(applyOomScore(-999, { root, log: { verbose: () => undefined } })).toBe(true);
    expect(readFileSync(join(root, 'self/oom_score_adj'), 'utf8')).toBe('-999');
    rmSync(root, { recursive: true });
  });

  it('is not worth more than a quiet line when it cannot be', () => {
    const lines: string[] = [];
    const log = { verbose: (level: number, message: string) => lines.push(`V${level} ${message}`) };
    expect(applyOomScore(-999, { root: '/nosuch', log })).toBe(false);
    expect(lines).toEqual(['V2 Failed to apply OOMScore']);
  });

  it('is what the kernel then says', async () => {
    const script = await bundle(
      'oom',
      `import { readFileSync } from 'node:fs';
       import { applyOomScore } from './src/system/sysctl.ts';
       const done = applyOomScore(501, { log: { verbose: () => undefined } });
       console.log(done, readFileSync('/proc/self/oom_score_adj', 'utf8').trim());`,
    );
    expect(spawnSync(process.execPath, [script], { encoding: 'utf8' }).stdout).toBe('true 501\n');
  });
});
