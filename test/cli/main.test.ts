/** The command line: help, and mistakes with their cures. Whole outputs: golden/*.txt. */
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { useFiles } from './files.ts';
import { junction } from './junction.ts';

const file = useFiles();
const SHOP = 'examples/web.yaml';
const BROKEN = file(
  'broken.yaml',
  'kind: Service\nmetadata: { name: web, namespace: shop }\nspec: { clusterIP: 10.96.0.1, ports: [{ port: 70000 }] }\n',
);

describe('help', () => {
  test.each(COMMANDS)('help $name is $name --help', async ({ name }) => {
    expect(await junction('help', name)).toEqual(await junction(name, '--help'));
  });

  test.each(['help', '-h', '--help'])('%s, and no word at all, explain the commands', async (word) => {
    expect(await junction(word)).toEqual(await junction());
  });

  test.each([[[]], ...COMMANDS.map(({ name }) => [[name]])])('%j --help fits 80 columns', async (words) => {
    const { out } = await junction(...words, '--help');
    const wide = out.split('\n').filter((line) => line.length > 80);
    // A flag and its values are one word.
    expect(wide.filter((line) => !/^ +--detect-local-mode \S+$/.test(line))).toEqual([]);
  });
});

describe('a mistake', () => {
  const FLAGS_ONLY = (word: string) => `unexpected argument "${word}": there are flags only`;
  test.each([
    [['plan', 'examples'], `${FLAGS_ONLY('examples')} (did you mean --manifests examples?)`],
    [['plan', '--manifests', 'a', 'b'], FLAGS_ONLY('b')],
    [['plan', 'table'], `${FLAGS_ONLY('table')} (did you mean --output table?)`],
    [['check', 'nftables'], `${FLAGS_ONLY('nftables')} (did you mean --proxy-mode nftables?)`],
    [['cleanup', 'nftables'], `${FLAGS_ONLY('nftables')} (did you mean --mode nftables?)`],
    [['check', '--mode', 'nftables'], 'unknown flag: --mode (did you mean --proxy-mode?)'],
    [
      ['cleanup', '--proxy-mode', 'nftables'],
      'flag --proxy-mode has no effect on this command: it is one of junction run (did you mean --mode?)',
    ],
    [['plan', '-f', 'examples'], "unknown shorthand flag: 'f' in -f (did you mean --manifests?)"],
    [['version', '--constructor'], 'unknown flag: --constructor'],
    [['run', '--dry-run'], 'unknown flag: --dry-run'],
    [['plan', '--familly', 'ipv4'], 'unknown flag: --familly (did you mean --family?)'],
    [['cleanup', '--timeout=1m'], '--timeout has no effect without --wait-for-proxy'],
    [['cleanup', '--wait-for-proxy=127.0.0.1', '--timeout=-1s'], '--timeout must not be negative'],
  ])('%j: the flag that was meant, and where they are listed', async ([name = '', ...rest], problem) => {
    const err = `junction: ${problem}\n  what to do: junction ${name} --help lists its flags\n`;
    expect(await junction(name, ...rest)).toEqual({ code: 2, out: '', err });
  });

  test.each([
    ['plam', 'plan'],
    ['clean', 'cleanup'],
    ['chekc', 'check'],
  ])('%s: did you mean %s', async (word, meant) => {
    const err = `junction: unknown command "${word}" (did you mean ${meant}?)\n  what to do: junction --help explains the commands\n`;
    for (const words of [[word], ['help', word]])
      expect(await junction(...words)).toEqual({ code: 2, out: '', err });
  });

  test.each<readonly [readonly string[], number, RegExp]>([
    [['plan', '--manifests', BROKEN], 1, /broken\.yaml:\d+: .*70000/],
    [['plan', '--kubeconfig', '/nowhere'], 1, /^junction: kubeconfig \/nowhere: .* \(KUBECONFIG_[A-Z]+\)\n/],
    [['plan', '--kubeconfig', '~/.kube/config'], 1, /no such file.*\n {2}what to do: A shell replaces ~/],
    [
      ['plan', '--kubeconfig', '/dev/null'],
      1,
      /current-context is not set.*\n {2}what to do: It has no contexts at all/,
    ],
    [['plan'], 2, /--manifests and --kubeconfig are missing/],
    [['plan', '--manifests', SHOP, '--family=ipv7'], 2, /ipv7.*--family/],
    [['plan', '--manifests', SHOP, '--oom-score-adj=1'], 2, /--oom-score-adj has no effect on this command/],
    [['check', '--kubeconfig=/k'], 2, /flag --kubeconfig has no effect on this command/],
    [['check', '--output=yaml'], 2, /"yaml"/],
    [['cleanup', '--wait-for-proxy=kube-proxy'], 2, /--wait-for-proxy.*ip or ip:port/],
    [['cleanup', '--wait-for-proxy=127.0.0.1', '--timeout=10'], 2, /must be a duration.*perhaps 10s/],
  ])('%j: %d', async (args, code, err) => {
    const run = await junction(...args);
    expect({ code: run.code, out: run.out }).toEqual({ code, out: '' });
    expect(run.err).toMatch(err);
    expect(run.err).not.toMatch(/\n\s+at .*\.ts:/);
  });
});

test('a file is for the proxy, so all of it is taken', async () => {
  const config = file(
    'config.yaml',
    'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nclusterCIDR: 10.244.0.0/16\noomScoreAdj: 5\n',
  );
  expect((await junction('plan', '--config', config, '--manifests', SHOP)).code).toBe(0);
});

test('--version=raw is junction version', async () => {
  expect(await junction('--version=raw')).toEqual(await junction('version'));
  expect((await junction('--version')).out).toMatch(/^Junction v[\d.]+\n$/);
});
