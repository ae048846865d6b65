/** The demo on a terminal, which `script` makes: what can be typed, what is shown, and what goes with the terminal. */
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { requireLab } from '../requireLab.ts';
import { type BuiltDemo, copyDemo, processesIn, RunningDemo } from './program.ts';

let built: BuiltDemo;
beforeAll(() => {
  built = copyDemo();
});
afterAll(() => built.remove());
beforeEach((context) => requireLab(context));

test('a table in 80 columns, commands on hosts, causes of writes; all goes with the terminal', async () => {
  const demo = startOnTerminal();
  await demo.saying(/HOST COMMAND\S* Enter/);
  expect(demo.output).toMatch(
    /\r\n✓ {2}pod-b +api cluster IP +10\.96\.0\.10:80\r\n {3}pod-.* saw 10\.244\.1\.12 \(its own\)\r\n/,
  );
  expect(demo.output).toContain('mode iptables (full sync: start)');

  const first = demo.output.length;
  demo.child.stdin.write('pod-b ip -brief address show eth0\n');
  await demo.saying(/eth0\S* +UP +10\.244\.1\.12\/24/, first);
  demo.child.stdin.write('node1 false\nnowhere ip\n');
  await demo.saying(/It ended with 1\.\r\n[^]*"nowhere ip": expected r, q, or a host and a command/, first);
  demo.child.stdin.write('node1 iptables -t nat -F KUBE-SERVICES\n');
  await demo.saying(/Junction wrote IPv4 .*: iptables \(pid \d+\) changed chain nat KUBE-SERVICES/, first);

  const networks = demo.labNetworks();
  expect(networks.size).toBe(7);
  demo.child.kill('SIGKILL');
  await expect
    .poll(() => [...demo.processes(), ...processesIn(networks)], { timeout: 150_000, interval: 50 })
    .toEqual([]);
});

function startOnTerminal(): RunningDemo {
  const program = `stty cols 80; exec ${process.execPath} ${join(built.folder, 'dist/demo.js')} --variant nft`;
  const demo = new RunningDemo(['script', '-qfec', program, '/dev/null'], built.folder, {
    NO_COLOR: '1',
    TERM: 'xterm',
  });
  onTestFinished(() => void demo.child.kill('SIGKILL'));
  return demo;
}
