/** Settings without an effect: help, reference and warnings say so, with the reason. */
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { flagHelp } from '../../src/config/help.ts';
import { CONFIG_FIELDS, FLAGS } from '../../src/config/table.ts';
import { referencePage } from '../../scripts/samples/configurationPage.ts';
import { HEADER, load } from './given.ts';

describe('what has no effect', () => {
  const ignored = FLAGS.filter((flag) => flag.ignored !== undefined);

  test('stands in the help, with the reason', () => {
    const [, group = ''] = flagHelp(200).split('Accepted, without effect in Junction:\n');
    const words = group.replaceAll(/\s+/g, ' ');
    for (const { name } of ignored) expect(words).toContain(`--${name}`);
    for (const { ignored: reason = '' } of ignored) expect(words).toContain(`no effect, because ${reason}`);
    expect(ignored.map(({ name }) => name)).toEqual(expect.arrayContaining(['config-sync-period']));
  });

  test('stands in the reference, with the reason', () => {
    const [, section = ''] = referencePage().split('## Settings without effect');
    for (const { name, ignored: reason = '' } of ignored) {
      expect(section).toMatch(new RegExp(String.raw`\| .--${name}. \| `));
      expect(section).toContain(reason);
    }
    for (const { path } of CONFIG_FIELDS.filter((field) => field.ignored !== undefined)) {
      expect(section).toContain(`| \`${path}\` |`);
    }
  });

  test('is named where a flag gives it', () => {
    expect(load(['--config-sync-period=1m']).notes).toContainEqual({
      severity: 'warning',
      message: expect.stringContaining('Flag --config-sync-period has no effect, because ') as string,
    });
  });

  test('is named where a file gives it, unless that is the default', () => {
    const named = (fields: object): unknown =>
      load([], stringify({ ...HEADER, ...fields })).notes.find(({ message }) =>
        message.includes('have no effect'),
      )?.fields;
    expect(named({ configSyncPeriod: '1m' })).toEqual({
      settings: [expect.stringContaining('configSyncPeriod: ') as string],
    });
    const kubeadm = { configSyncPeriod: '0s', clientConnection: { contentType: '', acceptContentTypes: '' } };
    expect(named(kubeadm)).toBeUndefined();
    expect(named({ configSyncPeriod: '15m' })).toBeUndefined();
  });
});
