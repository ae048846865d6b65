import { SLOW_TEXTS } from '../support/slowYaml.ts';
import { describe, expect, test } from 'vitest';
import { load, tryLoad } from './given.ts';

const HEAD = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';
const WANTED =
  'a configuration file begins with "apiVersion: kubeproxy.config.k8s.io/v1alpha1" and "kind: KubeProxyConfiguration"';

function problems(text: string): readonly string[] {
  const loaded = tryLoad([], text);
  return loaded.ok
    ? []
    : loaded.problems.map((problem) => problem.replaceAll('/etc/junction/config.yaml', 'FILE'));
}

function warnings(text: string): readonly string[] {
  return load([], text)
    .notes.filter(({ severity }) => severity === 'warning')
    .map(({ message }) => message.replaceAll('/etc/junction/config.yaml', 'FILE'));
}

describe('what is no configuration file', () => {
  test.each<[string, string]>([
    ['', 'FILE:1:1: the file is empty'],
    ['---\n', 'FILE:1:4: the file must hold a map, and holds null'],
    ['- a\n', 'FILE:1:1: the file must hold a map, and holds a list'],
    ['mode: ipvs\n', `FILE:1:1: no kind: ${WANTED}`],
    ['kind: KubeProxyConfiguration\n', `FILE:1:1: no apiVersion: ${WANTED}`],
    ['apiVersion: v1\nkind: Pod\n', `FILE:2:1: no kind "Pod" is registered for version "v1": ${WANTED}`],
    [
      'apiVersion: kubeproxy.config.k8s.io/v1beta1\nkind: KubeProxyConfiguration\n',
      `FILE:1:1: no kind "KubeProxyConfiguration" is registered for version "kubeproxy.config.k8s.io/v1beta1": ${WANTED}`,
    ],
  ])('%j: %s', (text, problem) => {
    expect(problems(text)).toEqual([`failed to decode: ${problem}`]);
  });

  test.each<[string, RegExp]>([
    [`${HEAD}iptables: {masqueradeBit: 1\n`, /^failed to decode: FILE:4:1: Flow map .* end with a }/],
    [`${HEAD}mode: ipvs: x\n`, /^failed to decode: FILE:3:7: Nested mappings are not allowed/],
    [`${HEAD}mode: *nothing\n`, /^failed to decode: FILE:3:7: the file cannot be read: Unresolved alias/],
  ])('bad YAML has a place: %j', (text, message) => {
    expect(problems(text)[0]).toMatch(message);
  });
});

describe('values of the wrong type', () => {
  test.each<[string, string]>([
    ['iptables: 3', 'FILE:3:1: iptables must be a map, and is the number 3'],
    [
      'iptables:\n  masqueradeBit: "14"',
      'FILE:4:3: iptables.masqueradeBit must be a whole number, without quotes, and is the text "14"',
    ],
    ['oomScoreAdj: 1.5', 'FILE:3:1: oomScoreAdj must be a whole number'],
    [
      'showHiddenMetricsForVersion: 1.35',
      'FILE:3:1: showHiddenMetricsForVersion must be text, in quotes, and is the number 1.35',
    ],
    [
      'configSyncPeriod: 900',
      'FILE:3:1: configSyncPeriod must be a duration in quotes, such as "30s" or "15m", and is the number 900',
    ],
    [
      'configSyncPeriod: "900"',
      'FILE:3:1: configSyncPeriod must be a duration, and has no unit: perhaps 900s',
    ],
    ['nodePortAddresses: primary', 'FILE:3:1: nodePortAddresses must be a list, and is the text "primary"'],
    [
      'logging:\n  vmodule: [x]',
      'FILE:4:3: logging.vmodule must be a list of {filePattern, verbosity}, and holds the text "x"',
    ],
  ])('%j', (text, problem) => {
    expect(problems(`${HEAD}${text}\n`)).toEqual([`failed to decode: ${problem}`]);
  });

  test('are all found at once', () => {
    expect(problems(`${HEAD}mode: 1\nportRange: 2\n`)).toHaveLength(2);
  });
});

describe('unknown and repeated fields', () => {
  test('are logged, and the rest counts', () => {
    const { config, notes } = load([], `${HEAD}mod: ipvs\nmode: ipvs\nmode: nftables\n`);
    expect(config.mode).toBe('nftables');
    expect(notes[0]).toEqual({
      severity: 'info',
      message: 'Using lenient decoding as strict decoding failed',
      fields: { err: 'strict decoding error: unknown field "mod", field "mode" already set' },
    });
  });

  test.each<[string, string]>([
    ['mod: ipvs', 'FILE:3:1: unknown field mod is ignored (did you mean mode?)'],
    ['Mode: ipvs', 'FILE:3:1: unknown field Mode is ignored (did you mean mode?)'],
    ['clusterCidr: x', 'FILE:3:1: unknown field clusterCidr is ignored (did you mean clusterCIDR?)'],
    [
      'iptables:\n  masquradeBit: 3',
      'FILE:4:3: unknown field iptables.masquradeBit is ignored (did you mean iptables.masqueradeBit?)',
    ],
    [
      'masqueradeAll: true',
      'FILE:3:1: unknown field masqueradeAll is ignored (did you mean iptables.masqueradeAll?)',
    ],
    [
      'detectLocal:\n  clusterCIDR: x',
      'FILE:4:3: unknown field detectLocal.clusterCIDR is ignored (did you mean clusterCIDR?)',
    ],
    ['udpIdleTimeout: 250ms', 'FILE:3:1: unknown field udpIdleTimeout is ignored'],
    [
      'junction: {manifest: [a]}',
      'FILE:3:12: unknown field junction.manifest is ignored (did you mean junction.manifests?)',
    ],
    [
      'ipvs:\n  scheduler: rr\n  scheduler: lc',
      'FILE:5:3: ipvs.scheduler is here a second time; the last one counts',
    ],
    ['---\nmode: ipvs', 'FILE:1:1: the file holds several documents; only the first is read'],
  ])('%j', (text, message) => {
    expect(warnings(`${HEAD}${text}\n`)).toEqual([message]);
  });
});

describe('ways to write a file', () => {
  test.each<[string, string]>([
    ['YAML', `${HEAD}mode: ipvs\nbindAddressHardFail: yes\n`],
    ['YAML with a byte order mark', `\uFEFF${HEAD}mode: ipvs\nbindAddressHardFail: true\n`],
    ['YAML after a document mark', `# note\n---\n${HEAD}mode: ipvs\nbindAddressHardFail: on\n`],
    [
      'JSON',
      '{\n\t"apiVersion": "kubeproxy.config.k8s.io/v1alpha1",\n\t"kind": "KubeProxyConfiguration",\n\t"mode": "ipvs",\n\t"bindAddressHardFail": true\n}\n',
    ],
  ])('%s', (_, text) => {
    expect(load([], text).config).toMatchObject({ mode: 'ipvs', bindAddressHardFail: true });
    expect(load([], text).notes).toEqual([]);
  });

  test('a flush frequency may be a number of nanoseconds', () => {
    expect(load([], `${HEAD}logging:\n  flushFrequency: 5000000000\n`).config.logging.flushFrequency).toBe(
      '5000000000',
    );
  });

  test('a hostile key does no harm', () => {
    expect(warnings(`${HEAD}__proto__: {mode: ipvs}\n`)).toHaveLength(1);
    expect(({} as Record<string, unknown>)['mode']).toBeUndefined();
  });
});

describe('a file that would take for ever', () => {
  test.each(SLOW_TEXTS.filter(({ name }) => !name.includes('twice')))('$name', ({ text, line }) => {
    expect(problems(text)[0]).toMatch(new RegExp(`^failed to decode: FILE:${line}:\\d+: `));
  });

  test('thousands of unknown and repeated fields are not all told', () => {
    const text = Array.from({ length: 20_000 }, (_, index) => `key${index}: x`).join('\n');
    const { notes } = load([], `${HEAD}mode: ipvs\n${text}\n${text}\n`);
    expect(notes).toHaveLength(52);
    expect(notes.at(-1)?.message).toContain('39950 more fields are unknown or repeated');
  });
});
