/** What a new user may give to `junction plan`: each message names the place and what would be right; no rules, no stack. */
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { JUNCTION } from '../support/programs.ts';
import { useFiles } from './files.ts';
import { junction } from './junction.ts';

const file = useFiles();

const OBJECT = 'this is not a Kubernetes object (expected a map with apiVersion, kind and metadata)';
const SERVICE = 'apiVersion: v1\nkind: Service\nmetadata: {name: web}\n';

const NONSENSE: readonly (readonly [what: string, content: string, first: string])[] = [
  ['text', 'hello\n', `:1: error: ${OBJECT}`],
  ['NUL', `${SERVICE}\0`, ': error: is not a text in UTF-8'],
  ['a tab', `${SERVICE}spec:\n\tports: []\n`, ':5: error: Tabs are not allowed as indentation'],
  ['brackets and as many that close', '['.repeat(50_000) + ']'.repeat(50_000), `:1: error: ${OBJECT}`],
  [
    'a template',
    'apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}}\n',
    ':3: error: this document cannot be read: a key is a map, a list or an alias',
  ],
];

describe('a file with', () => {
  test.each(NONSENSE)('%s', async (what, content, first) => {
    const path = file(`${what.replaceAll(' ', '-')}.yaml`, content);
    const { code, out, err } = await junction('plan', '--manifests', path);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err.split('\n')[0]).toBe(`${path}${first}`);
    expect(err).toMatch(/\njunction: (an error|\d errors) above, so nothing is planned\n$/);
    expect(err).not.toMatch(/\n\s+at /);
  });

  test('nothing in it is not taken for a cluster without Services', async () => {
    const empty = ['', '---\n---\n...\n', '# services go here\n', 'null\n'];
    // As of kubectl get in a wrong namespace, and of other controllers.
    const others = ['apiVersion: v1\nkind: List\nitems: []\n', 'apiVersion: apps/v1\nkind: Deployment\n'];
    for (const content of [...empty, ...others]) {
      const path = file('nothing.yaml', content);
      const err = `junction: no Service, EndpointSlice, Endpoints or Node in ${path}, so nothing is planned\n`;
      expect(await junction('plan', '--manifests', path)).toEqual({ code: 1, out: '', err });
    }
  });

  test.each([
    ['a byte-order mark', `\ufeff---\n${SERVICE}`],
    ['CRLF', `---\n${SERVICE}`.replaceAll('\n', '\r\n')],
    ['a comma too many in JSON', '\n{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web",},}'],
  ])('%s is read, and its line is right', async (_, content) => {
    const path = file('odd.yaml', content.replace('web', 'Web'));
    const { err } = await junction('plan', '--manifests', path);
    expect(err).toContain(`${path}:2: error: Service: metadata.name "Web" is not a valid name`);
  });

  test('JSON nested deeply below fields that nobody reads is read', async () => {
    const deep = '['.repeat(20_000) + ']'.repeat(20_000);
    const path = file(
      'deep.json',
      `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","annotations":{"a":${deep}}},\n"zz":${deep}}`,
    );
    const { code, err } = await junction('plan', '--manifests', path);
    expect(code).toBe(0);
    expect(err.split('\n')[0]).toBe(
      `${path}:1: note: Service default/web is left alone: it has no cluster IP`,
    );
  });
});

test('a directory without manifests', async () => {
  const folder = join(dirname(file('notes.txt', '')), 'empty');
  mkdirSync(folder);
  const { code, out, err } = await junction('plan', '--manifests', folder);
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err.split('\n')).toEqual([
    `${folder}: warning: has no file whose name ends in .yaml, .yml or .json`,
    `junction: no Service, EndpointSlice, Endpoints or Node in ${folder}, so nothing is planned`,
    '',
  ]);
});

test.each(['plan', 'run'])('a ~ that no shell replaced (%s)', async (command) => {
  const { code, out, err } = await junction(command, '--manifests=~/services', '--hostname-override=n');
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err).toContain(
    'does not exist; a shell replaces ~ only at the beginning of a word: write the path in full',
  );
});

describe('standard input', () => {
  async function piped(
    write: (to: NodeJS.WritableStream) => void,
  ): Promise<readonly [unknown, string, string]> {
    const child = spawn(process.execPath, [JUNCTION, 'plan', '--manifests', '-']);
    child.stdin.on('error', () => {}); // it may be closed before all is written
    const ended = new Promise((resolve) => child.once('close', resolve));
    write(child.stdin);
    return Promise.all([ended, text(child.stdout), text(child.stderr)]);
  }

  test('with bytes that are no text', async () => {
    const [code, out, err] = await piped((to) => to.end(Buffer.from([0x6b, 0xff, 0x0a])));
    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(/^stdin: error: is not a text in UTF-8\n/);
  });

  test('without end', async () => {
    const [code, out, err] = await piped((to) => {
      const block = Buffer.alloc(1024 * 1024, 'y\n');
      const more = (): void => {
        while (to.writable && to.write(block));
      };
      to.on('drain', more);
      more();
    });
    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(/^stdin: error: is longer than 64 MiB; split it into several files\n/);
  });
});
