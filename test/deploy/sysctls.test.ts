import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { at, type Data, listAt, merge, podOf, REQUIRED, renderObjects } from './chart.ts';

/** The init container's script, on files that stand for the node's /proc/sys. */
describe('the container that sets sysctls', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'junction-sysctls-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  function have(settings: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(settings)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), `${value}\n`);
    }
  }

  function read(name: string): string {
    return readFileSync(join(folder, name), 'utf8').trim();
  }

  /** Started as kubelet starts it: command, arguments and environment from the pod. */
  function run(values: Data = {}): string {
    const container = at(podOf(renderObjects(merge(REQUIRED, values))), 'initContainers', 0);
    const [program = '', ...args] = [...listAt(container, 'command'), ...listAt(container, 'args')].map(
      String,
    );
    const env = listAt(container, 'env').map((each) => [String(at(each, 'name')), String(at(each, 'value'))]);
    return execFileSync(program, args, {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], SYSCTL_ROOT: folder, ...Object.fromEntries(env) },
    });
  }

  const LOCALNET = 'net/ipv4/conf/all/route_localnet';
  const ESTABLISHED = 'net/netfilter/nf_conntrack_tcp_timeout_established';
  const CLOSE_WAIT = 'net/netfilter/nf_conntrack_tcp_timeout_close_wait';
  const MAX = 'net/netfilter/nf_conntrack_max';
  const BUCKETS = 'net/netfilter/nf_conntrack_buckets';

  test('sets what kube-proxy sets, and says what it was', () => {
    have({ [LOCALNET]: '0', [ESTABLISHED]: '432000', [CLOSE_WAIT]: '3600', [MAX]: '1000', [BUCKETS]: '250' });
    const said = run();
    expect(read(LOCALNET)).toBe('1');
    expect(read(ESTABLISHED)).toBe('86400');
    const cores = Math.max(cpus().length, availableParallelism());
    const max = Math.min(Math.max(32768 * cores, 131072), 1048576);
    expect(read(MAX)).toBe(String(max));
    expect(read(BUCKETS)).toBe(String(max / 4));
    expect(said).toContain(`${LOCALNET} = 1 (was 0)`);
    expect(said).toContain(`${CLOSE_WAIT} = 3600 already`);
  });

  test('leaves more room than it would make', () => {
    have({ [MAX]: '1000', [BUCKETS]: '1048576' });
    run();
    expect(read(BUCKETS)).toBe('1048576');
  });

  test('goes by the values', () => {
    have({ [LOCALNET]: '0', [MAX]: '1000', [BUCKETS]: '250', 'net/core/somaxconn': '128' });
    run({ sysctls: { conntrackMaxPerCore: 0, set: { [LOCALNET]: 0, 'net/core/somaxconn': 1048577 } } });
    expect([read(LOCALNET), read(MAX), read('net/core/somaxconn')]).toEqual(['0', '1000', '1048577']);
    run({ sysctls: { conntrackMaxPerCore: 1, conntrackMin: 2000000 } });
    expect(read(MAX)).toBe('2000000');
  });

  test('passes over what the kernel does not have', () => {
    have({ [LOCALNET]: '0' });
    const said = run();
    expect(read(LOCALNET)).toBe('1');
    expect(said).toContain(`${MAX}: this kernel does not have it (yet); left out`);
  });

  test('has a script that kubelet changes nothing in: it replaces $(NAME) and $$', () => {
    const container = at(podOf(renderObjects()), 'initContainers', 0);
    const script = String(listAt(container, 'args')[0]);
    expect(script).not.toMatch(/\$\$|\$\([A-Za-z_][A-Za-z0-9_]*\)/);
  });
});
