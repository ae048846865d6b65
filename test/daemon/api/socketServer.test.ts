import { chmodSync, existsSync, linkSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { execFile } from 'node:child_process';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SocketServer } from '../../../src/daemon/api/socketServer.ts';
import { plain } from '../../../src/telemetry/http/server.ts';
import { eventually } from '../../e2e/support/eventually.ts';
import { keptLog } from '../../telemetry/http/support.ts';
import { FakeClock } from '../../time/fakeClock.ts';

let folder = '';
let path = '';
const open: { stop(): Promise<void> }[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'junction-socket-'));
  path = join(folder, 'deep/er/a.sock');
});
afterEach(async () => {
  for (const server of open.splice(0)) await server.stop();
  rmSync(folder, { recursive: true });
});

async function serve(mode = 0o600) {
  const { log, lines } = keptLog();
  const clock = new FakeClock();
  const server = new SocketServer({ path, mode, page: () => plain(200, 'ok'), log, clock });
  open.push(server);
  await server.start();
  return { server, lines, clock };
}

function ask(): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: path, path: '/' }, (response) => {
      response.setEncoding('utf8').once('data', (text) => resolve(String(text)));
    });
    asked.once('error', reject);
    asked.end();
  });
}

describe('the socket', () => {
  test.each([0o600, 0o660])('has its permissions, in a directory that all may enter (%o)', async (mode) => {
    await serve(mode);
    expect(statSync(path).mode & 0o777).toBe(mode);
    expect(statSync(join(path, '..')).mode & 0o777).toBe(0o755);
    expect(await ask()).toBe('ok');
  });

  test('of a process that is dead is replaced', async () => {
    await serve().then(({ server }) => server.stop());
    expect(existsSync(path)).toBe(false);
    const dead = createServer();
    await new Promise<void>((resolve) => dead.listen({ path: `${path}.other` }, resolve));
    // A hard link stays when libuv deletes the name that it knows.
    linkSync(`${path}.other`, path);
    await new Promise((resolve) => dead.close(resolve));
    expect(statSync(path).isSocket()).toBe(true);
    await serve();
    expect(await ask()).toBe('ok');
  });

  test('of another process that lives is left alone, logged once, and taken when it is free', async () => {
    const first = await serve();
    const { lines, clock } = await serve();
    await clock.advance(10_000);
    await eventually('a second attempt', () => clock.pending > 0);
    expect(lines.filter((line) => line.includes('Cannot listen for questions'))).toHaveLength(1);
    expect(lines[0]).toContain('another process listens');
    await first.server.stop();
    await clock.advance(10_000);
    await eventually('it has the socket', () => existsSync(path));
    expect(await ask()).toBe('ok');
  });

  test('does not replace a file that is no socket', async () => {
    await serve().then(({ server }) => server.stop());
    writeFileSync(path, 'precious');
    const { lines } = await serve();
    expect(lines[0]).toContain('is no socket');
    expect(statSync(path).size).toBe(8);
  });
});

test.runIf(process.getuid?.() === 0)('another user is turned away, whatever the file says', async () => {
  const { lines } = await serve();
  chmodSync(path, 0o666);
  chmodSync(folder, 0o755);
  const connect = `require('net').connect(${JSON.stringify(path)}).on('error', () => {}).on('data', (d) => process.stdout.write(d)).end('GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')`;
  const asked = (uid: number): Promise<string> =>
    new Promise((resolve) => {
      execFile(process.execPath, ['-e', connect], { uid }, (_error, stdout) => resolve(stdout));
    });
  expect(await asked(65_534)).toBe('');
  expect(await asked(0)).toContain('ok');
  expect(lines.join('\n')).toContain('was turned away');
});
