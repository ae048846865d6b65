/** Nothing that others named can make a terminal do something, or write a line of its own. */
import { describe, expect, test } from 'vitest';
import { createLog } from '../../src/log/log.ts';
import { printable, printableLine } from '../../src/text/printable.ts';
import { useFiles } from './files.ts';
import { junction } from './junction.ts';

const file = useFiles();
/** Clears the screen, colours, sets the title, turns the direction of writing, ends lines. */
const EVIL = '\u001b[2J\u009b31m\u001b]0;x\u0007\u202egnp.\u200b\u2028\u007f\r';
const FORGED = `${EVIL}\njunction: all is well `;
const UNPRINTABLE = /[^\P{C}\n]|[\u2028\u2029]/u;

describe('printable', () => {
  test.each([
    ['plain – ünïcode 名前 😀', 'plain – ünïcode 名前 😀'],
    ['\u001b[31m', String.raw`\u001b[31m`],
    ['a\u202eb', String.raw`a\u202eb`],
    ['\u{e0041}', String.raw`\udb40\udc41`],
    ['\ud800', String.raw`\ud800`],
    ['a\tb\nc', 'a\tb\nc'],
  ])('%j', (text, expected) => {
    expect(printable(text)).toBe(expected);
  });

  test('a line stays a line', () => {
    expect(printableLine('a\tb\r\nc')).toBe(String.raw`a\tb\r\nc`);
  });

  test('JSON stays what it was', () => {
    const value = { [FORGED]: [FORGED] };
    expect(JSON.parse(printable(JSON.stringify(value)))).toEqual(value);
  });
});

describe('the log', () => {
  test.each(['text', 'json'] as const)('%s', (format) => {
    let written = '';
    const log = createLog({ verbosity: 0, format, write: (line) => void (written += line) });
    log.warn(`file ${FORGED}`, { object: FORGED, error: new Error(FORGED), list: [FORGED] });
    expect(written).not.toMatch(UNPRINTABLE);
    expect(written.split('\n')).toHaveLength(2);
  });
});

describe('the commands', () => {
  const BROKEN = 'kind: Service\nmetadata: {name: web}\nspec: {clusterIP: 10.0.0.1, ports: []}\n';
  const HEADLESS = 'kind: Service\nmetadata: {name: web}\nspec: {clusterIP: None}\n';
  const evilName = (name: string): string => `${FORGED.replaceAll('/', '')}${name}`;

  const key = file('c.yaml', `kind: Node\nmetadata: {name: ${JSON.stringify(EVIL)}}\n`);

  test.each<readonly [string, readonly string[]]>([
    ['a bad object in a file with an evil name', ['plan', '--manifests', file(evilName('a.yaml'), BROKEN)]],
    [
      'an object that is left alone in such a file',
      ['plan', '--manifests', file(evilName('b.yaml'), HEADLESS)],
    ],
    ['a key with an evil name', ['plan', '--manifests', key]],
    ['manifests that are not there', ['plan', '--manifests', `/nowhere${FORGED}`]],
    [
      'manifests to compare that are not there',
      ['diff', '--manifests', key, '--to-manifests', `/nowhere${FORGED}`],
    ],
    ['a configuration that is not there', ['run', `--config=/nowhere${FORGED}`]],
    ['a configuration with an evil name', ['run', '--config', file(evilName('d'), 'mode: [\n')]],
    ['a flag that nobody knows', ['plan', `--${FORGED}`]],
    ['a command that nobody knows', [FORGED]],
    ['a bad value of a flag', ['plan', `--family=${FORGED}`]],
  ])('%s', async (_, args) => {
    const { err } = await junction(...args);
    expect(err).not.toBe('');
    expect(err).not.toMatch(UNPRINTABLE);
    expect(err).not.toMatch(/^junction: all is well/m);
  });
});
