import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAll, statusByExec } from '../../src/cli/allNodes.ts';
import { reportError } from '../../src/cli/reportError.ts';
import { attempt } from '../../src/errors.ts';
import { runPluginCommand } from '../../src/kubectl/main.ts';
import { printable } from '../../src/text/printable.ts';
import { certificatePath, type RawObject, StatusError, TestApiServer } from '../support/apiServer/index.ts';
import { FULL_STATUS } from '../support/fullStatus.ts';
import { FakeKubectl, type KubectlAnswer } from '../support/kubectl.ts';

let server: TestApiServer;
let directory = '';
let kubectl: FakeKubectl;

const LABELS = { 'app.kubernetes.io/name': 'junction' };

function pod(name: string, node: string | undefined, status: object = { phase: 'Running' }): RawObject {
  const metadata = { namespace: 'kube-system', name, labels: LABELS };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName: node }, status };
}

function kubeconfig(context: string, namespace?: string): string {
  return `
apiVersion: v1
kind: Config
current-context: ${context}
contexts:
- { name: ${context}, context: { cluster: c, user: u${namespace === undefined ? '' : `, namespace: ${namespace}`} } }
- { name: other, context: { cluster: c, user: u, namespace: elsewhere } }
clusters: [{ name: c, cluster: { server: '${server.url}', certificate-authority: '${certificatePath('ca')}' } }]
users: [{ name: u, user: { token: right } }]
`;
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'junction-kubectl-'));
  kubectl = new FakeKubectl(directory);
  server = await TestApiServer.start({ certificate: 'server', tokens: ['right'] });
  await writeFile(join(directory, 'config'), kubeconfig('main'));
  for (const name of ['worker-1', 'worker-2'])
    server.put({ apiVersion: 'v1', kind: 'Node', metadata: { name } });
  server.put(pod('junction-a', 'worker-1'), pod('junction-b', 'worker-2'));
  // Of others, and elsewhere.
  server.put({
    ...pod('coredns', 'worker-1'),
    metadata: { namespace: 'kube-system', name: 'coredns', labels: {} },
  });
  server.put({ ...pod('x', 'worker-3'), metadata: { namespace: 'shop', name: 'x', labels: LABELS } });
});
afterEach(async () => {
  await server.close();
  await rm(directory, { recursive: true, force: true });
});

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function plugin(...argv: readonly string[]): Promise<Ran> {
  return withEnv({ KUBECONFIG: join(directory, 'config') }, ...argv);
}

async function withEnv(env: Record<string, string>, ...argv: readonly string[]): Promise<Ran> {
  let out = '';
  let err = '';
  const output = {
    out: (text: string) => void (out += printable(text)),
    err: (text: string) => void (err += printable(text)),
    painted: (text: string) => void (out += text),
  };
  const options = {
    env: { PATH: kubectl.path, ...env },
    home: directory,
    signal: AbortSignal.timeout(60_000),
  };
  const code = await runPluginCommand(argv, output, options).catch((error: unknown) =>
    reportError(error, output, 'kubectl junction'),
  );
  return { code, out, err };
}

describe('a command on a node', () => {
  test('runs in the pod of that node, with its output and exit code', async () => {
    kubectl.answer({ stdout: ['DROPPED\n'], stderr: 'careful\n', exitCode: 4 });
    const ran = await plugin('explain', '-n', 'shop', 'svc/web', '--node', 'worker-2');
    expect(ran).toEqual({ code: 4, out: 'DROPPED\n', err: 'careful\n' });
    expect(kubectl.calls()).toEqual([
      {
        flags: [],
        namespace: 'kube-system',
        pod: 'junction-b',
        container: 'junction',
        command: ['junction', 'explain', '--namespace', 'shop', 'svc/web'],
      },
    ]);
  });

  test.each([
    ['explain shop/web', 'explain shop/web'],
    ['explain web:http', 'explain --namespace default web:http'],
    ['explain svc/web -o json', 'explain --namespace default svc/web -o json'],
    ['explain --from outside --to 203.0.113.10:80', 'explain --from outside --to 203.0.113.10:80'],
    ['explain --from=pod/a --to=svc/web', 'explain --namespace default --from=pod/a --to=svc/web'],
    ['services -nshop --problems', 'services --namespace shop --problems'],
    ['endpoints web --namespace=shop', 'endpoints --namespace shop web'],
    ['doctor --probe', 'doctor --probe'],
    ['diff -o wide', 'diff -o wide'],
    ['watch', 'watch'],
    ['status', 'status'],
  ])('%s: junction %s', async (argv, command) => {
    await plugin(...argv.split(' '), '--node=worker-1');
    expect(kubectl.calls()).toMatchObject([{ pod: 'junction-a', command: `junction ${command}`.split(' ') }]);
  });

  test('takes the namespace of the context, and another context', async () => {
    await writeFile(join(directory, 'config'), kubeconfig('main', 'shop'));
    await plugin('explain', 'web', '--node', 'worker-1');
    await plugin('explain', 'web', '--node', 'worker-1', '--context', 'other');
    expect(kubectl.calls().map(({ flags }) => flags)).toEqual([[], ['--context', 'other']]);
    expect(kubectl.calls().map(({ command }) => command[3])).toEqual(['shop', 'elsewhere']);
  });

  test('escapes what a terminal would obey', async () => {
    kubectl.answer({ stdout: ['\u001b[2Jgone', Buffer.from([0xc3]), Buffer.from([0xbc])] });
    expect((await plugin('services', '--node', 'worker-1')).out).toBe('\\u001b[2Jgoneü');
  });

  test('ends with Ctrl-C, and kubectl with it', async () => {
    const running = join(directory, 'running');
    kubectl.answer({ first: `echo $$ >'${running}'`, hangs: true });
    const controller = new AbortController();
    const output = { out: () => {}, err: () => {}, painted: () => {} };
    const env = { PATH: kubectl.path, KUBECONFIG: join(directory, 'config') };
    const ran = runPluginCommand(['watch', '--node', 'worker-1'], output, { env, signal: controller.signal });
    await expect.poll(() => readFile(running, 'utf8').catch(() => '')).toMatch(/^\d+\n$/);
    controller.abort(new Error('stopped'));
    await expect(ran).rejects.toThrow('stopped');
    const pid = Number(await readFile(running, 'utf8'));
    await expect.poll(() => attempt(() => process.kill(pid, 0))).toBe(undefined);
  });

  test('needs no --node where there is one; prefers the pod that runs, during an update', async () => {
    server.delete('Pod', 'kube-system/junction-b');
    server.put(pod('junction-0', 'worker-1', { phase: 'Pending' }));
    await plugin('services');
    expect(kubectl.calls()).toMatchObject([{ pod: 'junction-a' }]);
  });
});

describe('what is wrong is said', () => {
  test.each([
    ['services', '--node is missing: which of worker-1, worker-2?', 2],
    [
      'services --node worker-9',
      'no pod of Junction on node worker-9; there are some on worker-1, worker-2',
      2,
    ],
    ['explane x', 'did you mean explain', 2],
    ['services --node', '--node needs a value', 2],
    ['services --node worker-1 --manifests x', '--manifests is not for kubectl junction', 2],
    ['services --junction-namespace nowhere', 'no pod of Junction in namespace nowhere', 1],
    ['services --context nothing', 'has no context "nothing", which --context names', 1],
    ['ui', 'ui is not for kubectl junction', 2],
  ])('%s', async (argv, message, code) => {
    const ran = await plugin(...argv.split(' '));
    expect(ran.err).toContain(message);
    expect(ran.code).toBe(code);
    expect(kubectl.calls()).toEqual([]);
  });

  test('a pod that does not run', async () => {
    const waiting = { name: 'junction', state: { waiting: { reason: 'ImagePullBackOff' } } };
    server.put(pod('junction-c', 'worker-3', { phase: 'Pending', containerStatuses: [waiting] }));
    const { err, code } = await plugin('services', '--node', 'worker-3');
    expect(err).toContain('pod kube-system/junction-c on worker-3 does not run: Pending: ImagePullBackOff');
    expect(code).toBe(1);
  });

  test('a user who may not', async () => {
    const fails = 'Error from server (Forbidden): pods "junction-a" is forbidden: User "jane" cannot create';
    kubectl.answer({ fails });
    const { err, code } = await plugin('services', '--node', 'worker-1');
    expect(err).toContain(`${fails} (EXEC_FAILED)\n`);
    expect(err).toContain('what to do: The user needs get of pods and create of pods/exec');
    expect(code).toBe(1);
  });

  test('kubectl fails, or is not there', async () => {
    const fails = 'error: unable to upgrade connection: container not found ("junction")';
    kubectl.answer({ fails, stderr: 'junction: careful\n' });
    const { err, code } = await plugin('services', '--node', 'worker-1');
    const place = 'exec --namespace kube-system junction-a --container junction';
    expect(err).toBe(
      `junction: careful\nkubectl junction: kubectl ${place}: ${fails} (EXEC_FAILED)\n  what to do: See what kubectl itself says: kubectl ${place} -- junction version\n`,
    );
    expect(code).toBe(1);
    const env = { KUBECONFIG: join(directory, 'config'), PATH: directory };
    const none = await withEnv(env, 'services', '--node', 'worker-1');
    expect(none).toMatchObject({
      code: 1,
      err: expect.stringContaining('the program kubectl is not installed'),
    });
  });

  test('a wrong token, and no kubeconfig', async () => {
    server.tokens.clear();
    expect((await plugin('services')).err).toContain('401 Unauthorized');
    const none = await withEnv({ KUBECONFIG: join(directory, 'nothing') }, 'services');
    expect(none.err).toContain('there is no such file');
  });

  test('help names every command', async () => {
    for (const argv of [[], ['--help'], ['explain', '-h'], ['help']]) {
      const { out, code } = await plugin(...argv);
      expect(code).toBe(0);
      for (const command of 'explain services endpoints status doctor diff watch bundle'.split(' '))
        expect(out).toContain(`  ${command} `);
    }
  });
});

test('the kubeconfig is that of the flag, of the variable, the first that has the context, or the one at home', async () => {
  const config = join(directory, 'config');
  const services = ['services', '--node', 'worker-1'];
  await withEnv({ KUBECONFIG: '/nowhere' }, ...services, '--kubeconfig', config);
  expect(kubectl.calls().map(({ flags }) => flags)).toEqual([['--kubeconfig', config]]);
  const empty = join(directory, 'empty');
  await writeFile(empty, 'apiVersion: v1\nkind: Config\ncurrent-context: main\n');
  await withEnv({ KUBECONFIG: [empty, join(directory, 'missing'), config].join(':') }, ...services);
  expect(kubectl.calls()).toHaveLength(2);
  await mkdir(join(directory, '.kube'));
  await writeFile(join(directory, '.kube/config'), kubeconfig('home'));
  await withEnv({}, ...services);
  expect(kubectl.calls()).toHaveLength(3);
});

describe('status of all nodes', () => {
  const status = (changes: object): KubectlAnswer => ({
    stdout: [JSON.stringify({ ...FULL_STATUS, leftOut: [], findings: [], ...changes })],
  });
  beforeEach(() => kubectl.answer(status({})));

  test('worst first; one that fails stops no other', async () => {
    for (const [index, name] of ['c', 'd', 'e', 'f', 'g'].entries()) {
      server.put({ apiVersion: 'v1', kind: 'Node', metadata: { name: `worker-${index + 3}` } });
      if (name !== 'g')
        server.put(
          pod(`junction-${name}`, `worker-${index + 3}`, name === 'f' ? { phase: 'Pending' } : undefined),
        );
    }
    kubectl.answer({ fails: 'error: Internal error occurred: the kubelet is away' }, 'junction-b');
    const error = { code: 'x', severity: 'error', text: 'IPv4: a change waits to be written' };
    kubectl.answer(status({ findings: [error] }), 'junction-c');
    const warning = { code: 'y', severity: 'warning', text: 'conntrack is nearly full' };
    kubectl.answer(status({ findings: [warning] }), 'junction-d');
    kubectl.answer({ stdout: ['{"version":1}'] }, 'junction-e');
    const { out, code } = await plugin('status');
    const rows = out
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/));
    expect(rows[0]).toEqual(['NODE', 'MODE', 'STATE', 'SERVICES', 'ENDPOINTS', 'VERSION', 'DETAIL']);
    expect(rows.slice(1).map(([node, , state]) => [node, state])).toEqual([
      ['worker-2', 'no answer'],
      ['worker-5', 'no answer'],
      ['worker-7', 'no pod'],
      ['worker-6', 'not running'],
      ['worker-3', 'errors'],
      ['worker-4', 'warnings'],
      ['worker-1', 'ok'],
    ]);
    expect(rows.find(([node]) => node === 'worker-3')).toEqual(
      expect.arrayContaining(['nftables', '7', '17', 'IPv4: a change waits to be written']),
    );
    expect(code).toBe(1);
  });

  test('all well', async () => {
    const { code, out } = await plugin('status', '-o', 'json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject([
      { node: 'worker-1', pod: 'junction-a', state: 'ok', status: { mode: 'nftables' } },
      { node: 'worker-2', pod: 'junction-b', state: 'ok' },
    ]);
  });

  test('of many nodes no more than a few are asked at one time', async () => {
    for (let index = 0; index < 30; index++) server.put(pod(`junction-many-${index}`, `many-${index}`));
    const running = join(directory, 'running');
    const seen = join(directory, 'seen');
    await mkdir(running);
    const first = `: >'${running}/'$$; ls '${running}' | wc -l >>'${seen}'; sleep 0.05; rm '${running}/'$$`;
    kubectl.answer({ ...status({}), first });
    const { out } = await plugin('status');
    expect(out.trimEnd().split('\n')).toHaveLength(33);
    const most = Math.max(...(await readFile(seen, 'utf8')).trim().split('\n').map(Number));
    expect(most).toBeLessThanOrEqual(8);
    expect(most).toBeGreaterThan(1);
  });

  test('of a pod that sends without end, no more than a status has is kept', async () => {
    kubectl.answer({ first: 'yes' }, 'junction-a');
    const { code, out } = await plugin('status');
    expect(out).toMatch(/worker-1 .*no answer .*its answer is too long/);
    expect(code).toBe(1);
  });

  test('a node that may not be asked is told from one that does not answer', async () => {
    kubectl.answer({ fails: 'Error from server (Forbidden): pods "junction-a" is forbidden' }, 'junction-a');
    expect((await plugin('status')).out).toMatch(/worker-1 .*not asked .*\(Forbidden\)/);
  });

  test('of one that does not answer, the others are not kept waiting for long', async () => {
    kubectl.answer({ hangs: true }, 'junction-a');
    const pods = ['a', 'b'].map((name) => ({
      namespace: 'kube-system',
      name: `junction-${name}`,
      node: name,
      container: 'junction',
      isRunning: true,
      state: 'Running',
    }));
    const ask = statusByExec({ flags: [], env: { PATH: kubectl.path } });
    expect(await askAll(pods, [], ask, 2000)).toMatchObject([
      { node: 'a', state: 'no answer', detail: 'nothing came for 2 s' },
      { node: 'b', state: 'ok' },
    ]);
  });

  test('a user who may not list nodes sees the pods', async () => {
    const error = new StatusError(403, { reason: 'Forbidden', message: 'nodes is forbidden' });
    server.faults.add({ on: 'list', resource: 'nodes', fault: { kind: 'status', error } });
    const { code, err } = await plugin('status');
    expect(code).toBe(0);
    expect(err).toContain('nodes without a pod are not shown');
  });
});

describe('bundle', () => {
  const CONTENT = Buffer.from([0x1f, 0x8b, 0, 1, 2, 3, 255, 254]);

  test('is written here, for its owner alone', async () => {
    kubectl.answer({ stdout: [CONTENT.subarray(0, 3), CONTENT.subarray(3)] });
    const path = join(directory, 'b.json.gz');
    const { code, out } = await plugin('bundle', '--node', 'worker-1', '--output', path);
    expect(code).toBe(0);
    expect(out).toContain(`${path}: 1 KiB from worker-1`);
    expect(kubectl.calls()).toMatchObject([{ command: ['junction', 'bundle', '--output', '-'] }]);
    expect(await readFile(path)).toEqual(CONTENT);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const again = await plugin('bundle', '--node', 'worker-1', '-o', path);
    expect(again.err).toContain('exists');
    expect(again.code).toBe(2);
    expect((await plugin('bundle', '--node', 'worker-1', '-o', path, '--force')).code).toBe(0);
  });

  test('that did not work out leaves no file', async () => {
    for (const answer of [
      { stdout: [CONTENT], exitCode: 1 },
      { stdout: [CONTENT], fails: 'error: error reading from error stream: unexpected EOF' },
    ]) {
      kubectl.answer(answer);
      const path = join(directory, 'lost.json.gz');
      expect((await plugin('bundle', '--node', 'worker-1', '-o', path)).code).toBe(1);
      expect(await readdir(directory)).not.toContain('lost.json.gz');
    }
  });
});
