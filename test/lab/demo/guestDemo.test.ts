/** The demo in the mode ipvs, in a kernel of its own. One boot for all of it. */
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { requireGuest } from '../../support/uml/guest.ts';
import { type BuiltDemo, copyDemo, RunningDemo } from './program.ts';
import { edit } from './edit.ts';
import { expectTable } from './table.ts';

const PROGRAMS = ['unshare', 'nsenter', 'setpriv', 'ip', 'iptables-legacy', 'ip6tables-legacy'];

let built: BuiltDemo;
beforeAll(() => {
  built = copyDemo();
});
afterAll(() => built.remove());
beforeEach((context) => requireGuest(context, PROGRAMS));

test('the same table, an edit of the host’s files that shows, and kill -9 leaves nothing behind', async () => {
  const temporary = join(built.folder, 'tmp');
  mkdirSync(temporary);
  const demo = RunningDemo.start(built, ['--mode', 'ipvs'], [], { TMPDIR: temporary });
  onTestFinished(() => void demo.child.kill('SIGKILL'));
  await demo.saying(/Ctrl-C: end/);
  expect(demo.output).toMatch(/All 218 requests went as planned\./);
  expectTable(demo.output, '192.168.100.2');
  // What is planned: the guest is another machine.
  const status = await (await fetch(`${demo.link}v1/status`)).json();
  expect(status).toMatchObject({ node: 'node1', mode: 'ipvs', answeredBy: { kind: 'plan' } });

  const first = demo.output.length;
  edit(built.examples, 'idle.yaml', (text) => text.replace('ready: false', 'ready: true'));
  await demo.saying(/went as planned\.\n$/, first);
  expect(demo.output.slice(first)).toMatch(
    /Junction wrote IPv4 .*IPVS object.*: EndpointSlice shop\/idle\S*: endpoint \S+ ready$/m,
  );
  expect(demo.output.slice(first)).toMatch(/^✓ {2}pod-b +idle cluster IP +10\.96\.0\.70:80 +pod-d ×12/m);

  expect(readdirSync(temporary)).not.toEqual([]);
  demo.child.kill('SIGKILL');
  await expect.poll(() => demo.processes(), { timeout: 150_000, interval: 50 }).toEqual([]);
  await expect.poll(() => readdirSync(temporary), { timeout: 150_000, interval: 50 }).toEqual([]);
});
