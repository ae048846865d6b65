import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../../src/system/processes.ts';
import { RunRecord } from '../../src/daemon/runRecord.ts';
import { bundle } from '../system/support/bundle.ts';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'junction-runs-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** One run, in a process of its own, since the lock is held until that ends. Returns what it was told of those before. */
async function runOf(end: string): Promise<unknown> {
  const script = await bundle(
    'runRecord',
    `import { RunRecord } from './src/daemon/runRecord.ts';
     const record = new RunRecord(${JSON.stringify(directory)}, ${JSON.stringify(join(directory, 'termination-log'))});
     console.log(JSON.stringify(record.previous));
     ${end}`,
  );
  const { stdout, stderr } = await run([process.execPath, script]);
  rmSync(script);
  expect(stderr).toBe('');
  return JSON.parse(stdout) as unknown;
}

const ENDS = 'record.ended();';
const CRASHES = `record.crashed('Uncaught exception: Error: an accident');`;
const IS_KILLED = `process.kill(process.pid, 'SIGKILL');`;

describe('the next run', () => {
  it('is told nothing of one that ended', async () => {
    expect(await runOf(ENDS)).toEqual({ crashes: { uncaught_error: 0, killed: 0 } });
    expect(await runOf(ENDS)).toEqual({ crashes: { uncaught_error: 0, killed: 0 } });
  });

  it('is told when and how the one before crashed, once, and how often that happened', async () => {
    writeFileSync(join(directory, 'termination-log'), '');
    await runOf(CRASHES);
    expect(readFileSync(join(directory, 'termination-log'), 'utf8')).toContain('an accident');
    const last = {
      cause: 'uncaught_error',
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
      what: 'Uncaught exception: Error: an accident',
    };
    expect(await runOf(ENDS)).toEqual({ crashes: { uncaught_error: 1, killed: 0 }, last });
    expect(await runOf(CRASHES)).toEqual({ crashes: { uncaught_error: 1, killed: 0 } });
    expect(await runOf(ENDS)).toEqual({ crashes: { uncaught_error: 2, killed: 0 }, last });
  });

  it('is told of one that was killed', async () => {
    await runOf(IS_KILLED);
    expect(await runOf(ENDS)).toMatchObject({
      crashes: { uncaught_error: 0, killed: 1 },
      last: { cause: 'killed' },
    });
  });
});

describe('a record', () => {
  it.each(['', 'null', '{', '{"crashes":{"killed":"many"},"last":7}', '\0\0'])(
    'that says %j is as none',
    (text) => {
      writeFileSync(join(directory, 'runs.json'), text);
      const { previous, problem } = new RunRecord(directory);
      expect({ previous, problem }).toEqual({
        previous: { crashes: { uncaught_error: 0, killed: 0 }, last: undefined },
        problem: undefined,
      });
    },
  );

  it.each([
    ['cannot be made', '/proc/no/such/place'],
    ['is a file', '/etc/hostname'],
  ])('whose folder %s says so and is of no harm', (_, place) => {
    const record = new RunRecord(place, '/proc/no/such/log');
    expect(record.problem).toBeDefined();
    record.crashed('an accident');
    record.ended();
  });

  it('that another run has locked is left alone', async () => {
    const first = new RunRecord(directory);
    expect(first.problem).toBeUndefined();
    const text = readFileSync(join(directory, 'runs.json'), 'utf8');
    expect(await runOf(`console.error = () => {}; ${ENDS}`)).toEqual({
      crashes: { uncaught_error: 0, killed: 0 },
    });
    expect(readFileSync(join(directory, 'runs.json'), 'utf8')).toBe(text);
  });
});
