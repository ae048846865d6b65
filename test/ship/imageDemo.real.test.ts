import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type BuiltDemo, copyDemo, RunningDemo } from '../lab/demo/program.ts';
import { expectTable } from '../lab/demo/table.ts';
import { requireLab } from '../lab/requireLab.ts';
import { ROOT } from '../support/checkout.ts';
import { BUILD_LIMIT_MS, builtImage } from './builtImage.ts';
import { requireContainers, whyNoContainers } from './requireContainers.ts';

let built: BuiltDemo;
let temporary = '';
let archive = '';
beforeAll(() => {
  built = copyDemo();
  cpSync(join(ROOT, 'deploy/manifests'), join(built.folder, 'deploy/manifests'), { recursive: true });
  temporary = join(built.folder, 'tmp');
  mkdirSync(temporary);
  if (whyNoContainers() === undefined) archive = `${builtImage().base}.oci.tar`;
}, BUILD_LIMIT_MS);
afterAll(() => built.remove());
beforeEach((context) => {
  requireLab(context);
  requireContainers(context);
});

function start(...args: readonly string[]): RunningDemo {
  return RunningDemo.start(built, ['--image', archive, ...args], [], { TMPDIR: temporary });
}

test('the table in iptables mode; kill -9 leaves no process behind, and the next demo removes the files', async () => {
  const demo = start();
  await demo.saying(/Ctrl-C: end/);
  expectTable(demo.output);
  expect(demo.processOf(/runc .* run /)).toBeDefined();
  demo.child.kill('SIGKILL');
  await demo.exited;
  await expect.poll(() => demo.processOf(/junction run|runc/)).toBeUndefined();
  expect(readdirSync(temporary)).toHaveLength(2);
});

test('the demo’s table in nftables mode, served from the image', async () => {
  const demo = start('--once', '--mode', 'nftables');
  expect({ code: await demo.exited, output: demo.output }).toMatchObject({ code: 0 });
  expect(demo.output).toMatch(/^. The image is sha256:[0-9a-f]{64}/m);
  expect(demo.output).toContain('Junction from the image serves on node1, mode nftables');
  expectTable(demo.output, '192.168.100.2');
  expect(demo.output).toContain('All 218 requests went as planned.');
  expect(demo.processes()).toEqual([]);
  expect(readdirSync(temporary).filter((name) => name.startsWith('junction-demo-image-'))).toEqual([]);
});
